/** Errors of steps. */
import { fail, type Problem, type Span } from '../ast/diagnostics/diagnostic.ts'

/** A part of a text, such as a step; its location is unknown if a program built it. */
export interface Located {
  readonly span?: Span | undefined
}

/** Throws a user error with the location of `at`, if it is known. */
export function refuseAt(code: string, { span }: Located, problem: Problem): never {
  fail({ code, ...problem, ...(span ? { span } : {}) })
}
