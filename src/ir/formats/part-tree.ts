/** Decision trees of compositions: the part of a tensor that each coordinate belongs to. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../expressions/expr.ts'
import type { Query } from './queries.ts'

/**
 * The decision tree that maps a coordinate to its part. Queries of a node are over the coordinates that reach it.
 * `index`: the number of the child; an out-of-range number belongs to no part (`total`: this cannot happen). `cases`:
 * the only child whose condition holds; a `null` condition, last, takes the rest.
 */
export type PartTree =
  | { readonly kind: 'leaf'; readonly part: number }
  | {
      readonly kind: 'index'
      readonly text: string
      readonly queries: readonly Query[]
      readonly index: Expr
      readonly total: boolean
      /**
       * For each child, a condition implied for all its coordinates, over the old axes' names; empty if none is known.
       */
      readonly implied: readonly Expr[]
      readonly children: readonly PartTree[]
      readonly span?: Span | undefined
    }
  | {
      readonly kind: 'cases'
      readonly queries: readonly Query[]
      readonly cases: readonly {
        readonly text: string
        readonly where: Expr | null
        readonly child: PartTree
      }[]
      readonly span?: Span | undefined
    }

type PartNode = Exclude<PartTree, { kind: 'leaf' }>

export const childrenOf = (node: PartNode): readonly PartTree[] =>
  node.kind === 'index' ? node.children : node.cases.map((c) => c.child)

/** The expressions that select a child of a node. */
export const selectorsOf = (node: PartNode): readonly Expr[] =>
  node.kind === 'index' ? [node.index] : node.cases.flatMap((c) => c.where ?? [])

/** A condition of a format, with the queries that it may mention. */
export interface Condition {
  readonly where: Expr
  readonly queries: readonly Query[]
}

/** The conditions on the path from the root to a part. */
export function conditionsOf(tree: PartTree, part: number): readonly Condition[] {
  if (tree.kind === 'leaf') return []
  const k = childrenOf(tree).findIndex((child) => partsBelow(child).includes(part))
  const where = tree.kind === 'cases' ? tree.cases[k]?.where : null
  const child = childrenOf(tree)[k]
  return [...(where ? [{ where, queries: tree.queries }] : []), ...(child ? conditionsOf(child, part) : [])]
}

export const partsBelow = (tree: PartTree): readonly number[] =>
  tree.kind === 'leaf' ? [tree.part] : childrenOf(tree).flatMap(partsBelow)
