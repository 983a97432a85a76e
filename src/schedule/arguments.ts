/**
 * What steps take. A primitive lists pieces in the order of its text, keywords as they are; each piece knows its syntax, and
 * its type what it is in a step as data and in a call from TypeScript.
 */
import type { Span } from '../ast/diagnostic.ts'
import { expectOptions } from '../ast/expect-argument.ts'
import type { StepName } from '../ast/nodes.ts'
import type { ListSyntax, Syntax, ValueSyntax } from '../ast/step-syntax.ts'
import type { ThreadAxis } from '../ir/expr.ts'
import type { Instr, Memory } from '../ir/instr.ts'
import type { LoopRef } from './loop-ref.ts'

/** Where a cached copy lives. */
export type CacheScope = 'shared' | 'register'
/** The same as a call gives it: declared memories by name, or as another program has them. */
export type MemoryScope = CacheScope | string | Memory

/** A piece of a step; fields `F` as data, `G` in what a call gives. Both are for the types alone. */
export interface Piece<F, G = F> {
  readonly syntax: Syntax
  readonly is?: F
  readonly given?: G
}

/** What a word takes: pieces and keywords. */
export type Takes = readonly (string | Piece<unknown, unknown>)[]
/** A list of pieces with the types of each. */
export const takes = <const T extends Takes>(...pieces: T): T => pieces
export const syntaxOf = (t: Takes): Syntax[] => t.map((p) => (typeof p === 'string' ? p : p.syntax))

/** A word with several forms. */
export interface Forms<T extends Takes> {
  readonly forms: readonly T[]
}
export const forms = <const T extends readonly Takes[]>(...of: T): Forms<T[number]> => ({ forms: of })

type Flat<T> = { [K in keyof T]: T[K] }
type Fields<T extends Takes> = T extends readonly [infer P, ...infer Rest extends Takes]
  ? (P extends Piece<infer F, unknown> ? F : unknown) & Fields<Rest>
  : unknown
type GivenFields<T extends Takes> = T extends readonly [infer P, ...infer Rest extends Takes]
  ? (P extends Piece<unknown, infer G> ? G : unknown) & GivenFields<Rest>
  : unknown

/** The step as data. */
export type StepOf<W extends string, T extends Takes> = T extends Takes
  ? Flat<{ readonly kind: W } & Fields<T> & { readonly span?: Span | undefined }>
  : never
/** What a call from TypeScript gives: declared memories and instructions may be named, nothing else is resolved. */
export type GivenOf<T extends Takes> = T extends Takes ? Flat<GivenFields<T>> : never

type Has<F extends string, T> = { readonly [K in F]: T }
type Maybe<T> = { readonly [K in keyof T]?: T[K] | undefined }

/** A piece for each name of a field. */
const piece =
  <T>(value: ValueSyntax) =>
  <const F extends string>(field: F): Piece<Has<F, T>> => ({ syntax: { field, value } })
const name = (of: StepName) => piece<string>({ kind: 'name', of })
const list = (of: ValueSyntax, more: Partial<ListSyntax> = {}): ListSyntax => ({
  kind: 'list',
  of,
  parentheses: true,
  what: 'name',
  ...more,
})

const LOOP = { kind: 'loop', handles: true } as const
const ITERATOR = { kind: 'loop', handles: false } as const
const INTEGER = { kind: 'integer', operand: false } as const

export const loop = piece<LoopRef>(LOOP)
export const iterator = piece<string>(ITERATOR)
export const integer = piece<number>(INTEGER)
/** An integer beside an operator. */
export const operand = piece<number>({ kind: 'integer', operand: true })
/** An iteration, or the nest of loops that it became. */
export const nest = name('nest')
/** A size of the kernel. */
export const size = name('size')
export const buffer = name('buffer')
export const newLoop = name('new loop')
export const newBuffer = name('new buffer')
/** A nest inside of a loop, or a number of statements. */
export const place = piece<string | number>({ kind: 'place' })
/** `io to block.x, ii to thread.x` */
export const bindings = piece<readonly { readonly loop: LoopRef; readonly to: ThreadAxis }[]>(
  list({ kind: 'binding' }, { parentheses: false }),
)
/** `(i, j)` */
export const loops = piece<readonly LoopRef[]>(list(LOOP, { what: 'loop' }))
export const iterators = (least: number) => piece<readonly string[]>(list(ITERATOR, { least }))
export const nests = piece<readonly string[]>(list({ kind: 'name', of: 'nest' }))
/** `(8, 32)`: one for each of another list. */
export const factors = (each: string) =>
  piece<readonly number[]>(list(INTEGER, { what: 'factor', count: { times: 1, field: each } }))
/** `(io, fo, ii, fi)`: so many for each of another list. */
export const newLoops = (times: number, each: string) =>
  piece<readonly string[]>(list({ kind: 'name', of: 'new loop' }, { count: { times, field: each } }))
/** `(io, ii)` */
export const twoNewLoops = piece<readonly [string, string]>(
  list({ kind: 'name', of: 'new loop' }, { count: 2 }),
)
/** What a step has as data only. */
export const data = <T>(is: (x: unknown) => boolean, expected: string) =>
  piece<T>({ kind: 'data', is, expected })
/** A keyword or sign that means something. */
export const word = <const M extends string>(text: string, means: M) =>
  piece<M>({ kind: 'word', text, means })
/** A keyword that is there or not. */
export const flag = <const F extends string>(text: F) =>
  optional(piece<boolean>({ kind: 'word', text, means: true })(text))

export const optional = <const T extends Takes>(
  ...of: T
): Piece<Maybe<Fields<T>>, Maybe<GivenFields<T>>> => ({ syntax: { optional: syntaxOf(of) } })

/** Where a copy is: plain memory, or a declared one of its scope, of whose tiles the copy is made. */
export const memory: Piece<
  { readonly scope: CacheScope; readonly memory?: Memory | undefined },
  { readonly place: MemoryScope }
> = { syntax: { field: 'scope', value: { kind: 'instance', of: 'memory' } } }

export const instruction: Piece<{ readonly instr: Instr }, { readonly instr: string | Instr }> = {
  syntax: { field: 'instr', value: { kind: 'instance', of: 'instr' } },
}

/** Options at the end of a call. @throws SptError `api/unknown-option` */
export function options<T extends object>(
  word: string,
  given: T | undefined,
  known: readonly (keyof T & string)[],
): Partial<T> {
  if (given !== undefined) expectOptions(word, given, known)
  return given ?? {}
}
