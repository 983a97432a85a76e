/** Codecs between values in memory and JSON: one table per type writes, reads and validates it, with the path of a malformed field. */
import { failAs } from '../ast/diagnostics/diagnostic.ts'
import type { JsonNumber } from './schema.ts'

export interface Codec<T> {
  write(value: T): unknown
  /** Throws SptError `plan/malformed` with the path of the field. */
  read(json: unknown, path: string): T
}

/** A codec of a field that may be absent. */
interface Optional<T> extends Codec<T> {
  readonly isOptional: true
}

export function malformed(path: string, json: unknown, expected: string): never {
  const text = JSON.stringify(json) ?? 'nothing'
  failAs('plan/malformed', {
    message: `${path === '' ? 'the plan' : `${path} of the plan`} is ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`,
    expected,
    hint: 'write the plan again: spt emit --target plan',
  })
}

/** The path of a field of the value at `path`. */
export const within = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`)

/** Levels of lists and objects that a reader follows. No compiled plan has as many. */
const DEEPEST = 500

/** Rejects values that are nested too deeply to be read. Throws SptError `plan/malformed` with the path of the field. */
export function checkDepth(json: unknown, at: string): void {
  const open: [value: unknown, path: string, depth: number][] = [[json, at, 0]]
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, path, depth] = next
    if (depth > DEEPEST) malformed(path, '…', `at most ${DEEPEST} nested lists and objects`)
    if (typeof value !== 'object' || value === null) continue
    for (const [key, x] of Object.entries(value))
      if (typeof x === 'object')
        open.push([
          x,
          depth > 3 ? path : Array.isArray(value) ? `${path}[${key}]` : within(path, key),
          depth + 1,
        ])
  }
}

/** A value that is the same in JSON. */
const plain = <T>(expected: string, holds: (json: unknown) => boolean): Codec<T> => ({
  write: (value) => value,
  read: (json, path) => (holds(json) ? (json as T) : malformed(path, json, expected)),
})

export const text = plain<string>('a text', (x) => typeof x === 'string')
export const flag = plain<boolean>('true or false', (x) => typeof x === 'boolean')
export const integer = plain<number>('an integer', Number.isSafeInteger)
export const count = plain<number>(
  'a whole number from 0 on',
  (x) => Number.isSafeInteger(x) && (x as number) >= 0,
)
export const oneOf = <const T extends string>(words: readonly T[]): Codec<T> =>
  plain(`one of ${words.join(', ')}`, (x) => words.includes(x as T))

const NUMBERS: Readonly<Record<string, number>> = { inf: Infinity, '-inf': -Infinity, nan: NaN }

/** Numbers, with infinities and NaN as texts. */
export const number: Codec<number> = {
  write: (value): JsonNumber =>
    Number.isFinite(value) ? value : Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf',
  read(json, path) {
    if (typeof json === 'number') return json
    const special = typeof json === 'string' ? NUMBERS[json] : undefined
    return special ?? malformed(path, json, 'a number, "inf", "-inf" or "nan"')
  },
}

export const list = <T>(item: Codec<T>, length?: number): Codec<readonly T[]> => ({
  write: (values) => values.map((x) => item.write(x)),
  read: (json, path) =>
    Array.isArray(json) && (length === undefined || json.length === length)
      ? json.map((x, k) => item.read(x, `${path}[${k}]`))
      : malformed(path, json, length === undefined ? 'a list' : `a list of ${length}`),
})

export const triple = <T>(item: Codec<T>): Codec<readonly [T, T, T]> =>
  list(item, 3) as unknown as Codec<readonly [T, T, T]>
export const pair = <T>(item: Codec<T>): Codec<readonly [T, T]> =>
  list(item, 2) as unknown as Codec<readonly [T, T]>

export const nullable = <T>(item: Codec<T>): Codec<T | null> => ({
  write: (value) => (value === null ? null : item.write(value)),
  read: (json, path) => (json === null ? null : item.read(json, path)),
})

export const optional = <T>(item: Codec<T>): Optional<T | undefined> => ({
  isOptional: true,
  write: (value) => (value === undefined ? undefined : item.write(value)),
  read: (json, path) => (json === undefined ? undefined : item.read(json, path)),
})

export const map = <T>(item: Codec<T>): Codec<ReadonlyMap<string, T>> => ({
  write: (values) => Object.fromEntries([...values].map(([key, x]) => [key, item.write(x)])),
  read: (json, path) =>
    new Map(Object.entries(objectAt(json, path)).map(([key, x]) => [key, item.read(x, `${path}.${key}`)])),
})

export function objectAt(json: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) malformed(path, json, 'an object')
  return json as Readonly<Record<string, unknown>>
}

/** Codecs of the fields of a type, so that none is forgotten. Fields in `Local` are not written. */
export type Fields<T, Local extends keyof T = never> = {
  readonly [F in Exclude<keyof T, Local | 'span'>]-?: Codec<T[F]>
}

/** An object with these fields and no others. */
export function record<T, Local extends keyof T = never>(fields: Fields<T, Local>): Codec<T> {
  const entries = Object.entries<Codec<unknown>>(fields as Readonly<Record<string, Codec<unknown>>>)
  return {
    write: (value) =>
      Object.fromEntries(
        entries.flatMap(([name, codec]) => {
          const own = codec.write((value as Readonly<Record<string, unknown>>)[name])
          return own === undefined ? [] : [[name, own]]
        }),
      ),
    read(json, path) {
      const given = objectAt(json, path)
      const unknown = Object.keys(given).find((name) => !(name in fields))
      if (unknown !== undefined)
        malformed(
          within(path, unknown),
          given[unknown],
          `no field besides ${entries.map(([n]) => n).join(', ')}`,
        )
      return Object.fromEntries(
        entries.flatMap(([name, codec]) => {
          const value = codec.read(given[name], within(path, name))
          return value === undefined ? [] : [[name, value]]
        }),
      ) as T
    },
  }
}

/** One of several types, which the value of a field distinguishes. */
export function tagged<T>(tag: keyof T & string, cases: Readonly<Record<string, Codec<never>>>): Codec<T> {
  const of = (value: unknown, path: string): Codec<unknown> => {
    const word = oneOf(Object.keys(cases)).read(value, `${path}.${tag}`)
    return cases[word] as unknown as Codec<unknown>
  }
  return {
    write: (value) => of(value[tag], '').write(value),
    read: (json, path) => of(objectAt(json, path)[tag], path).read(json, path) as T,
  }
}

/** A codec that is defined later, for recursive types. */
export const later = <T>(codec: () => Codec<T>): Codec<T> => ({
  write: (value) => codec().write(value),
  read: (json, path) => codec().read(json, path),
})
