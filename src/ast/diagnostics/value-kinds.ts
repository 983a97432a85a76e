/** Kinds of option values, so that each is checked and described identically everywhere. */
import { expectArgument, expectOptions, isRecord } from './expect-argument.ts'

export interface ValueKind {
  readonly holds: (x: unknown) => boolean
  readonly expected: string
}

const kind = (expected: string, holds: (x: unknown) => boolean): ValueKind => ({ holds, expected })
const isNumber = (x: unknown): x is number => typeof x === 'number' && Number.isFinite(x)
const isText = (x: unknown): boolean => typeof x === 'string'

export const TEXT = kind('a text', isText)
export const TEXTS = kind('a list of texts', (x) => Array.isArray(x) && x.every(isText))
export const LIST = kind('a list', Array.isArray)
export const RECORD = kind('an object', isRecord)
export const FLAG = kind('true or false', (x) => typeof x === 'boolean')
export const FUNCTION = kind('a function', (x) => typeof x === 'function')
export const NUMBER = kind('a number', isNumber)
export const INTEGER = kind('an integer', Number.isSafeInteger)
export const COUNT = kind('a whole number from 0 on', (x) => Number.isSafeInteger(x) && (x as number) >= 0)
export const POSITIVE_COUNT = kind(
  'a whole number from 1 on',
  (x) => Number.isSafeInteger(x) && (x as number) >= 1,
)
export const SECONDS = kind('seconds, more than 0', (x) => typeof x === 'number' && x > 0)
export const MILLISECONDS = kind('milliseconds, more than 0', (x) => typeof x === 'number' && x > 0)
export const SIGNAL = kind(
  'the signal of an AbortController',
  (x) => isRecord(x) && typeof x.addEventListener === 'function',
)
export const oneOf = (words: readonly string[]): ValueKind =>
  kind(words.join(', '), (x) => typeof x === 'string' && words.includes(x))
export const either = (a: ValueKind, b: ValueKind): ValueKind =>
  kind(`${a.expected}, or ${b.expected}`, (x) => a.holds(x) || b.holds(x))
export const listOf = (kindOfItems: ValueKind, expected: string): ValueKind =>
  kind(expected, (x) => Array.isArray(x) && x.every(kindOfItems.holds))
export const recordOf = (kindOfItems: ValueKind, expected: string): ValueKind =>
  kind(expected, (x) => isRecord(x) && Object.values(x).every(kindOfItems.holds))

/** Checks the value of an argument. @throws SptError `api/argument` */
export const expectValue = (what: string, value: unknown, { holds, expected }: ValueKind): void =>
  expectArgument(holds(value), what, value, expected)

/** Checks the options that are given; `undefined` counts as absent. @throws SptError `api/argument` */
export function expectValues(values: object, kinds: Readonly<Record<string, ValueKind>>): void {
  for (const [name, kindOfItems] of Object.entries(kinds)) {
    const value = (values as Readonly<Record<string, unknown>>)[name]
    if (value !== undefined) expectValue(name, value, kindOfItems)
  }
}

/** Checks the names and values of options. @throws SptError `api/argument`, `api/unknown-option` */
export function expectFields<T extends object>(
  subject: string,
  options: T,
  kinds: Readonly<Record<keyof T & string, ValueKind>>,
): void {
  expectOptions(subject, options, Object.keys(kinds) as (keyof T & string)[])
  expectValues(options, kinds)
}
