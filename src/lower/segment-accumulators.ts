/** Accumulators of a segmented reduction: registers in which a thread combines what belongs to one element, and which. */

import type { Segments } from '../analysis/segmented-loops.ts'
import type { Names } from '../ir/bound-names.ts'
import { copyNest } from '../ir/clone-loops.ts'
import {
  add,
  and,
  binary,
  constant,
  type Expr,
  int,
  type Load,
  load,
  lt,
  type Search,
  select,
  sub,
  variable,
} from '../ir/expr.ts'
import { substitute } from '../ir/expr-tree.ts'
import type { Buffer, For, Reduce, Stmt } from '../ir/loops.ts'
import { local, store, when } from '../ir/statement-builders.ts'
import { type Body, replaceStmt, stmt } from '../ir/tree.ts'

/** What variables of copied loops are. */
export type LoopValues = ReadonlyMap<string, Expr>
export const NOTHING: LoopValues = new Map()

/** A part of an index that no element has. */
const NO_ELEMENT = int(-2147483648)

/** No element of an index array is larger. */
const PAST_END = int(2147483647)

/** A cell for each iteration of the loops inside: the last dimensions of a buffer. */
export interface Cells {
  readonly buffer: Buffer
  readonly lead: readonly Expr[]
}

export class SegmentAccumulators {
  readonly segments: Segments
  /** Of the sums, and of what they are of. */
  readonly registers: readonly Buffer[]
  readonly #names: Names
  readonly #accumulators: readonly Buffer[]
  readonly #places: readonly Buffer[]
  /** Up to where the element stays the same, in the values that its search looks for. */
  readonly #limit: Buffer | undefined
  readonly #search: Search | undefined

  constructor(segments: Segments, names: Names) {
    this.segments = segments
    this.#names = names
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

  /** Sums of nothing. */
  start(): Body {
    return [
      ...this.clear(),
      ...this.#set(this.#places.map(() => NO_ELEMENT)),
      ...(this.#limit ? [set(this.#limit, NO_ELEMENT)] : []),
    ]
  }

  /** Whether there is an element. */
  occupied(): Expr {
    return binary('ne', this.place(0), NO_ELEMENT)
  }

  place(k: number): Expr {
    return get(this.#places[k]!)
  }

  /**
   * Whether the sums are of the element of an iteration, and so of all between the latest one and it: what is looked
   * for grows with the loop, and less than the limit finds the same place.
   */
  staysWithin(at: LoopValues): Expr | undefined {
    if (!this.#search || !this.#limit) return undefined
    return lt(substitute(this.#search.value, at), get(this.#limit))
  }

  /** After `enter`: up to where its element goes. */
  setLimit(): Body {
    return this.#search && this.#limit ? [set(this.#limit, segmentEnd(this.#search, this.place(0)))] : []
  }

  /** If `parts` are of another element, the sums `leave` theirs, and are of that one from now on. */
  switchElement(parts: readonly Expr[], flush: Body): Body {
    const differs = parts.map((p, k) => binary('ne', this.place(k), p)).reduce((a, b) => binary('or', a, b))
    return [when(and(this.occupied(), differs), [...flush, ...this.clear()]), ...this.#set(parts)]
  }

  eachIteration(loop: For, flush: Body): Stmt {
    const { reduce, parts } = this.segments
    const own = this.combine(NOTHING, reduce.values)
    return stmt({
      ...loop,
      body: [...this.switchElement(parts, flush), ...replaceStmt(loop.body, reduce, () => own)],
    })
  }

  /** `values` combined into the sums. */
  combine(map: LoopValues, values: readonly Expr[]): Stmt {
    const targets = this.#accumulators.map((_, k) => this.#accumulator(k, map))
    return stmt<Reduce>({ ...this.segments.reduce, atomic: false, targets, values })
  }

  clear(): Body {
    const { reducer } = this.segments.reduce
    return this.#nest(false, (map) =>
      this.#accumulators.map((b, k) => {
        const e = reducer.identity[k]!
        const value = e.kind === 'const' ? constant(e.value, b.dtype) : e
        return store(b.name, this.#accumulator(k, map).index, value)
      }),
    )
  }

  /** The sums combined into their elements. */
  update(atomic: boolean): Body {
    const { reduce } = this.segments
    return this.#nest(true, (map) => [
      stmt<Reduce>({
        ...reduce,
        atomic,
        targets: this.#elements(map),
        values: reduce.targets.map((_, k) => this.#accumulator(k, map)),
      }),
    ])
  }

  /** The sums as their elements, which were at the identity. */
  store(): Body {
    return this.#nest(true, (map) =>
      this.#elements(map).map(({ buffer, index }, k) => store(buffer, index, this.#accumulator(k, map))),
    )
  }

  /** The one sum of each element into cells. */
  spill(to: Cells): Body {
    return this.#nest(false, (map) => [
      store(to.buffer.name, this.#cell(to.lead, map), this.#accumulator(0, map)),
    ])
  }

  /** Cells combined into the sums. */
  addCells({ buffer, lead }: Cells): Body {
    return this.#nest(false, (map) => [
      this.combine(map, [load(buffer.name, this.#cell(lead, map), buffer.dtype)]),
    ])
  }

  /** The sums in row `at` of a buffer with the dimensions of the elements that loops inside run over. */
  carryOut(to: string, at: Expr): Body {
    const { rest } = this.segments
    return this.#nest(true, (map) => {
      const dims = rest[0]!.flatMap(({ part, more }) => (part === undefined ? [substitute(more, map)] : []))
      return [store(to, [at, ...dims], this.#accumulator(0, map))]
    })
  }

  #cell(lead: readonly Expr[], map: LoopValues): Expr[] {
    return [...lead, ...this.segments.inner.map((l) => substitute(variable(l.var), map))]
  }

  #nest(guarded: boolean, make: (map: LoopValues) => Body): Body {
    return nest(this.segments.inner, this.#names, guarded, NOTHING, make)
  }

  #accumulator(k: number, map: LoopValues): Load {
    const b = this.#accumulators[k]!
    const at = this.segments.inner.map((l) => substitute(variable(l.var), map))
    return load(b.name, at.length > 0 ? at : [int(0)], b.dtype)
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

/** Where the segment ends that a search finds at `place`. */
export const segmentEnd = ({ buffer, hi }: Search, place: Expr): Expr =>
  select(lt(place, hi), load(buffer, [place], 'i32'), PAST_END)

export const set = (b: Buffer, value: Expr): Stmt => store(b.name, [int(0)], value)

export const get = (b: Buffer): Expr => load(b.name, [int(0)], b.dtype)

/** Copies of loops, which then run over different elements. */
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
