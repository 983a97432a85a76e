/** Locations and advice in errors of steps. */
import type { Advice, Span } from '../ast/diagnostics/diagnostic.ts'
import { orList } from '../ast/diagnostics/suggest.ts'

/** A part of a text, such as a step; its location is unknown if a program built it. */
export interface Located {
  readonly span?: Span | undefined
}

/** Returns the advice for a name that is unknown among the candidates. */
export const among = (name: string, candidates: readonly string[]): Advice => ({
  lookup: { name, candidates },
  ...(candidates.length > 0 && { expected: orList(candidates) }),
})
