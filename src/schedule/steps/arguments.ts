/**
 * Argument syntax of schedule steps. Each primitive declares its arguments as a list of pieces and keywords, in the
 * order of the text. A piece determines the syntax in `.spt` text, the type of the field in a step as data, and the
 * type of the argument in a TypeScript call.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import type { StepName } from '../../ast/nodes/nodes.ts'
import type { ListSyntax, Syntax, ValueSyntax } from '../../ast/nodes/step-syntax.ts'
import type { ThreadAxis } from '../../ir/expressions/expr.ts'
import type { Instr, Memory } from '../../ir/instructions/instr.ts'
import type { LoopRef } from '../names/kernel-names.ts'

/** The memory scope of a cached copy. */
export type CacheScope = 'shared' | 'register'
/**
 * A memory scope as an argument of a TypeScript call: a `CacheScope`, the name of a declared memory, or a `Memory` of
 * another program.
 */
export type MemoryScope = CacheScope | string | Memory

/**
 * One argument of a step. `F` is the type of its fields in a step as data, `G` in a TypeScript call. The properties
 * `is` and `given` carry these types and are never set.
 */
export interface Piece<F, G = F> {
  readonly syntax: Syntax
  readonly is?: F
  readonly given?: G
}

/** The arguments of a step: pieces, and keywords as strings. */
export type Takes = readonly (string | Piece<unknown, unknown>)[]
/** Returns the pieces unchanged, typed as a tuple. */
export const takes = <const T extends Takes>(...pieces: T): T => pieces
export const syntaxOf = (t: Takes): Syntax[] => t.map((p) => (typeof p === 'string' ? p : p.syntax))

/** The arguments of a step that has several syntactic forms. */
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

/** The type of a step as data: `kind`, the fields of all pieces, and an optional source span. */
export type StepOf<W extends string, T extends Takes> = T extends Takes
  ? Flat<{ readonly kind: W } & Fields<T> & { readonly span?: Span | undefined }>
  : never
/**
 * The type of the arguments in a TypeScript call. Only memories and instructions may be given by name; other names
 * are not resolved.
 */
export type GivenOf<T extends Takes> = T extends Takes ? Flat<GivenFields<T>> : never

type Has<F extends string, T> = { readonly [K in F]: T }
type Maybe<T> = { readonly [K in keyof T]?: T[K] | undefined }

/** Returns a function that builds the piece of a named field with this value syntax. */
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
/** An integer operand of an operator. */
export const operand = piece<number>({ kind: 'integer', operand: true })
/** The name of an iteration, or of the loop nest into which the iteration was lowered. */
export const nest = name('nest')
/** The name of a size parameter of the kernel. */
export const size = name('size')
export const buffer = name('buffer')
export const newLoop = name('new loop')
export const newBuffer = name('new buffer')
/** A position in the body of a loop: the name of a loop nest, or a number of statements. */
export const place = piece<string | number>({ kind: 'place' })
/** A list of bindings, such as `io to block.x, ii to thread.x`. */
export const bindings = piece<readonly { readonly loop: LoopRef; readonly to: ThreadAxis }[]>(
  list({ kind: 'binding' }, { parentheses: false }),
)
/** A list of loops, such as `(i, j)`. */
export const loops = piece<readonly LoopRef[]>(list(LOOP, { what: 'loop' }))
export const iterators = (least: number) => piece<readonly string[]>(list(ITERATOR, { least }))
export const nests = piece<readonly string[]>(list({ kind: 'name', of: 'nest' }))
/** A list of factors, such as `(8, 32)`, with one entry for each entry of the list field `each`. */
export const factors = (each: string) =>
  piece<readonly number[]>(list(INTEGER, { what: 'factor', count: { times: 1, field: each } }))
/** New loop names, such as `(io, fo, ii, fi)`: `times` for each entry of the list field `each`. */
export const newLoops = (times: number, each: string) =>
  piece<readonly string[]>(list({ kind: 'name', of: 'new loop' }, { count: { times, field: each } }))
/** Exactly two new loop names, such as `(io, ii)`. */
export const twoNewLoops = piece<readonly [string, string]>(
  list({ kind: 'name', of: 'new loop' }, { count: 2 }),
)
/** A field of steps as data without syntax. `is` validates the value, which `expected` describes. */
export const data = <T>(is: (x: unknown) => boolean, expected: string) =>
  piece<T>({ kind: 'data', is, expected })
/** A required keyword or sign `text` that sets its field to `means`. */
export const word = <const M extends string>(text: string, means: M) =>
  piece<M>({ kind: 'word', text, means })
/** An optional keyword that sets the field of the same name to true. */
export const flag = <const F extends string>(text: F) =>
  optional(piece<boolean>({ kind: 'word', text, means: true })(text))

export const optional = <const T extends Takes>(
  ...of: T
): Piece<Maybe<Fields<T>>, Maybe<GivenFields<T>>> => ({ syntax: { optional: syntaxOf(of) } })

/** The memory of a copy: a plain scope, or a declared memory of that scope, of whose tiles the copy consists. */
export const memory: Piece<
  { readonly scope: CacheScope; readonly memory?: Memory | undefined },
  { readonly place: MemoryScope }
> = { syntax: { field: 'scope', value: { kind: 'instance', of: 'memory' } } }

export const instruction: Piece<{ readonly instr: Instr }, { readonly instr: string | Instr }> = {
  syntax: { field: 'instr', value: { kind: 'instance', of: 'instr' } },
}

/**
 * Returns the options at the end of a call; an empty object if `given` is undefined. @throws SptError
 * `api/unknown-option`
 */
export function options<T extends object>(
  word: string,
  given: T | undefined,
  known: readonly (keyof T & string)[],
): Partial<T> {
  if (given !== undefined) expectOptions(word, given, known)
  return given ?? {}
}
