/** Accumulators of a segmented reduction: registers that combine the values of one element, and the index of this element. */

import type { Segments } from '../../analysis/loops/segmented-loops.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import type { Expr, Load, Search } from '../../ir/expressions/expr.ts'
import { add, and, binary, int, load, lt, select, sub, variable } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import { copyNest } from '../../ir/statements/clone-loops.ts'
import type { Buffer, For, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { storeIdentity } from '../../ir/statements/reductions.ts'
import { local, store, when } from '../../ir/statements/statement-builders.ts'
import { type Body, replaceStmt, stmt } from '../../ir/statements/tree.ts'

export type LoopValues = ReadonlyMap<string, Expr>
const NOTHING: LoopValues = new Map()

const NO_ELEMENT = int(-2147483648)

/** Upper bound on the elements of index arrays. */
const PAST_END = int(2147483647)

/** Cells of a buffer, one per iteration of the inner loops, which index its last dimensions; `lead`: the first indices. */
export interface Cells {
  readonly buffer: Buffer
  readonly lead: readonly Expr[]
}

export type SegmentAccumulators = ReturnType<typeof segmentAccumulators>

export function segmentAccumulators(segments: Segments, names: Names) {
  const { reduce, inner, parts } = segments
  const shape = inner.map((l) => l.extent)
  const target = reduce.targets[0]!.buffer
  const accumulators = reduce.targets.map((t) => local(names.fresh(`${t.buffer}_sum`), t.dtype, shape))
  const placeRegisters = parts.map(() => local(names.fresh(`${target}_place`), 'i32'))
  const [only] = parts
  const search = parts.length === 1 && only?.kind === 'search' && only.method === 'upper' ? only : undefined
  /** End of the current segment, in values of the search; undefined if the element is not found by an upper-bound search. */
  const limit = search && local(names.fresh(`${target}_limit`), 'i32')
  /** All registers of the accumulators: sums, index of their element, and segment limit. */
  const registers = [...accumulators, ...placeRegisters, ...(limit ? [limit] : [])]
  /** Sets the sums to the identity, without an element. */
  const start = (): Body => [
    ...clear(),
    ...setPlaces(placeRegisters.map(() => NO_ELEMENT)),
    ...(limit ? [set(limit, NO_ELEMENT)] : []),
  ]
  const occupied = (): Expr => binary('ne', place(0), NO_ELEMENT)
  const place = (k: number): Expr => get(placeRegisters[k]!)
  /**
   * Condition that iteration `at` belongs to the current element: the searched value only increases, so it suffices that it is below the
   * limit. Undefined if no search finds the element.
   */
  const staysWithin = (at: LoopValues): Expr | undefined => {
    if (!search || !limit) return undefined
    return lt(substitute(search.value, at), get(limit))
  }
  /** Sets the limit to the end of the new element's segment; call it after `switchElement`. */
  const setLimit = (): Body => (search && limit ? [set(limit, segmentEnd(search, place(0)))] : [])
  /** If `parts` belong to another element, writes back the sums by `flush`, and continues with the new element. */
  const switchElement = (parts: readonly Expr[], flush: Body): Body => {
    const differs = parts.map((p, k) => binary('ne', place(k), p)).reduce((a, b) => binary('or', a, b))
    return [when(and(occupied(), differs), [...flush, ...clear()]), ...setPlaces(parts)]
  }
  const eachIteration = (loop: For, flush: Body): Stmt => {
    const { reduce, parts } = segments
    const combined = combine(NOTHING, reduce.values)
    return stmt({
      ...loop,
      body: [...switchElement(parts, flush), ...replaceStmt(loop.body, reduce, () => combined)],
    })
  }
  const combine = (map: LoopValues, values: readonly Expr[]): Stmt =>
    stmt<Reduce>({ ...segments.reduce, atomic: false, targets: sums(map), values })
  const clear = (): Body => overInner(false, (map) => storeIdentity(segments.reduce, sums(map)))
  /** Combines the sums into their elements. */
  const update = (atomic: boolean): Body => {
    const { reduce } = segments
    return overInner(true, (map) => [
      stmt<Reduce>({ ...reduce, atomic, targets: elements(map), values: sums(map) }),
    ])
  }
  /** Stores the sums to their elements, which held the identity. */
  const stored = (): Body =>
    overInner(true, (map) => elements(map).map(({ buffer, index }, k) => store(buffer, index, sums(map)[k]!)))
  /** Stores the first sum of each inner iteration into cells. */
  const spill = (to: Cells): Body =>
    overInner(false, (map) => [store(to.buffer.name, cell(to.lead, map), sums(map)[0]!)])
  /** Combines cells into the sums. */
  const addCells = ({ buffer, lead }: Cells): Body =>
    overInner(false, (map) => [combine(map, [load(buffer.name, cell(lead, map), buffer.dtype)])])
  /** Stores the sums into row `at` of the carry-out buffer `to`, whose other dimensions are those of the inner loops. */
  const carryOut = (to: string, at: Expr): Body => {
    const { rest } = segments
    return overInner(true, (map) => {
      const dims = rest[0]!.flatMap(({ part, more }) => (part === undefined ? [substitute(more, map)] : []))
      return [store(to, [at, ...dims], sums(map)[0]!)]
    })
  }
  const cell = (lead: readonly Expr[], map: LoopValues): Expr[] => [
    ...lead,
    ...segments.inner.map((l) => substitute(variable(l.var), map)),
  ]
  const overInner = (guarded: boolean, make: (map: LoopValues) => Body): Body =>
    nest(segments.inner, names, guarded, NOTHING, make)
  const sums = (map: LoopValues): readonly Load[] => {
    const at = cell([], map)
    return accumulators.map((b) => load(b.name, at.length > 0 ? at : [int(0)], b.dtype))
  }
  const setPlaces = (values: readonly Expr[]): Stmt[] => placeRegisters.map((b, k) => set(b, values[k]!))
  const elements = (map: LoopValues): Load[] => {
    const { reduce, rest } = segments
    const places = placeRegisters.map(get)
    return reduce.targets.map((t, k) => {
      const index = rest[k]!.map(({ part, more }) => {
        const same = substitute(more, map)
        if (part === undefined) return same
        const place = places[part]!
        return same.kind === 'const' && same.value < 0 ? sub(place, int(-same.value)) : add(place, same)
      })
      return load(t.buffer, index, t.dtype, t.span)
    })
  }
  return {
    registers,
    start,
    occupied,
    place,
    staysWithin,
    setLimit,
    switchElement,
    eachIteration,
    combine,
    clear,
    update,
    stored,
    spill,
    addCells,
    carryOut,
    segments,
  }
}

export const segmentEnd = ({ buffer, hi }: Search, place: Expr): Expr =>
  select(lt(place, hi), load(buffer, [place]), PAST_END)

export const set = (b: Buffer, value: Expr): Stmt => store(b.name, [int(0)], value)

export const get = (b: Buffer): Expr => load(b.name, [int(0)], b.dtype)

/** Copies spatial loops, with their guards if `guarded`, around the body `make`. */
export function nest(
  loops: readonly For[],
  names: Names,
  guarded: boolean,
  around: LoopValues,
  make: (map: LoopValues) => Body,
): Body {
  return copyNest(
    loops.map((l) => ({ ...l, reduce: false, guards: guarded ? l.guards : [] })),
    names,
    around,
    make,
  )
}
