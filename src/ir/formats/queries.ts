/**
 * Queries, each declared once: properties of stored coordinates that formats use (attribute queries, Chou, Kjolstad and
 * Amarasinghe, PLDI 2020, section 5). The declaration determines nodes, translation, comparison, dependences, bounds
 * and the column on every engine.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../expressions/expr.ts'
import { add, and, binary, cast, eq, int, load, lt, mul, search, select } from '../expressions/expr.ts'
import { keyOf } from '../expressions/structural-equality.ts'
import type { Dtype } from '../values/dtype.ts'

/** Kinds of operands: i32 expressions over dimensions, parameters and earlier queries, or names of data. */
interface Operands {
  readonly tuple: readonly Expr[]
  readonly expr: Expr
  readonly list: string
  readonly set: string
  readonly sort: string
}
type Takes = Readonly<Record<string, keyof Operands>>
type Fields<T extends Takes> = { readonly [F in keyof T]: Operands[T[F]] }

/** Bounds of a query's value, as far as they are known: `least <= value < end`. */
export interface Bounds {
  readonly least?: Expr | undefined
  readonly end?: Expr | undefined
}

interface Extents {
  /** Upper bound on the number of distinct tuples. */
  readonly distinctTuples: (of: readonly Expr[]) => Expr | undefined
  /** Bounds of the number of the segment that contains an expression, and of places in a sort. */
  readonly list: (name: string, of: Expr) => Bounds
  readonly sort: (name: string) => Bounds
}

/** Data given with a tensor, as tables that expressions load. */
export interface Tables {
  /** The coordinates on the scope's dimensions. */
  readonly dims: readonly Expr[]
  /** The table of the places of coordinates in a sort; coordinates have been checked to be in range. */
  readonly sort: (name: string) => string
  readonly list: (name: string) => { readonly table: string; readonly length: Expr }
  /** The levels of a set as a tree, without its dense root; `null`: an empty set. */
  readonly set: (name: string) => readonly { readonly indptr: string; readonly indices: string }[] | null
}

interface Declaration<T extends Takes> {
  /** The syntax, for messages; absent for queries without a keyword. */
  readonly form?: string
  readonly takes: T
  /** The query is a condition in the source. */
  readonly isCondition?: true
  /**
   * The query has one value per queried coordinate, stored or not; per group of equal `by` (0 if empty); per
   * tuple; or per element.
   */
  readonly per: 'coordinate' | 'group' | 'tuple' | 'element'
  /** Type of the value; i32 by default. */
  readonly dtype?: Dtype
  /** The query depends on the tensor's values, not only on coordinates. */
  readonly readsValues?: true
  /**
   * `places`: the table of the sort holds `of` at the index that the query returns. `contained`: `list[k] <= of <
   * list[k + 1]` for the returned k.
   */
  readonly inverse?: 'places' | 'found'
  readonly bounds: (q: Fields<T>, extents: Extents) => Bounds
  /** An operation that engines evaluate over all entries, from `of` and `by`; or an expression over tables. */
  readonly column:
    | 'count'
    | 'rank'
    | 'least'
    | 'rankByMagnitude'
    | 'takeValues'
    | ((q: Fields<T>, tables: Tables) => Expr)
}

const query = <const T extends Takes>(d: Declaration<T>): Declaration<T> => d

export const QUERIES = {
  /** The number of distinct tuples `of` among coordinates with the same `by`. */
  count: query({
    form: 'count(j by i)',
    takes: { of: 'tuple', by: 'tuple' },
    per: 'group',
    bounds({ of }, { distinctTuples }) {
      const maxTuples = distinctTuples(of)
      return { least: int(1), end: maxTuples && add(maxTuples, int(1)) }
    },
    column: 'count',
  }),
  /** The number of distinct tuples less than `of` (lexicographically) among coordinates with the same `by`. */
  rank: query({
    form: 'rank(j by i)',
    takes: { of: 'tuple', by: 'tuple' },
    per: 'tuple',
    bounds: ({ of }, { distinctTuples }) => ({ least: int(0), end: distinctTuples(of) }),
    column: 'rank',
  }),
  /** The least `of` among coordinates with the same `by`; of a hash of columns, a minhash (Broder, 1997). */
  least: query({
    form: 'least(j % 64 by i)',
    takes: { of: 'expr', by: 'tuple' },
    per: 'group',
    bounds: () => ({ least: int(0) }),
    column: 'least',
  }),
  /** Rank by decreasing magnitude of the value among coordinates with the same `by`; ties by coordinate. */
  largest: query({
    form: 'largest(by i)',
    takes: { by: 'tuple' },
    per: 'element',
    readsValues: true,
    bounds: () => ({ least: int(0) }),
    column: 'rankByMagnitude',
  }),
  /** The value (1 in a pattern); sums of duplicates. */
  value: query({
    form: 'value',
    takes: {},
    per: 'element',
    dtype: 'f64',
    readsValues: true,
    bounds: () => ({}),
    column: 'takeValues',
  }),
  /** 1 if the set contains the coordinate, otherwise 0: a search on each level, within the previous segment. */
  held: query({
    form: 'held(m), where m is a set',
    takes: { set: 'set' },
    isCondition: true,
    per: 'element',
    bounds: () => ({ least: int(0), end: int(2) }),
    column({ set }, { dims, set: levelsOf }) {
      const levels = levelsOf(set)
      if (!levels) return int(0)
      // The first dimension is dense unless it is the only one.
      const dense = dims.length - levels.length
      let position: Expr = dense > 0 ? dims[0]! : int(0)
      let contained: Expr = eq(int(0), int(0))
      for (const [k, { indptr, indices }] of levels.entries()) {
        const c = dims[k + dense]!
        const end = load(indptr, [add(position, int(1))])
        const foundPosition = search('lower', indices, load(indptr, [position]), end, c)
        contained = and(
          contained,
          select(lt(foundPosition, end), eq(load(indices, [foundPosition]), c), eq(int(0), int(1))),
        )
        position = select(contained, foundPosition, int(0))
      }
      return select(contained, int(1), int(0))
    },
  }),
  /** Place of a coordinate in a sort. */
  place: query({
    takes: { sort: 'sort', of: 'expr' },
    per: 'coordinate',
    inverse: 'places',
    bounds: ({ sort }, extents) => extents.sort(sort),
    column: ({ sort, of }, tables) => load(tables.sort(sort), [of]),
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

type QueryKind = keyof typeof QUERIES

export type UnnamedQuery = {
  readonly [K in QueryKind]: { readonly kind: K } & Fields<(typeof QUERIES)[K]['takes']>
}[QueryKind]

/** A named query: one value for each stored coordinate that reaches the format or composition. */
export type Query = { readonly name: string; readonly span?: Span | undefined } & UnnamedQuery

/** The declaration of a query's kind; its fields are the operands that the kind takes. */
export const declarationOf = (q: UnnamedQuery): Declaration<Takes> =>
  QUERIES[q.kind] as unknown as Declaration<Takes>
export const asFields = (q: UnnamedQuery): Fields<Takes> => q as unknown as Fields<Takes>

export const boundsOfQuery = (q: UnnamedQuery, extents: Extents): Bounds =>
  declarationOf(q).bounds(asFields(q), extents)

const fieldsOf = (q: UnnamedQuery): readonly (readonly [string, Fields<Takes>[string]])[] =>
  Object.keys(declarationOf(q).takes).map((field) => [field, asFields(q)[field]!])

/** The query with mapped operands, and mapped names of its list, set or sort. */
export const mapQuery = <Q extends UnnamedQuery>(
  q: Q,
  expr: (e: Expr) => Expr,
  source: (name: string) => string,
): Q => {
  const mappedFields = fieldsOf(q).map(([field, x]) => [
    field,
    typeof x === 'string' ? source(x) : 'kind' in x ? expr(x) : x.map(expr),
  ])
  return { ...q, ...Object.fromEntries(mappedFields) }
}

/** The expressions that a query reads for each coordinate. */
export const operandsOf = (q: UnnamedQuery): readonly Expr[] =>
  fieldsOf(q).flatMap(([, x]) => (typeof x === 'string' ? [] : x))

/** The name of the list, set or sort that a query uses, if it takes one. */
export const sourceOf = (q: UnnamedQuery, kind: 'list' | 'set' | 'sort'): string | undefined =>
  kind in declarationOf(q).takes ? (asFields(q)[kind] as string) : undefined

/**
 * The expressions that determine the query's value for given stored coordinates; `null`: all coordinates of
 * the element.
 */
export function determiningExprs(q: UnnamedQuery): readonly Expr[] | null {
  const { per } = declarationOf(q)
  if (per === 'element') return null
  return per === 'group' ? (asFields(q).by as readonly Expr[]) : operandsOf(q)
}

/** A key that is equal for queries with equal values in one scope. */
export const queryKey = (q: UnnamedQuery): string => {
  const keys = fieldsOf(q).map(([, x]) => (typeof x === 'string' ? x : [x].flat().map(keyOf).join(' ')))
  return [q.kind, ...keys].join('; ')
}

// Words -----------------------------------------------------------------------------------------------------------

/** The parsed operands of a query word, and the dimensions in scope. */
interface WordOperands {
  readonly list: string
  readonly set: string
  readonly of: readonly Expr[]
  readonly by: readonly Expr[]
  readonly dims: readonly Expr[]
  readonly span: Span
}
type AddQuery = (q: UnnamedQuery) => Expr

interface Word {
  readonly form: string
  /** The kind of the first argument, if it is a list or set. */
  readonly sourceKind?: 'list' | 'set' | undefined
  /** Checks the number of argument expressions, given the number of dimensions; `null`: the word is not a call. */
  readonly takes: ((count: number, dims: number) => boolean) | null
  readonly takesBy: boolean
  readonly expand: (w: WordOperands, addQuery: AddQuery) => Expr
}

/** Words defined in terms of other queries. */
const DERIVED_WORDS: Readonly<Record<string, Word>> = {
  top: {
    form: 'top(n by i)',
    takes: (count) => count === 1,
    takesBy: true,
    expand: ({ of, by, span }, addQuery) => binary('lt', addQuery({ kind: 'largest', by }), of[0]!, span),
  },
  /** The fill ratio of a block: stored coordinates / block size, also at the edge. Blocks are aligned. */
  density: {
    form: 'density(b), or one size for each dimension',
    takes: (count, dims) => count === 1 || count === dims,
    takesBy: false,
    expand({ of, dims, span }, addQuery) {
      const sizes = dims.map((_, k) => (of.length === 1 ? of[0]! : of[k]!))
      const by = dims.map((c, k) => binary('div', c, sizes[k]!, span))
      const stored = cast(addQuery({ kind: 'count', of: dims, by }), 'f64')
      return binary('div', stored, cast(sizes.reduce(mul), 'f64'), span)
    },
  },
}

/** The word of a query, which takes the query's operands; a bare name if there are none. */
function wordOfQuery(kind: QueryKind, { takes, isCondition: holds }: Declaration<Takes>, form: string): Word {
  const fields = Object.keys(takes) as (keyof WordOperands)[]
  return {
    form,
    sourceKind: (['list', 'set'] as const).find((x) => x in takes),
    takes:
      fields.length > 0 ? (count) => (takes.of === 'tuple' ? count > 0 : count === (takes.of ? 1 : 0)) : null,
    takesBy: 'by' in takes,
    expand(w, addQuery) {
      const operands = { ...w, of: takes.of === 'expr' ? w.of[0]! : w.of }
      const value = addQuery({
        kind,
        ...Object.fromEntries(fields.map((f) => [f, operands[f]])),
      } as UnnamedQuery)
      return holds ? binary('ne', value, int(0)) : value
    },
  }
}

/** Query words by their spelling; `place[i]` is written with the name of its sort instead. */
export const QUERY_WORDS: ReadonlyMap<string, Word> = new Map([
  ...Object.entries<Declaration<Takes>>(QUERIES as object as Record<QueryKind, Declaration<Takes>>).flatMap(
    ([kind, d]) => (d.form === undefined ? [] : [[kind, wordOfQuery(kind as QueryKind, d, d.form)] as const]),
  ),
  ...Object.entries(DERIVED_WORDS),
])

export const queryWords = (test: (w: Word) => boolean): readonly string[] =>
  [...QUERY_WORDS].flatMap(([word, w]) => (test(w) ? [word] : []))
