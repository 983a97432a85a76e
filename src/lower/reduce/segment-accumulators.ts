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

export class SegmentAccumulators {
  /** All registers of the accumulators: sums, index of their element, and segment limit. */
  readonly registers: readonly Buffer[]
  readonly #accumulators: readonly Buffer[]
  readonly #places: readonly Buffer[]
  /** End of the current segment, in values of the search; undefined if the element is not found by an upper-bound search. */
  readonly #limit: Buffer | undefined
  readonly #search: Search | undefined

  constructor(
    readonly segments: Segments,
    private readonly names: Names,
  ) {
    const { reduce, inner, parts } = segments
    const shape = inner.map((l) => l.extent)
    const target = reduce.targets[0]!.buffer
    this.#accumulators = reduce.targets.map((t) => local(names.fresh(`${t.buffer}_sum`), t.dtype, shape))
    this.#places = parts.map(() => local(names.fresh(`${target}_place`), 'i32'))
    const [only] = parts
    this.#search = parts.length === 1 && only?.kind === 'search' && only.method === 'upper' ? only : undefined
    this.#limit = this.#search && local(names.fresh(`${target}_limit`), 'i32')
    this.registers = [...this.#accumulators, ...this.#places, ...(this.#limit ? [this.#limit] : [])]
  }

  /** Sets the sums to the identity, without an element. */
  start(): Body {
    return [
      ...this.clear(),
      ...this.#set(this.#places.map(() => NO_ELEMENT)),
      ...(this.#limit ? [set(this.#limit, NO_ELEMENT)] : []),
    ]
  }

  occupied(): Expr {
    return binary('ne', this.place(0), NO_ELEMENT)
  }

  place(k: number): Expr {
    return get(this.#places[k]!)
  }

  /**
   * Condition that iteration `at` belongs to the current element: the searched value only increases, so it suffices that it is below the
   * limit. Undefined if no search finds the element.
   */
  staysWithin(at: LoopValues): Expr | undefined {
    if (!this.#search || !this.#limit) return undefined
    return lt(substitute(this.#search.value, at), get(this.#limit))
  }

  /** Sets the limit to the end of the new element's segment; call it after `switchElement`. */
  setLimit(): Body {
    return this.#search && this.#limit ? [set(this.#limit, segmentEnd(this.#search, this.place(0)))] : []
  }

  /** If `parts` belong to another element, writes back the sums by `flush`, and continues with the new element. */
  switchElement(parts: readonly Expr[], flush: Body): Body {
    const differs = parts.map((p, k) => binary('ne', this.place(k), p)).reduce((a, b) => binary('or', a, b))
    return [when(and(this.occupied(), differs), [...flush, ...this.clear()]), ...this.#set(parts)]
  }

  eachIteration(loop: For, flush: Body): Stmt {
    const { reduce, parts } = this.segments
    const combined = this.combine(NOTHING, reduce.values)
    return stmt({
      ...loop,
      body: [...this.switchElement(parts, flush), ...replaceStmt(loop.body, reduce, () => combined)],
    })
  }

  combine(map: LoopValues, values: readonly Expr[]): Stmt {
    return stmt<Reduce>({ ...this.segments.reduce, atomic: false, targets: this.#sums(map), values })
  }

  clear(): Body {
    return this.#nest(false, (map) => storeIdentity(this.segments.reduce, this.#sums(map)))
  }

  /** Combines the sums into their elements. */
  update(atomic: boolean): Body {
    const { reduce } = this.segments
    return this.#nest(true, (map) => [
      stmt<Reduce>({ ...reduce, atomic, targets: this.#elements(map), values: this.#sums(map) }),
    ])
  }

  /** Stores the sums to their elements, which held the identity. */
  store(): Body {
    return this.#nest(true, (map) =>
      this.#elements(map).map(({ buffer, index }, k) => store(buffer, index, this.#sums(map)[k]!)),
    )
  }

  /** Stores the first sum of each inner iteration into cells. */
  spill(to: Cells): Body {
    return this.#nest(false, (map) => [store(to.buffer.name, this.#cell(to.lead, map), this.#sums(map)[0]!)])
  }

  /** Combines cells into the sums. */
  addCells({ buffer, lead }: Cells): Body {
    return this.#nest(false, (map) => [
      this.combine(map, [load(buffer.name, this.#cell(lead, map), buffer.dtype)]),
    ])
  }

  /** Stores the sums into row `at` of the carry-out buffer `to`, whose other dimensions are those of the inner loops. */
  carryOut(to: string, at: Expr): Body {
    const { rest } = this.segments
    return this.#nest(true, (map) => {
      const dims = rest[0]!.flatMap(({ part, more }) => (part === undefined ? [substitute(more, map)] : []))
      return [store(to, [at, ...dims], this.#sums(map)[0]!)]
    })
  }

  #cell(lead: readonly Expr[], map: LoopValues): Expr[] {
    return [...lead, ...this.segments.inner.map((l) => substitute(variable(l.var), map))]
  }

  #nest(guarded: boolean, make: (map: LoopValues) => Body): Body {
    return nest(this.segments.inner, this.names, guarded, NOTHING, make)
  }

  #sums(map: LoopValues): readonly Load[] {
    const at = this.#cell([], map)
    return this.#accumulators.map((b) => load(b.name, at.length > 0 ? at : [int(0)], b.dtype))
  }

  #set(values: readonly Expr[]): Stmt[] {
    return this.#places.map((b, k) => set(b, values[k]!))
  }

  #elements(map: LoopValues): Load[] {
    const { reduce, rest } = this.segments
    const places = this.#places.map(get)
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
