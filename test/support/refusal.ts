/** What must be refused. */
import { type Diagnostic, SptError } from '../../src/ast/diagnostics/diagnostic.ts'

/** The first diagnostic of what `f` throws, and nothing where it throws nothing. */
export function diagnosticOf(f: () => unknown): Diagnostic | undefined {
  try {
    f()
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!
    throw e
  }
  return undefined
}

/** The same, where there must be one. */
export function refusal(f: () => unknown): Diagnostic {
  const found = diagnosticOf(f)
  if (!found) throw new Error('nothing was refused')
  return found
}
