/**
 * Frames of named columns with one element per entry, and the data-parallel operations of conversion on them: map,
 * reduce, sort, gather, scatter, scan. An engine defines the location of columns and the execution: typed arrays on the
 * host, or kernels on a device.
 */
import type { Span } from '../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../ast/work.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import {
  type BitmapOptions,
  type CutOptions,
  type GroupReduction,
  type OpenSortKey,
  type Order,
  type PaddedSegments,
  type Scope,
  type Segments,
  type SortKey,
  type Starts,
  type StoredValues,
  sortedPrefix,
} from './engine-operands.ts'
import { FrameKnowledge } from './frame-knowledge.ts'
import type { Level, PlacedEntries } from './stored-level.ts'

export interface Column {
  readonly length: number
}

/** The name of an entry's index in expressions. */
export const ENTRY = '@entry'

export class Frame<C extends Column> extends FrameKnowledge {
  readonly engine: Engine<C>
  readonly n: number
  /** By name, with one element per entry. */
  readonly columns = new Map<string, C>()
  /** Columns computed on first use. */
  readonly deferred = new Map<string, () => C>()
  /** Arrays that expressions load at an index. */
  readonly tables: Map<string, C>
  /** Index of each entry in the source; `null`: the identity. */
  entry: C | null = null
  /** Keys by which the entries are known to be sorted lexicographically. */
  sortedBy: Order = []
  /** Called when the frame is released. */
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
    const existing = this.columns.get(name)
    const compute = existing === undefined ? this.deferred.get(name) : undefined
    if (!compute) return existing
    this.deferred.delete(name)
    const column = compute()
    this.set(name, column)
    return column
  }

  names(): string[] {
    return [...this.columns.keys(), ...this.deferred.keys()]
  }

  /** Binds a column to a name; the frame releases columns that it owns when no name refers to them. */
  set(name: string, column: C, owned = true): void {
    if (this.columns.get(name) !== column) this.drop(name)
    this.deferred.delete(name)
    this.columns.set(name, column)
    if (owned) this.#owned.add(column)
  }

  setEntry(column: C, owned = true): void {
    const old = this.entry
    this.entry = column
    if (owned) this.#owned.add(column)
    if (old) this.#releaseUnused(old)
  }

  drop(name: string): void {
    this.deferred.delete(name)
    const old = this.columns.get(name)
    this.columns.delete(name)
    if (old) this.#releaseUnused(old)
  }

  #releaseUnused(column: C): void {
    if (this.entry === column || [...this.columns.values()].includes(column)) return
    if (this.#owned.delete(column)) this.engine.release(column)
  }

  /** The number of leading `keys` by which the entries are known to be lexicographically sorted. */
  sortedPrefix(keys: readonly Expr[]): number {
    return sortedPrefix(keys, this.sortedBy, this.monotone, this.isPositive)
  }

  /** Removes a column from the frame's ownership; returns true if the frame owned it. */
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

  /** A frame with the same knowledge of columns and sizes, without columns. */
  sibling(n: number): Frame<C> {
    const [bounds, fills, lists] = [new Map(this.bounds), new Map(this.fills), new Map(this.lists)]
    const knowledge = { bounds, fills, lists, signed: new Set(this.signed) }
    return Object.assign(new Frame(this.engine, n, this.sizes, this.tables), knowledge)
  }
}

/**
 * Operations on all entries of a frame, or all elements of a column. Expressions are over the names of a frame: its
 * columns, sizes and tables, and `ENTRY`.
 */
export interface Engine<C extends Column> {
  // Columns -------------------------------------------------------------------------------------------------------
  upload(values: Int32Array, label: string): Coroutine<C>
  /** Releases uploaded columns. */
  unload(...columns: readonly C[]): void
  /** Releases columns that are no longer used. */
  release(...columns: readonly (C | null | undefined)[]): void
  /** An uninitialised column: every element must be written before it is read. */
  empty(length: number, label: string): C
  filled(length: number, value: number, label: string): C
  /** Concatenation of the parts; `entry` selects the elements of each. */
  concatenate(
    parts: readonly { readonly column: C; readonly entry: C | null; readonly n: number }[],
    dtype: Dtype,
  ): C
  /** Rejects a count that exceeds 32 bits. */
  rejectCount(count: number, what: string, span?: Span): never
  /** Runs independent coroutines concurrently. */
  runConcurrently(work: readonly Coroutine<void>[]): Coroutine<void>
  /** Submits all pending operations. */
  flush(): Coroutine<void>

  // Map -----------------------------------------------------------------------------------------------------------
  /** Adds a column with the values of an expression. */
  compute(frame: Frame<C>, name: string, e: Expr): void
  /** As `compute` if no entry satisfies a condition; returns the first such entry for each condition, or −1. */
  computeChecked(
    frame: Frame<C>,
    name: string,
    e: Expr,
    conditions: readonly Expr[],
  ): Coroutine<readonly number[]>
  /** An equal expression, cheap to use repeatedly; with `defer` evaluated on first use, if operands still exist. */
  materialize(frame: Frame<C>, name: string, e: Expr, defer?: boolean): Expr
  /** Values at one entry. */
  valuesAt(frame: Frame<C>, exprs: readonly Expr[], entry: number): Coroutine<readonly number[]>
  /** True if no intermediate result of an expression exceeds 32 bits, or if this has been checked already. */
  fits(frame: Frame<C>, e: Expr): boolean
  /** True if out-of-range loads of a table return its fill value (`Frame.fills`). */
  readonly fillsTables: boolean
  /** Binds the values of a tensor as a table; returns their type in expressions. */
  bindNumbers(frame: Frame<C>, name: string, values: C, dtype: Dtype): Dtype

  // Reduce --------------------------------------------------------------------------------------------------------
  /** For each condition, the first entry of the source that satisfies it, or −1. */
  findFirst(frame: Frame<C>, conditions: readonly Expr[]): Coroutine<readonly number[]>
  /** Minimum and maximum of an expression; the range always includes 0. */
  bounds(frame: Frame<C>, e: Expr): Coroutine<readonly [number, number]>
  /** True if the entries are measured to be strictly ascending, so that no two are equal. */
  isAscending(frame: Frame<C>, dims: Scope<C>['dims']): boolean

  // Sort, gather, scatter -----------------------------------------------------------------------------------------
  /** The entries in lexicographic order (stable); an omitted extent is measured. */
  order(frame: Frame<C>, keys: readonly OpenSortKey[]): Coroutine<Frame<C>>
  /** An expression over ordered entries, permuted back to the order of `frame`. */
  restore(frame: Frame<C>, ordered: Frame<C>, name: string, e: Expr): Expr
  /** One frame per value of a column below `count`, each in the original order. Takes ownership of the frame. */
  partition(frame: Frame<C>, name: string, count: number): Coroutine<Frame<C>[]>
  /** The entries that satisfy the condition, with new columns. */
  compact(
    frame: Frame<C>,
    condition: Expr,
    columns: ReadonlyMap<string, Expr>,
    sizes: ReadonlyMap<string, number>,
  ): Coroutine<Frame<C>>
  /**
   * `to[at] = value`; at equal indices the values must be equal, or any of them may be kept. `sorted`: entries are in order
   * of `at`, so that the first at each index suffices.
   */
  scatter(frame: Frame<C>, to: C, at: Expr, value: Expr, sorted?: boolean): void

  // Scan ----------------------------------------------------------------------------------------------------------
  /** Replaces each `none` by the preceding element. Owns `indices`. `empty`: a segment that begins with it, or −1. */
  padWithLast(indices: C, width: number, none: number, label: string): Coroutine<PaddedSegments<C>>
  /** Adds a column with each entry's run number; returns the number of runs. */
  runs(frame: Frame<C>, name: string, starts: Starts): Coroutine<number>
  /** Adds a column with each entry's run number among the runs with the same first `within` keys. */
  ranks(frame: Frame<C>, name: string, starts: Starts, within: number): void
  /**
   * Adds a column with 1 wherever `width` runs have passed since the last 1 or the last change of a key in `within`,
   * otherwise 0; `rank`: number of runs since then.
   */
  cuts(frame: Frame<C>, name: string, rank: string | null, options: CutOptions): void
  /** The `indptr` of entries in order of `position`: the end of each parent's segment. */
  segmentEnds(frame: Frame<C>, at: Expr, parent: Expr, parents: number, label: string): C
  /** The length of each parent's segment: 1 + its largest coordinate, or 0 if it is empty. */
  lengths(frame: Frame<C>, parent: Expr, coordinate: Expr, parents: number, label: string): C
  /** `indptr` from the lengths of segments, whose sum is at most `maxTotal`. */
  offsets(
    lengths: C,
    maxTotal: number,
    label: string,
  ): Coroutine<{ readonly indptr: C; readonly total: number }>
  /** A mask with one bit per coordinate under each parent, and a column of positions. */
  bitmap(
    frame: Frame<C>,
    name: string,
    starts: Starts,
    options: BitmapOptions,
  ): Coroutine<{ readonly mask: C; readonly indptr: C; readonly positions: number }>
  /**
   * Ranks the coordinates of each segment without sorting, if the engine supports it and it is cheaper: returns their
   * counts and adds a column of ranks. `null`: the entries have to be sorted by `keys`.
   */
  readonly rankInSegments:
    | ((frame: Frame<C>, name: string, segments: Segments, keys: readonly SortKey[]) => C | null)
    | null

  // Queries and values --------------------------------------------------------------------------------------------
  /**
   * For entries in order of `by`: adds a column with the number of `entries` or of distinct `tuples` (by, of) in each group,
   * or with the `minimum` of one expression.
   */
  reduceGroups(
    frame: Frame<C>,
    name: string,
    by: readonly Expr[],
    of: readonly Expr[],
    reduction: GroupReduction,
  ): void
  /** Adds columns `@magnitude 0`, … that ascend lexicographically as magnitudes descend; returns their number. */
  magnitudes(frame: Frame<C>, values: C): number
  /** Adds a column with the source's values. */
  takeValues(frame: Frame<C>, name: string, values: C): void
  /** For each entry of the source, the sum of values at equal coordinates; the value if coordinates are distinct. */
  sumsOfEqual(
    frame: Frame<C>,
    values: C,
    dtype: Dtype,
    dims: Scope<C>['dims'],
    distinct: boolean,
  ): Coroutine<{ readonly sums: C; readonly distinct: boolean }>
  /**
   * Scatters values to the entries' positions and the fill value elsewhere; values at one position are added. Also
   * returns the positions, if the engine keeps them.
   */
  storeValues(
    frame: Frame<C>,
    position: Expr,
    size: number,
    source: StoredValues<C>,
  ): { readonly values: C; readonly entries: PlacedEntries<C> | null }

  // Levels --------------------------------------------------------------------------------------------------------
  /** The parent position of each position. */
  parentsOf(indptr: C, parents: number, positions: number): C
  /** Parents and coordinates of the set bits of a mask. */
  bitsOf(level: Level<C>, parents: number): { readonly parents: C; readonly coordinates: C }
}
