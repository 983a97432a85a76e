/** Outline of spaces that can be enumerated: partial points with isomorphic continuations are merged. */

import { runSync } from '../../../ast/work.ts'
import { getOrAdd, groupBy } from '../../../ir/memoize.ts'
import type { DecisionValue, PointSpace } from '../../types.ts'
import { Counter, type Rest } from '../counter.ts'

/** `null` for more than `limit` different partial points, or too many values to evaluate. */
export function wholeOutline(space: PointSpace, limit: number): Outline | null {
  const counter = new Counter(space, limit, limit)
  const root = counter.node({})
  return runSync(counter.below(root, {})).isExact ? outlineOf(root, topologicalOrder(root)) : null
}

function topologicalOrder(root: Rest): readonly Rest[] {
  const order: Rest[] = []
  const seen = new Set<Rest>()
  const visit = (node: Rest): void => {
    if (seen.has(node)) return
    seen.add(node)
    for (const next of [...node.children.values()].reverse()) visit(next)
    order.push(node)
  }
  visit(root)
  return order.reverse()
}

/** Decisions on the paths to a node, or to all nodes with one decision. */
interface Ways {
  readonly values: Map<string, Set<DecisionValue>>
  /** Decisions on all of the paths; `null` before the first path. */
  always: ReadonlySet<string> | null
  count: number
}

interface DecisionWays extends Ways {
  readonly ordered: boolean
  /** Number of points by value. */
  readonly points: Map<DecisionValue, number>
}

const noWays = (): Ways => ({ values: new Map(), always: null, count: 0 })

/** @param nodes - In topological order */
function outlineOf(root: Rest, nodes: readonly Rest[]): Outline {
  const pointsBelow = (node: Rest): number => node.count!.points
  const ways = new Map(nodes.map((node) => [node, noWays()]))
  Object.assign(ways.get(root)!, { always: new Set(), count: 1 })
  const decisions = new Map<string, DecisionWays>()
  for (const node of nodes) {
    const here = ways.get(node)!
    // Values that lead to no point are omitted.
    if (!node.open || pointsBelow(node) === 0) continue
    const { name, ordered, values } = node.open
    const one = getOrAdd(decisions, name, () => ({ ...noWays(), ordered, points: new Map() }))
    addWays(one, here, here.always!)
    const decided = new Set([...here.always!, name])
    const after = groupBy(
      values.filter((v) => pointsBelow(node.children.get(v)!) !== 0),
      (v) => node.children.get(v)!,
    )
    for (const [next, same] of after)
      for (const value of same)
        one.points.set(value, (one.points.get(value) ?? 0) + here.count * pointsBelow(next))
    // Processed once per successor node, because thousands of values may lead to one node.
    for (const [next, same] of after) {
      const to = ways.get(next)!
      addWays(to, here, decided, same.length)
      const known = getOrAdd(to.values, name, () => new Set())
      for (const value of same) known.add(value)
    }
  }
  return {
    decisions: [...decisions].map(([name, one]) => decision(name, one, decisions)),
    points: pointsBelow(root),
    isExact: true,
  }
}

/** Adds the paths from one node. @param decided - Decisions on all of these @param times - Their multiplicity */
function addWays(to: Ways, from: Ways, decided: ReadonlySet<string>, times = 1): void {
  for (const [name, values] of from.values) {
    const known = getOrAdd(to.values, name, () => new Set())
    for (const v of values) known.add(v)
  }
  to.always = to.always ? new Set([...to.always].filter((n) => decided.has(n))) : decided
  to.count += times * from.count
}

function decision(name: string, one: DecisionWays, all: ReadonlyMap<string, DecisionWays>): OutlinedDecision {
  const values = [...one.points.keys()]
  if (one.ordered) values.sort((a, b) => Number(a) - Number(b))
  const after = [...one.always!].flatMap((n) => {
    const seen = one.values.get(n)!
    const possible = [...all.get(n)!.points.keys()]
    return seen.size < possible.length ? [{ name: n, values: possible.filter((v) => seen.has(v)) }] : []
  })
  return {
    name,
    values,
    unconfirmed: [],
    ordered: one.ordered,
    points: values.map((v) => one.points.get(v)!),
    dependsOn: after,
  }
}

/** A decision, merged over all partial points that it follows. */
export interface OutlinedDecision {
  readonly name: string
  /** Values that occur in some point; numbers that are ordered ascend. */
  readonly values: readonly DecisionValue[]
  /** Values seen without a point that contains them: there may be none. */
  readonly unconfirmed: readonly DecisionValue[]
  readonly ordered: boolean
  /** Number of points with each value; `null` if the space was sampled. */
  readonly points: readonly number[] | null
  /** The decision is made only if each of these decisions has one of the values. */
  readonly dependsOn: readonly { readonly name: string; readonly values: readonly DecisionValue[] }[]
}

export interface Outline {
  readonly decisions: readonly OutlinedDecision[]
  readonly points: number
  /** True if the space was enumerated; otherwise it was sampled. */
  readonly isExact: boolean
}
