/** Errors of steps. */
import { type Advice, fail, type Problem, type Span } from '../ast/diagnostics/diagnostic.ts'
import { orList } from '../ast/diagnostics/suggest.ts'

/** A part of a text, such as a step; its location is unknown if a program built it. */
export interface Located {
  readonly span?: Span | undefined
}

/** Throws a user error with the location of `at`, if it is known. */
export function refuseAt(code: string, { span }: Located, problem: Problem): never {
  fail({ code, ...problem, ...(span ? { span } : {}) })
}

/** Returns the advice for a name that is unknown among the candidates. */
export const among = (name: string, candidates: readonly string[]): Advice => ({
  lookup: { name, candidates },
  ...(candidates.length > 0 ? { expected: orList(candidates) } : {}),
})
