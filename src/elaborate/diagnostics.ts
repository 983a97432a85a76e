/**
 * Collection of the errors of a program, so that a run shows several errors. Elaboration is synchronous, and errors are
 * added to the innermost collection. Functions that have reported an error return null, or false for a check.
 */
import type { Diagnostic, Problem, Span } from '../ast/diagnostics/diagnostic.ts'
import { invariant, resultOrError, SptError } from '../ast/diagnostics/diagnostic.ts'
import type { Ident } from '../ast/nodes/nodes.ts'

const MAX_ERRORS = 50

/** Errors in the order of detection. The same message about the same place is thrown once, but counts each time. */
export type Errors = Diagnostic[]

let errors: Errors | undefined

/** Runs `work`, whose errors are added to `into`. */
export function reportingTo<T>(into: Errors, work: () => T): T {
  const outer = errors
  errors = into
  try {
    return work()
  } finally {
    errors = outer
  }
}

/** The collection of the errors of the running elaboration. */
export function currentErrors(): Errors {
  invariant(errors, 'an error is reported during elaboration')
  return errors
}

/** Runs `work`, and returns the result and the errors. */
export function collectErrors<T>(work: () => T): {
  readonly result: T
  readonly errors: readonly Diagnostic[]
} {
  const own: Errors = []
  return { result: reportingTo(own, work), errors: own }
}

/** Runs `work`, and throws the errors, file by file in the order of the text. */
export function throwErrors<T>(work: () => T): T {
  const { result, errors: all } = collectErrors(work)
  if (all.length === 0) return result
  const keys = all.map((d) => `${d.code} ${d.span?.source} ${d.span?.start} ${d.message}`)
  const first = new Set(keys.map((key) => keys.indexOf(key)))
  const found = all.filter((_, k) => first.has(k))
  const sources = [...new Set(found.map((d) => d.span?.source))]
  const file = (d: Diagnostic): number => sources.indexOf(d.span?.source)
  const place = (d: Diagnostic): number => d.span?.start ?? 0
  const order = found.toSorted((a, b) => file(a) - file(b) || place(a) - place(b))
  throw new SptError(order.slice(0, MAX_ERRORS))
}

/** Reports an error about a place in the text, if the place is known. Returns null, the poisoned result. */
export const report = (code: string, span: Span | undefined, problem: Problem): null =>
  reportAll({ code, ...(span && { span }), ...problem })

export function reportAll(...diagnostics: readonly Diagnostic[]): null {
  currentErrors().push(...diagnostics)
  return null
}

/** The result of `work`; null after its user error, which is reported. */
export function orReport<T>(work: () => T): T | null {
  const result = resultOrError(work)
  return result instanceof SptError ? reportAll(...result.diagnostics) : result
}

export const errorCount = (): number => currentErrors().length

/** Reports a name that stands for something else in a place. */
export const anotherMeaning = ({ name, span }: Ident, where: string, hint: string): null =>
  report('check/duplicate', span, { message: `${name} has another meaning in ${where}`, hint })

/** The names that a list has before, each with its first occurrence. */
export const repeatedIn = (
  names: readonly Ident[],
): readonly { readonly name: Ident; readonly first: Ident }[] =>
  names.flatMap((name) => {
    const first = names.find((n) => n.name === name.name)!
    return first === name ? [] : [{ name, first }]
  })
