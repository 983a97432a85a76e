/** Diagnostics of the compiler as marks in the edited text, and errors as text. */
import { nearest } from '../../src/ast/diagnostics/suggest.ts'
import { type Diagnostic, InternalError, render, SptError } from '../../src/index.ts'
import type { Mark } from '../protocol.ts'

/** Name of the edited text in diagnostics. */
export const MAIN = 'main.spt'
const MAX_FIXES = 3

/** An error as the command line prints it. */
export function errorText(error: unknown): string {
  if (error instanceof SptError || error instanceof InternalError)
    return render(error.diagnostics, error.sources ?? [])
  return error instanceof Error ? error.message : String(error)
}

/** The mark of a diagnostic; `null` if it is not about a place in the edited text. */
export function markOf(d: Diagnostic, text: string): Mark | null {
  if (d.span?.source !== MAIN) return null
  const from = Math.min(d.span.start, text.length)
  const to = Math.min(Math.max(d.span.end, from), text.length)
  return {
    from,
    to,
    severity: d.severity === 'warning' || d.severity === 'note' ? 'warning' : 'error',
    code: d.code,
    message: d.message,
    ...(d.expected ? { expected: d.expected } : {}),
    ...(d.hint ? { hint: d.hint } : {}),
    fixes: fixesOf(d, text.slice(from, to)),
  }
}

/** Replacements of the marked text: known names that are close to it, or a single piece of code in the hint. */
function fixesOf(d: Diagnostic, marked: string): readonly string[] {
  if (d.lookup && marked === d.lookup.name) {
    const names = nearest(d.lookup.name, d.lookup.candidates).slice(0, MAX_FIXES)
    if (names.length > 0) return names
  }
  const [, replacement] = /^(?:write|did you mean) `([^`…]+)`\??$/.exec(d.hint ?? '') ?? []
  return replacement !== undefined && marked !== '' ? [replacement] : []
}
