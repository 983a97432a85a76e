/** Properties of a format or composition known before there are data, and their justification. */

import type { Facts } from '../../analysis/integers/facts.ts'
import { all as conjunction, type Expr, not } from '../../ir/expressions/expr.ts'
import type { FormatInstance, Instance } from '../../ir/formats/format.ts'
import { type PartTree, partsBelow, selectorsOf } from '../../ir/formats/part-tree.ts'
import type { Query } from '../../ir/formats/queries.ts'
import { memoize } from '../../ir/memoize.ts'
import { factsOf, proveCover, proveDisjoint, proveInverse, proveRange } from './prove.ts'
import { assumptionsOf } from './prove-conditions.ts'

/**
 * `construction`: implied by the meaning of the rule. `proved`: symbolically, for all sizes and tensors. `checked`: on
 * the data, during conversion.
 */
type Ground = 'construction' | 'proved' | 'checked'

interface PartProvenance {
  readonly label: string
  /** `blocks(16)`. */
  readonly format: string
  /** `inverse(map(x)) = x` for the coordinates of the part. */
  readonly inverse: Ground
  /** The map stays within the extents of the axes. */
  readonly range: Ground
  readonly text: string
}

interface NodeProvenance {
  /** `partition j into 4`; for cases, the parts that they select. */
  readonly node: string
  /** Labels of the parts below it. */
  readonly parts: readonly string[]
  readonly disjoint: Ground
  readonly cover: Ground
  readonly text: string
}

export interface Provenance {
  readonly parts: readonly PartProvenance[]
  /** From the root down; empty for a single format that holds everything. */
  readonly nodes: readonly NodeProvenance[]
}

/** Proves the properties of an instance as far as possible; cached. */
export const provenance = memoize((instance: Instance): Provenance => {
  const parts: PartProvenance[] = []
  const nodes: NodeProvenance[] = []
  visit(instance.tree, { instance, parts, nodes, conditions: [], queries: [] })
  return { parts, nodes }
})

interface Path {
  readonly instance: Instance
  readonly parts: PartProvenance[]
  readonly nodes: NodeProvenance[]
  /** Conditions of every coordinate that reaches the node, and their queries. */
  readonly conditions: readonly Expr[]
  readonly queries: readonly Query[]
}

function visit(tree: PartTree, path: Path): void {
  switch (tree.kind) {
    case 'leaf':
      path.parts.push(partProvenance(tree.part, path))
      return
    case 'index': {
      const cover = tree.total ? 'construction' : 'checked'
      path.nodes.push(nodeProvenance(tree, tree.text, 'construction', cover, path))
      tree.children.forEach((child, k) => {
        const condition = tree.implied[k]
        visit(child, condition ? { ...path, conditions: [...path.conditions, condition] } : path)
      })
      return
    }
    case 'cases': {
      const casePath: Path = { ...path, queries: [...path.queries, ...tree.queries] }
      const conditions = selectorsOf(tree)
      const facts = factsOnPath(casePath)
      const disjoint =
        conditions.length < 2 ? 'construction' : proveDisjoint(conditions, facts) ? 'proved' : 'checked'
      const hasFallback = conditions.length < tree.cases.length
      const cover = hasFallback ? 'construction' : proveCover(conditions, facts) ? 'proved' : 'checked'
      path.nodes.push(nodeProvenance(tree, tree.cases.map((c) => c.text).join(' + '), disjoint, cover, path))
      for (const c of tree.cases) {
        const condition = c.where ?? conjunction(conditions.map((x) => not(x)))
        visit(c.child, { ...casePath, conditions: [...path.conditions, condition] })
      }
      return
    }
  }
}

function factsOnPath({ instance, queries, conditions }: Path, part?: FormatInstance): Facts {
  const facts = factsOf(instance.over, [...queries, ...(part?.queries ?? [])], part)
  return conditions.reduce((f, c) => f.assuming(assumptionsOf(c, true, f)), facts)
}

function partProvenance(part: number, path: Path): PartProvenance {
  const { label, instance } = path.instance.parts[part]!
  const facts = factsOnPath(path, instance)
  const inverse = proveInverse(instance, path.instance.over, facts) ? 'proved' : 'checked'
  const range = proveRange(instance, facts) ? 'proved' : 'checked'
  const name = label === '' ? instance.text : `${label}, ${instance.text}`
  return {
    label,
    format: instance.text,
    inverse,
    range,
    text: `${name}: ${combineGrounds('map and inverse agree', inverse, 'coordinates are in range', range)}`,
  }
}

function nodeProvenance(
  tree: PartTree,
  node: string,
  disjoint: Ground,
  cover: Ground,
  path: Path,
): NodeProvenance {
  const labels = partsBelow(tree).map((p) => path.instance.parts[p]!.label)
  return {
    node,
    parts: labels,
    disjoint,
    cover,
    text: `${node}: ${combineGrounds('parts are disjoint', disjoint, 'hold every coordinate', cover)}`,
  }
}

const GROUND: Readonly<Record<Ground, string>> = {
  construction: 'by construction',
  proved: 'proved',
  checked: 'checked while building',
}

const combineGrounds = (a: string, x: Ground, b: string, y: Ground): string =>
  x === y ? `${a} and ${b} (${GROUND[x]})` : `${a} (${GROUND[x]}) and ${b} (${GROUND[y]})`
