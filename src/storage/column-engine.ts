/**
 * Frames of columns by name, one element for each entry, and the data-parallel operations of conversion on them: map, reduce, sort,
 * gather, scatter, scan. An engine says where columns lie and who works on them: typed arrays on the host, kernels on a device.
 */
import type { Span } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import type { Coroutine } from './coroutines.ts'
import type {
  Bitmap,
  Counting,
  Cuts,
  Grouped,
  Reduced,
  Repeated,
  Scope,
  Segments,
  SortKey,
  Starts,
  Stored,
  Unmeasured,
} from './engine-operands.ts'
import { FrameKnowledge } from './frame-knowledge.ts'
import type { Order } from './sort-elision.ts'
import type { Level, PlacedEntries } from './storage.ts'

export interface Column {
  readonly length: number
}

/** The index of an entry, as a name in expressions. */
export const ENTRY = '@entry'

export class Frame<C extends Column> extends FrameKnowledge {
  readonly engine: Engine<C>
  readonly n: number
  /** One element for each entry. */
  readonly columns = new Map<string, C>()
  /** Columns that are made when they are asked for. */
  readonly deferred = new Map<string, () => C>()
  /** Arrays that expressions load at an index. */
  readonly tables: Map<string, C>
  /** Entry of the source; `null`: entry e is e. */
  entry: C | null = null
  /** Keys in whose lexicographic order the entries are known to stand. */
  sortedBy: Order = []
  /** What is to be done when the frame is released. */
  onRelease: (() => void) | null = null
  readonly #owned = new Set<C>()

  constructor(
    engine: Engine<C>,
    n: number,
    sizes: ReadonlyMap<string, number>,
    tables: ReadonlyMap<string, C> = new Map(),
  ) {
    super(sizes)
    this.engine = engine
    this.n = n
    this.tables = new Map(tables)
  }

  column(name: string): C | undefined {
    const known = this.columns.get(name)
    const make = known === undefined ? this.deferred.get(name) : undefined
    if (!make) return known
    this.deferred.delete(name)
    const made = make()
    this.set(name, made)
    return made
  }

  names(): string[] {
    return [...this.columns.keys(), ...this.deferred.keys()]
  }

  /** A column under a name; the frame releases what it owns. */
  set(name: string, column: C, owned = true): void {
    this.drop(name)
    this.columns.set(name, column)
    if (owned) this.#owned.add(column)
  }

  setEntry(column: C, owned = true): void {
    if (this.entry && this.#owned.delete(this.entry)) this.engine.release(this.entry)
    this.entry = column
    if (owned) this.#owned.add(column)
  }

  drop(name: string): void {
    this.deferred.delete(name)
    const old = this.columns.get(name)
    this.columns.delete(name)
    if (old && this.#owned.delete(old)) this.engine.release(old)
  }

  /** The column is no longer the frame's to release; whether it was. */
  keep(column: C): boolean {
    return this.#owned.delete(column)
  }

  release(): void {
    this.engine.release(...this.#owned)
    this.#owned.clear()
    this.columns.clear()
    this.deferred.clear()
    this.onRelease?.()
    this.onRelease = null
  }

  /** A frame that knows what this one does of columns and sizes, without columns. */
  sibling(n: number): Frame<C> {
    const [bounds, fills, lists] = [new Map(this.bounds), new Map(this.fills), new Map(this.lists)]
    const known = { bounds, fills, lists, signed: new Set(this.signed) }
    return Object.assign(new Frame(this.engine, n, this.sizes, this.tables), known)
  }
}

/**
 * Operations on all entries of a frame, or all elements of a column. Expressions are over the names of a frame: its
 * columns, sizes and tables, and `ENTRY`.
 */
export interface Engine<C extends Column> {
  // Columns -------------------------------------------------------------------------------------------------------
  upload(values: Int32Array, label: string): Coroutine<C>
  /** Gives back what was uploaded. */
  unload(...columns: readonly C[]): void
  /** Gives memory back that nobody uses any more. */
  release(...columns: readonly (C | null | undefined)[]): void
  /** Elements that are all written before they are read. */
  empty(length: number, label: string): C
  filled(length: number, value: number, label: string): C
  /** Parts one after the other; of each the elements that `entry` names. */
  concatenated(
    parts: readonly { readonly column: C; readonly entry: C | null; readonly n: number }[],
    dtype: Dtype,
  ): C
  /** Refuses what 32 bits do not count. */
  tooLarge(count: number, what: string, span?: Span): never
  /** Work that does not depend on each other. */
  together(work: readonly Coroutine<void>[]): Coroutine<void>
  /** All that was asked for has been begun. */
  flush(): Coroutine<void>

  // Map -----------------------------------------------------------------------------------------------------------
  /** A new column with the values of an expression. */
  compute(frame: Frame<C>, name: string, e: Expr): void
  /** The same if none of the conditions holds of any entry; otherwise the first entry for each, -1 for none. */
  computeChecked(
    frame: Frame<C>,
    name: string,
    e: Expr,
    conditions: readonly Expr[],
  ): Coroutine<readonly number[]>
  /** An expression with the same values, cheap to use several times; `late`: computed when used, if what it names is there then. */
  materialize(frame: Frame<C>, name: string, e: Expr, late?: boolean): Expr
  /** Values at one entry. */
  valuesAt(frame: Frame<C>, exprs: readonly Expr[], entry: number): Coroutine<readonly number[]>
  /** Whether 32 bits hold all that an expression computes on its way, or that is refused already. */
  fits(frame: Frame<C>, e: Expr): boolean
  /** Whether loads beyond a table read its fill (`Frame.fills`). */
  readonly fillsTables: boolean
  /** Values of a tensor as a table that expressions load; the type they have there. */
  bindNumbers(frame: Frame<C>, name: string, values: C, dtype: Dtype): Dtype

  // Reduce --------------------------------------------------------------------------------------------------------
  /** The first entry of the source of which each condition holds; -1: none. */
  first(frame: Frame<C>, conditions: readonly Expr[]): Coroutine<readonly number[]>
  /** The largest value of what is not negative. */
  largest(frame: Frame<C>, e: Expr): Coroutine<number>
  /** Bounds of an expression, both including 0. */
  bounds(frame: Frame<C>, e: Expr): Coroutine<readonly [number, number]>
  /** Whether it is seen that the entries ascend, and so no two are equal. */
  ascends(frame: Frame<C>, dims: Scope<C>['dims']): boolean

  // Sort, gather, scatter -----------------------------------------------------------------------------------------
  /** The entries in lexicographic order, stable; an extent that is left out is measured. */
  order(frame: Frame<C>, keys: readonly Unmeasured[]): Coroutine<Frame<C>>
  /** What was computed of entries in order, of the entries as they stand in `frame`. */
  restore(frame: Frame<C>, ordered: Frame<C>, name: string, e: Expr): Expr
  /** A frame of the entries with each value of a column below `count`, in order. Takes the frame over. */
  partition(frame: Frame<C>, name: string, count: number): Coroutine<Frame<C>[]>
  /** The entries of which the condition holds, with new columns. */
  compact(
    frame: Frame<C>,
    condition: Expr,
    columns: ReadonlyMap<string, Expr>,
    sizes: ReadonlyMap<string, number>,
  ): Coroutine<Frame<C>>
  /** `to[at] = value`; where places are equal, so are values, or any of them may stay. */
  scatter(frame: Frame<C>, to: C, at: Expr, value: Expr): void
  /** The same of entries in order of `at`, for the first at each place. */
  scatterFirsts(frame: Frame<C>, to: C, at: Expr, value: Expr): void

  // Scan ----------------------------------------------------------------------------------------------------------
  /** `none` becomes what is before it in its segment. Takes `held` over. `empty`: a segment that begins with it; -1: none. */
  repeatLast(held: C, width: number, none: number, label: string): Coroutine<Repeated<C>>
  /** The number of the run that each entry is in, and how many there are. */
  runs(frame: Frame<C>, name: string, starts: Starts): Coroutine<number>
  /** The number of the run among those with the same first `within` keys. */
  ranks(frame: Frame<C>, name: string, starts: Starts, within: number): void
  /** 1 where `width` runs have passed since a key of `within` changed or the last 1; `rank`: how many since then. */
  cuts(frame: Frame<C>, name: string, rank: string | null, of: Cuts): void
  /** Of entries in order of `at`: where segments of positions end under each parent, `indptr`. */
  segmentEnds(frame: Frame<C>, at: Expr, parent: Expr, parents: number, label: string): C
  /** The `indptr` of one segment. */
  segment(positions: number, label: string): C
  /** 1 + the largest coordinate under each parent; 0: none. */
  lengths(frame: Frame<C>, parent: Expr, coordinate: Expr, parents: number, label: string): C
  /** `indptr` from lengths, whose sum is `most` at most. */
  offsets(lengths: C, most: number, label: string): Coroutine<{ readonly indptr: C; readonly total: number }>
  /** A bit for each coordinate under each parent, and a column of positions. */
  bitmap(
    frame: Frame<C>,
    name: string,
    starts: Starts,
    of: Bitmap,
  ): Coroutine<{ readonly mask: C; readonly indptr: C; readonly positions: number }>
  /**
   * Where an engine ranks the coordinates of each segment without an order, if that is cheaper: their numbers, and a
   * column of ranks. `null`: entries are to be ordered by `keys`, or are.
   */
  readonly ranked:
    | ((frame: Frame<C>, name: string, of: Segments, keys: readonly SortKey[]) => C | null)
    | null

  // Queries and values --------------------------------------------------------------------------------------------
  /** How many different tuples; `apart`: no two entries agree in `by` and `of`. */
  count(frame: Frame<C>, q: Counting, apart: boolean): Coroutine<void>
  /** How many smaller ones. */
  rank(frame: Frame<C>, q: Counting, apart: boolean): Coroutine<void>
  /** The least value of the group. */
  least(frame: Frame<C>, q: Reduced): Coroutine<void>
  /** Place by decreasing magnitude; ties by coordinate, equal coordinates have one place. */
  largestFirst(frame: Frame<C>, q: Grouped, scope: Scope<C>): Coroutine<void>
  /** Values by entry of the source, as a column. */
  takeValues(frame: Frame<C>, name: string, values: C): void
  /** By entry of the source: the sum of all values at its coordinates, as a number; where they are known to be apart, its own. */
  sumsOfEqual(
    frame: Frame<C>,
    values: C,
    dtype: Dtype,
    dims: Scope<C>['dims'],
    distinct: boolean,
  ): Coroutine<{ readonly sums: C; readonly distinct: boolean }>
  /** Values where their entries stand, the fill elsewhere; values at one position add up. And where that is, if it is kept. */
  storeValues(
    frame: Frame<C>,
    at: Expr,
    size: number,
    of: Stored<C>,
  ): { readonly values: C; readonly entries: PlacedEntries<C> | null }

  // Levels --------------------------------------------------------------------------------------------------------
  /** The position of each entry in a level that is there already; `null`: there are no such levels. */
  readonly find:
    | ((frame: Frame<C>, name: string, level: Level<C>, parent: Expr | null, coordinate: Expr) => Expr)
    | null
  /** The parent of each position. */
  parentsOf(indptr: C, parents: number, positions: number): C
  /** Parents and coordinates of the bits of a bitmap that are set. */
  bitsOf(level: Level<C>, parents: number): { readonly parents: C; readonly coordinates: C }
}
