/**
 * Offsets of lists that are built at run time. `fuse (io, go)` of a loop and a counted loop makes one loop over all
 * positions. For this, the kernel computes a prefix sum of the counts: the offset of each list, and the total number
 * of positions. From then on the inner axis is nested in the outer one, and temporaries over it have no gaps.
 */
import {
  type Axis,
  countedBy,
  denseAxis,
  isDense,
  isStored,
  type StoredAxis,
} from '../../../ir/coordinates/axis.ts'
import { offsetArrayName } from '../../../ir/coordinates/derived-names.ts'
import type {
  Buffer1,
  Capacity,
  Iter,
  Iteration,
  IterKind,
  Kernel1,
  Stmt1,
} from '../../../ir/coordinates/stage1.ts'
import { assign1, iteration, reduce1, writtenBuffers1 } from '../../../ir/coordinates/stage1-tree.ts'
import { unusedName } from '../../../ir/expressions/bound-names.ts'
import {
  add,
  ceildiv,
  div,
  type Expr,
  int,
  type Load,
  load,
  lt,
  min,
  mod,
  mul,
  variable,
} from '../../../ir/expressions/expr.ts'
import { buffersRead, substitute } from '../../../ir/expressions/expr-tree.ts'
import { builtinMonoid } from '../../../ir/values/monoid.ts'
import { takenNames } from '../as/name-collisions.ts'
import type { StepSpan } from '../as/tensor-split.ts'
import { offsetSteps } from './schedule.ts'

/** The number of outer positions whose counts are summed together. */
const CHUNK = 32

/** Returns the axes for whose positions the elements of `axis` are counted, outermost first. */
export function countedFor(kernel: Kernel1, axis: Axis | undefined): readonly string[] {
  const ends = new Set(countedBy(axis))
  return kernel.axes.flatMap((a) => (ends.has(a.name) ? [a.name] : []))
}

/**
 * Returns whether the last axis of `chain` is counted for each position of the other axes, which are all of its outer
 * axes.
 */
export function areCounted(kernel: Kernel1, chain: readonly Axis[]): boolean {
  const outer = countedFor(kernel, chain.at(-1))
  return (
    outer.length > 0 &&
    chain.every((a) => isDense(a) && a.parent === null) &&
    chain
      .slice(0, -1)
      .map((a) => a.name)
      .join() === outer.join()
  )
}

/**
 * Returns the kernel with a loop nest that computes the offsets of the last axis, and with each axis of `chain`
 * nested in the previous one.
 */
export function withOffsets(kernel: Kernel1, chain: readonly Axis[], span: StepSpan): Kernel1 {
  const taken = takenNames(kernel)
  const stored = chain.filter(isStored)
  const axis = stored.at(-1)!
  const unused = (base: string): string => {
    const name = unusedName(base, (x) => taken.has(x))
    taken.add(name)
    return name
  }
  const counted = (isDense(axis) && axis.count) || int(0)
  const sums = new Sums(stored, counted, unused, span)
  const read = buffersRead(counted)
  const asked = kernel.runtimeLists?.find((f) => f.parts.some((p) => read.has(p.counts)))
  const last = kernel.body.findLastIndex((s) => [...writtenBuffers1([s])].some((b) => read.has(b)))
  const [before, after] = [kernel.body.slice(0, last + 1), kernel.body.slice(last + 1)]
  // Buffers that the builder writes exist before the offsets, so they get a separate axis.
  const slot = denseAxis(unused(`${axis.name}_slot`), axis.extent)
  const early = writtenBuffers1(before)
  const isEarly = (b: Buffer1): boolean => early.has(b.name) && b.axes.includes(axis.name)
  const under = new Map(stored.map((a, k) => [a.name, k === 0 ? null : stored[k - 1]!.name]))
  const lies = (a: Axis): Axis => {
    const parent = under.get(a.name)
    if (!isDense(a) || parent === undefined) return a
    return { ...a, parent, ...(a.name === axis.name ? { offsets: sums.offsets.name } : {}) }
  }
  return {
    ...kernel,
    axes: [...kernel.axes.map(lies), slot, ...sums.axes],
    buffers: [
      ...kernel.buffers.map((b) =>
        isEarly(b) ? { ...b, axes: b.axes.map((a) => (a === axis.name ? slot.name : a)) } : b,
      ),
      ...sums.buffers,
    ],
    body: [...before, sums.nest(), ...after],
    ...(sums.capacity
      ? { capacities: [...(kernel.capacities ?? []), { ...sums.capacity, span: asked?.span }] }
      : {}),
    defaults: [...(kernel.defaults ?? []), ...offsetSteps({ ...sums.names, ...sums.loops })],
  }
}

const v = (name: string): Expr => variable(name)
const iter = (name: string, kind: IterKind): Iter => ({ name, axis: name, kind })

/** The prefix sum over positions of the outer axes: the sum before each chunk, and the sum inside of the chunk. */
class Sums {
  readonly #outer: readonly StoredAxis[]
  readonly #counted: Expr
  readonly #span: StepSpan
  readonly #places: Expr
  readonly #sizes: Buffer1
  readonly #totals: Buffer1
  readonly #bases: Buffer1
  readonly offsets: Buffer1
  /** The offsets without the limit of the capacity; the same as `offsets` if there is no limit. */
  readonly #wanted: Buffer1
  readonly #room: Expr | undefined
  readonly capacity: Capacity | undefined
  readonly axes: readonly StoredAxis[]
  readonly loops: {
    readonly [of in 'once' | 'chunk' | 'part' | 'other' | 'earlier']: string
  }
  readonly names: {
    readonly [of in 'nest' | 'wanted' | 'size' | 'total' | 'base' | 'bases' | 'baseCopy' | 'copy']: string
  }

  constructor(
    stored: readonly StoredAxis[],
    counted: Expr,
    unused: (base: string) => string,
    span: StepSpan,
  ) {
    const axis = stored.at(-1)!
    const named = (what: string): string => unused(`${axis.name}_${what}`)
    const summed = (what: Parameters<typeof offsetArrayName>[0]): string =>
      unused(offsetArrayName(what, axis.name))
    this.#outer = stored.slice(0, -1)
    this.#counted = counted
    this.#span = span
    this.#places = this.#outer.map((a) => a.extent).reduce(mul)
    const ends = add(this.#places, int(1))
    const [place, end] = [denseAxis(named('place'), this.#places), denseAxis(named('end'), ends)]
    this.loops = {
      once: named('all'),
      chunk: named('chunk'),
      part: named('part'),
      other: named('other'),
      earlier: named('earlier'),
    }
    const { once, chunk, part, other, earlier } = this.loops
    const chunks = ceildiv(ends, int(CHUNK))
    this.axes = [
      place,
      end,
      denseAxis(once, int(1)),
      denseAxis(chunk, chunks),
      denseAxis(part, int(CHUNK)),
      { ...denseAxis(other, int(CHUNK)), count: v(part) },
      { ...denseAxis(earlier, chunks), count: v(chunk) },
    ]
    const array = (name: string, over: string): Buffer1 => ({
      name,
      dtype: 'i32',
      axes: [over],
      role: 'local',
      filledAtRunTime: true,
      fill: 0,
      accumulate: 'i32',
    })
    this.#sizes = { ...array(summed('sizes'), place.name), placed: true }
    this.#totals = array(summed('totals'), chunk)
    this.#bases = array(summed('bases'), chunk)
    this.#room = isDense(axis) ? axis.capacity : undefined
    const worst = mul(this.#places, axis.extent)
    this.offsets = {
      ...array(summed('offsets'), end.name),
      positions: this.#room ? min(this.#room, worst) : worst,
    }
    this.#wanted = this.#room ? array(summed('wanted'), end.name) : this.offsets
    this.capacity = this.#room && {
      axis: axis.name,
      counts: this.#wanted.name,
      width: 1,
      capacity: this.#room,
    }
    this.names = {
      nest: this.offsets.name,
      wanted: this.#wanted.name,
      size: named('size'),
      total: named('total'),
      base: named('base'),
      bases: this.#bases.name,
      baseCopy: named('base_sum'),
      copy: named('sum'),
    }
  }

  get buffers(): readonly Buffer1[] {
    const wanted = this.#room ? [this.#wanted] : []
    return [this.#sizes, this.#totals, this.#bases, ...wanted, this.offsets]
  }

  nest(): Iteration {
    const { once, chunk, part, other, earlier } = this.loops
    const { nest: name, size, total, base } = this.names
    const element = (b: Buffer1, at: Expr): Load => load(b.name, [at])
    const placeIn = (of: string): Expr => add(mul(v(chunk), int(CHUNK)), v(of))
    const mine = placeIn(part)
    const nest = (
      of: string,
      iters: readonly Iter[],
      body: readonly Stmt1[],
      where: readonly Expr[] = [],
    ): Iteration => iteration({ name: of, iters, where, body, ...this.#span })
    const sum = (b: Buffer1, at: Expr, value: Expr): Stmt1 =>
      reduce1({
        reducer: builtinMonoid('+', 'index'),
        targets: [element(b, at)],
        values: [value],
        ...this.#span,
      })
    const length = substitute(this.#counted, this.#coordinates(mine))
    const within = [iter(chunk, 'S'), iter(part, 'S')]
    return nest(
      name,
      [iter(once, 'S')],
      [
        nest(
          size,
          within,
          [assign1([element(this.#sizes, mine)], [length], this.#span.span)],
          [lt(mine, this.#places)],
        ),
        // Sizes after the last position read as 0.
        nest(
          total,
          [iter(chunk, 'S'), iter(part, 'R')],
          [sum(this.#totals, v(chunk), element(this.#sizes, mine))],
        ),
        nest(
          base,
          [iter(chunk, 'S'), iter(earlier, 'R')],
          [sum(this.#bases, v(chunk), element(this.#totals, v(earlier)))],
        ),
        nest(
          name,
          within,
          [
            nest(name, [iter(other, 'R')], [sum(this.#wanted, mine, element(this.#sizes, placeIn(other)))]),
            sum(this.#wanted, mine, element(this.#bases, v(chunk))),
            // Positions beyond the capacity are in no list.
            ...(this.#room
              ? [
                  assign1(
                    [element(this.offsets, mine)],
                    [min(element(this.#wanted, mine), this.#room)],
                    this.#span.span,
                  ),
                ]
              : []),
          ],
          [lt(mine, add(this.#places, int(1)))],
        ),
      ],
    )
  }

  /** Returns the coordinates of the outer axes from their common position. */
  #coordinates(at: Expr): ReadonlyMap<string, Expr> {
    const out = new Map<string, Expr>()
    let rest = at
    for (const [k, a] of [...this.#outer.entries()].reverse()) {
      out.set(a.name, k === 0 ? rest : mod(rest, a.extent))
      rest = div(rest, a.extent)
    }
    return out
  }
}
