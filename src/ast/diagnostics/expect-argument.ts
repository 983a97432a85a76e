/** Checks of arguments in calls from JavaScript, which no compiler has type-checked. */
import { failWith } from './diagnostic.ts'

export function show(x: unknown): string {
  if (typeof x === 'string') return JSON.stringify(x.length > 40 ? `${x.slice(0, 40)}…` : x)
  if (Array.isArray(x)) return x.length === 0 ? 'an empty list' : 'a list'
  if (x instanceof Promise) return 'a promise'
  if (typeof x === 'object' && x !== null) return instanceText(x)
  if (typeof x === 'bigint') return `${x}n`
  return typeof x === 'function' ? 'a function' : String(x)
}

function instanceText(x: object): string {
  const name: unknown = x.constructor?.name
  if (typeof name !== 'string' || name === '' || name === 'Object') return 'an object'
  return `${/^[AEIO]/.test(name) ? 'an' : 'a'} ${name}`
}

/** A value given as a name, for messages; it may not be a string. */
export const nameText = (x: unknown): string => (typeof x === 'string' ? x : show(x))

/** Checks an argument of a public function. @throws SptError `api/argument` */
export function expectArgument(
  isValid: boolean,
  subject: string,
  value: unknown,
  expected: string,
  hint?: string,
): void {
  if (isValid) return
  // The caller cannot await a rejected promise argument: its rejection would end the process after this error was
  // caught.
  if (value instanceof Promise) value.catch(() => undefined)
  failWith('api/argument', `${subject} cannot be ${show(value)}`, {
    expected,
    ...(value instanceof Promise ? { hint: 'await the promise' } : hint === undefined ? {} : { hint }),
  })
}

/** @throws SptError `api/argument` if the list contains an element twice */
export function expectDistinct(subject: string, list: readonly unknown[]): void {
  // Called often: the duplicate is searched for only if there is one.
  if (new Set(list).size === list.length) return
  const repeated = list.find((x, k) => list.indexOf(x) < k)
  failWith('api/argument', `${show(repeated)} is twice among ${subject}`, {
    expected: 'each once',
    hint: 'remove the duplicate',
  })
}

export const isRecord = (x: unknown): x is Readonly<Record<string, unknown>> =>
  typeof x === 'object' && x !== null && !Array.isArray(x) && !ArrayBuffer.isView(x) && !(x instanceof Map)

/**
 * Checks that options are an object with known keys only; unknown ones would be ignored silently. @throws SptError
 * `api/argument`, `api/unknown-option`
 */
export function expectOptions<T extends object>(
  subject: string,
  options: T,
  known: readonly (keyof T & string)[],
  hintFor: (name: string) => string | undefined = () => undefined,
): void {
  expectArgument(isRecord(options), `the options of ${subject}`, options, 'an object')
  const name = Object.keys(options).find((k) => !(known as readonly string[]).includes(k))
  if (name === undefined) return
  const isSizes = (known as readonly string[]).includes('params') && /^size/i.test(name)
  const hint = isSizes ? 'give sizes by name: { m: 3 }' : hintFor(name)
  failWith('api/unknown-option', `${subject} has no option ${name}`, {
    lookup: { name, candidates: known },
    expected: known.length === 0 ? 'no options' : `some of ${known.join(', ')}`,
    ...(hint !== undefined && { hint }),
  })
}
