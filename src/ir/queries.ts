/**
 * Queries, each declared once: what a format can ask of each stored coordinate (attribute queries, Chou, Kjolstad and
 * Amarasinghe, PLDI 2020, section 5). Nodes, their translation and comparison, what decides an answer, its bounds and
 * its column on every engine follow.
 */
import type { Span } from '../ast/diagnostic.ts'
import type { Dtype } from './dtype.ts'
import { add, and, binary, cast, type Expr, eq, int, load, lt, mul, search, select } from './expr.ts'
import { keyOf } from './structural-equality.ts'

/** What an operand is: i32 expressions over dimensions, parameters and queries before, or what is looked up, by name. */
interface Operands {
  readonly tuple: readonly Expr[]
  readonly expr: Expr
  readonly list: string
  readonly set: string
  readonly sort: string
}
type Takes = Readonly<Record<string, keyof Operands>>
type Fields<T extends Takes> = { readonly [F in keyof T]: Operands[T[F]] }

/** `least <= answer < end`, where known. */
export interface Bounds {
  readonly least?: Expr | undefined
  readonly end?: Expr | undefined
}

/** What is known where bounds are asked for. */
interface Extents {
  /** How many different tuples there are at most. */
  readonly different: (of: readonly Expr[]) => Expr | undefined
  /** Of the numbers of segments that hold an expression, and of places. */
  readonly list: (name: string, of: Expr) => Bounds
  readonly sort: (name: string) => Bounds
}

/** What comes with the data, as tables that expressions load. */
export interface Tables {
  /** The coordinates of the scope. */
  readonly dims: readonly Expr[]
  /** Places by coordinate, which are within it: that is checked before. */
  readonly sort: (name: string) => string
  readonly list: (name: string) => { readonly table: string; readonly length: Expr }
  /** A tree without its dense root, level by level; `null`: an empty set. */
  readonly set: (name: string) => readonly { readonly indptr: string; readonly indices: string }[] | null
}

interface Declaration<T extends Takes> {
  /** How it is written, for messages; some have no word of their own. */
  readonly form?: string
  readonly takes: T
  /** It is written as a condition. */
  readonly holds?: true
  /**
   * What has one answer: a coordinate asked for, stored or not; a group, all with the same `by` (0 where nothing is
   * stored); a tuple asked for; an element, by all its coordinates.
   */
  readonly per: 'coordinate' | 'group' | 'tuple' | 'element'
  /** Otherwise i32. */
  readonly dtype?: Dtype
  /** It depends on the values, not on coordinates alone. */
  readonly ofValues?: true
  /** `places`: the table of the sort holds `of` at the answer; `found`: `list[answer] <= of < list[answer + 1]`. */
  readonly inverse?: 'places' | 'found'
  readonly bounds: (q: Fields<T>, extents: Extents) => Bounds
  /** An operation of engines on all entries, with what is asked of and by; or an expression over tables. */
  readonly column:
    | 'count'
    | 'rank'
    | 'least'
    | 'largestFirst'
    | 'takeValues'
    | ((q: Fields<T>, tables: Tables) => Expr)
}

const query = <const T extends Takes>(d: Declaration<T>): Declaration<T> => d

export const QUERIES = {
  /** How many different tuples `of` there are among coordinates with the same `by`. */
  count: query({
    form: 'count(j by i)',
    takes: { of: 'tuple', by: 'tuple' },
    per: 'group',
    bounds({ of }, { different }) {
      const most = different(of)
      return { least: int(1), end: most && add(most, int(1)) }
    },
    column: 'count',
  }),
  /** How many different tuples `of` are (lexicographically) smaller, among coordinates with the same `by`. */
  rank: query({
    form: 'rank(j by i)',
    takes: { of: 'tuple', by: 'tuple' },
    per: 'tuple',
    bounds: ({ of }, { different }) => ({ least: int(0), end: different(of) }),
    column: 'rank',
  }),
  /** The least `of` among coordinates with the same `by`: of a hash of columns, a minhash of each row (Broder, 1997). */
  least: query({
    form: 'least(j % 64 by i)',
    takes: { of: 'expr', by: 'tuple' },
    per: 'group',
    bounds: () => ({ least: int(0) }),
    column: 'least',
  }),
  /** Place by decreasing magnitude of the value among coordinates with the same `by`; ties by coordinate. */
  largest: query({
    form: 'largest(by i)',
    takes: { by: 'tuple' },
    per: 'element',
    ofValues: true,
    bounds: () => ({ least: int(0) }),
    column: 'largestFirst',
  }),
  /** The value (1 in a pattern); sums of duplicates. */
  value: query({
    form: 'value',
    takes: {},
    per: 'element',
    dtype: 'f64',
    ofValues: true,
    bounds: () => ({}),
    column: 'takeValues',
  }),
  /** 1 where the set has the coordinate, else 0: a search on each level, in the segment that the last one found. */
  held: query({
    form: 'held(m), where m is a set',
    takes: { set: 'set' },
    holds: true,
    per: 'element',
    bounds: () => ({ least: int(0), end: int(2) }),
    column({ set }, { dims, set: levelsOf }) {
      const levels = levelsOf(set)
      if (!levels) return int(0)
      // The first dimension is dense, but where it is the only one.
      const dense = dims.length - levels.length
      let position: Expr = dense > 0 ? dims[0]! : int(0)
      let found: Expr = eq(int(0), int(0))
      for (const [k, { indptr, indices }] of levels.entries()) {
        const c = dims[k + dense]!
        const end = load(indptr, [add(position, int(1))], 'i32')
        const at = search('lower', indices, load(indptr, [position], 'i32'), end, c)
        found = and(found, select(lt(at, end), eq(load(indices, [at], 'i32'), c), eq(int(0), int(1))))
        position = select(found, at, int(0))
      }
      return select(found, int(1), int(0))
    },
  }),
  /** Place of a coordinate in a sort. */
  place: query({
    takes: { sort: 'sort', of: 'expr' },
    per: 'coordinate',
    inverse: 'places',
    bounds: ({ sort }, extents) => extents.sort(sort),
    column: ({ sort, of }, tables) => load(tables.sort(sort), [of], 'i32'),
  }),
  /** The segment k of a list with `list[k] <= of < list[k + 1]`. */
  find: query({
    form: 'find(rows, i), where rows is a list',
    takes: { list: 'list', of: 'expr' },
    per: 'coordinate',
    inverse: 'found',
    bounds: ({ list, of }, extents) => extents.list(list, of),
    column({ list, of }, tables) {
      const { table, length } = tables.list(list)
      return add(search('upper', table, int(0), length, of), int(-1))
    },
  }),
}

export type QueryKind = keyof typeof QUERIES

/** A query that has no name yet. */
export type Question = {
  readonly [K in QueryKind]: { readonly kind: K } & Fields<(typeof QUERIES)[K]['takes']>
}[QueryKind]

/** A value for each stored coordinate of the scope: what reaches the format or composition that asks. */
export type Query = { readonly name: string; readonly span?: Span | undefined } & Question

/** What is said of its kind. Of any of them the fields are those that it takes. */
export const declarationOf = (q: Question): Declaration<Takes> =>
  QUERIES[q.kind] as unknown as Declaration<Takes>
export const asFields = (q: Question): Fields<Takes> => q as unknown as Fields<Takes>

export const boundsOfQuery = (q: Question, extents: Extents): Bounds =>
  declarationOf(q).bounds(asFields(q), extents)

const fieldsOf = (q: Question): readonly (readonly [string, Fields<Takes>[string]])[] =>
  Object.keys(declarationOf(q).takes).map((field) => [field, asFields(q)[field]!])

/** With other operands, and other names of what is looked up. */
export const mapQuery = <Q extends Question>(
  q: Q,
  expr: (e: Expr) => Expr,
  source: (name: string) => string,
): Q => {
  const mapped = fieldsOf(q).map(([field, x]) => [
    field,
    typeof x === 'string' ? source(x) : 'kind' in x ? expr(x) : x.map(expr),
  ])
  return { ...q, ...Object.fromEntries(mapped) }
}

/** What it reads of each coordinate. */
export const operandsOf = (q: Question): readonly Expr[] =>
  fieldsOf(q).flatMap(([, x]) => (typeof x === 'string' ? [] : x))

/** The name of what it looks up. */
export const sourceOf = (q: Question, kind: 'list' | 'set' | 'sort'): string | undefined =>
  kind in declarationOf(q).takes ? (asFields(q)[kind] as string) : undefined

/** What decides the answer, the stored coordinates as a whole being given; `null`: all of the element's coordinates. */
export function decidersOf(q: Question): readonly Expr[] | null {
  const { per } = declarationOf(q)
  if (per === 'element') return null
  return per === 'group' ? (asFields(q).by as readonly Expr[]) : operandsOf(q)
}

/** Equal for questions with equal answers in one scope. */
export const keyOfQuestion = (q: Question): string => {
  const keys = fieldsOf(q).map(([, x]) => (typeof x === 'string' ? x : [x].flat().map(keyOf).join(' ')))
  return [q.kind, ...keys].join('; ')
}

// Words -----------------------------------------------------------------------------------------------------------

/** What stands in the text: the operands of a call, the dimensions of the place. */
interface Written {
  readonly list: string
  readonly set: string
  readonly of: readonly Expr[]
  readonly by: readonly Expr[]
  readonly dims: readonly Expr[]
  readonly span: Span
}
type Ask = (q: Question) => Expr

interface Word {
  readonly form: string
  /** What comes first in a call. */
  readonly source?: 'list' | 'set' | undefined
  /** Of how many expressions, where there are so many dimensions; `null`: it is no call. */
  readonly takes: ((count: number, dims: number) => boolean) | null
  readonly grouped: boolean
  readonly means: (w: Written, ask: Ask) => Expr
}

/** Words that mean something in terms of queries. */
const COMPOSED: Readonly<Record<string, Word>> = {
  top: {
    form: 'top(n by i)',
    takes: (count) => count === 1,
    grouped: true,
    means: ({ of, by, span }, ask) => binary('lt', ask({ kind: 'largest', by }), of[0]!, span),
  },
  /** The share of a block's coordinates that are held: blocks are aligned, those at the edge count in full. */
  density: {
    form: 'density(b), or one size for each dimension',
    takes: (count, dims) => count === 1 || count === dims,
    grouped: false,
    means({ of, dims, span }, ask) {
      const sizes = dims.map((_, k) => (of.length === 1 ? of[0]! : of[k]!))
      const by = dims.map((c, k) => binary('div', c, sizes[k]!, span))
      const held = cast(ask({ kind: 'count', of: dims, by }), 'f64')
      return binary('div', held, cast(sizes.reduce(mul), 'f64'), span)
    },
  },
}

/** The word of a query: it is asked of what the query takes, and is a name alone where that is nothing. */
function wordOf(kind: QueryKind, { takes, holds }: Declaration<Takes>, form: string): Word {
  const fields = Object.keys(takes) as (keyof Written)[]
  return {
    form,
    source: (['list', 'set'] as const).find((x) => x in takes),
    takes:
      fields.length > 0 ? (count) => (takes.of === 'tuple' ? count > 0 : count === (takes.of ? 1 : 0)) : null,
    grouped: 'by' in takes,
    means(w, ask) {
      const written = { ...w, of: takes.of === 'expr' ? w.of[0]! : w.of }
      const answer = ask({ kind, ...Object.fromEntries(fields.map((f) => [f, written[f]])) } as Question)
      return holds ? binary('ne', answer, int(0)) : answer
    },
  }
}

/** By what is written; `place[i]` has the name of its sort. */
export const QUERY_WORDS: ReadonlyMap<string, Word> = new Map([
  ...Object.entries<Declaration<Takes>>(QUERIES as object as Record<QueryKind, Declaration<Takes>>).flatMap(
    ([kind, d]) => (d.form === undefined ? [] : [[kind, wordOf(kind as QueryKind, d, d.form)] as const]),
  ),
  ...Object.entries(COMPOSED),
])

export const wordsThat = (is: (w: Word) => boolean): readonly string[] =>
  [...QUERY_WORDS].flatMap(([word, w]) => (is(w) ? [word] : []))
