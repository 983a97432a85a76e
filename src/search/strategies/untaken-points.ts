/**
 * Points of a space that were not taken yet. Taken points and dead ends form a tree of decisions whose exhausted
 * branches are closed, so memory and time depend on the number of taken points, not on the size of the space.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { BARREN, effortOf } from '../spaces/counter.ts'
import { type Random, withValue } from '../spaces/points.ts'
import type { DecisionValue, OpenDecision, Point, PointSpace } from '../types.ts'

/** Number of proposals that may be taken already, before any untaken point is used. */
const PROPOSALS = 8

/** Maximum number of decisions of a point; longer spaces count as endless. */
const MAX_DEPTH = 10_000

interface Node {
  /** The next decision; `null` for a complete point. */
  readonly open: OpenDecision | null
  /** Values below which points may be left. */
  readonly free: Set<DecisionValue>
  readonly children: Map<DecisionValue, Node>
}

type Path = [node: Node, value: DecisionValue][]

export class UntakenPoints {
  readonly #root: Node
  #isDone = false
  #effort = 0

  constructor(
    private readonly space: PointSpace,
    private readonly random: Random,
  ) {
    this.#root = this.#node({})
  }

  /** Marks a point as taken; `null` if it was already, or is not in the space. */
  *take(point: Point): Coroutine<Point | null> {
    const found = yield* this.#find(point)
    if (!found) return null
    this.#close(found.path)
    return found.point
  }

  *has(point: Point): Coroutine<boolean> {
    return (yield* this.#find(point)) !== null
  }

  /** Takes the proposed point, or another if it was taken before; `null` if none is left. */
  *fresh(propose: () => Coroutine<Point | null>): Coroutine<Point | null> {
    for (let k = 0; k < PROPOSALS && !this.#isDone; k++) {
      const proposed = yield* propose()
      const taken = proposed && (yield* this.take(proposed))
      if (taken) return taken
    }
    const any = yield* this.any()
    return any && (yield* this.take(any))
  }

  /** A random point that was not taken. @throws SptError `search/dead-ends` */
  *any(): Coroutine<Point | null> {
    for (const end = this.#effort + BARREN; this.#effort < end; ) {
      if (this.#isDone) return null
      const path: Path = []
      let node = this.#root
      let point: Point = {}
      while (node.open && node.free.size > 0) {
        const value = [...node.free][Math.floor(this.random() * node.free.size)]!
        path.push([node, value])
        point = withValue(point, node.open.name, value)
        node = this.#childOf(node, value, point)
        yield
        if (path.length > MAX_DEPTH) this.#endless()
      }
      if (!node.open) return point
      this.#close(path)
      this.#effort++
    }
    return failDeadEnds(this.space)
  }

  *#find(point: Point): Coroutine<{ readonly path: Path; readonly point: Point } | null> {
    if (this.#isDone) return null
    const path: Path = []
    let node = this.#root
    let partial: Point = {}
    while (node.open) {
      const { name } = node.open
      const value = point[name]
      if (value === undefined || !node.free.has(value)) return null
      path.push([node, value])
      partial = withValue(partial, name, value)
      node = this.#childOf(node, value, partial)
      yield
      if (path.length > MAX_DEPTH) this.#endless()
    }
    return { path, point: partial }
  }

  /** Closes the end of a path, and its ancestors without other open branches. */
  #close(path: Path): void {
    for (const [node, value] of path.toReversed()) {
      node.free.delete(value)
      node.children.delete(value)
      if (node.free.size > 0) return
    }
    this.#isDone = true
  }

  #childOf(node: Node, value: DecisionValue, partial: Point): Node {
    return getOrAdd(node.children, value, () => this.#node(partial))
  }

  #node(partial: Point): Node {
    const open = this.space.next(partial)
    this.#effort += effortOf(open)
    return { open, free: new Set(open?.values), children: new Map() }
  }

  #endless(): never {
    return failWith('search/endless', `a point of ${this.space.name} has more than ${MAX_DEPTH} decisions`, {
      expected: 'decisions that come to an end',
    })
  }
}

/** Any point of a space, however rare; `null`: it has none. @throws SptError `search/dead-ends`, `search/endless` */
export const anyPoint = (space: PointSpace, random: Random): Coroutine<Point | null> =>
  new UntakenPoints(space, random).any()

export const failDeadEnds = (space: PointSpace): never =>
  failWith('search/dead-ends', `a million values of the decisions of ${space.name} lead to no point`, {
    expected: 'conditions that most points meet',
    hint: 'place a condition directly after the decisions that it uses',
  })
