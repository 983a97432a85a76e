/**
 * Where the positions of an axis lie: the arithmetic of the axis kinds (`ir/axis.ts`), as expressions. The one
 * place that knows how a level is laid out; iteration and access both build on it.
 */
import { invariant } from '../../ast/diagnostic.ts'
import {
  type Axis,
  countOf,
  hasHoles,
  indicesOf,
  indptrOf,
  isStored,
  type StoredAxis,
} from '../../ir/axis.ts'
import { add, type Expr, int, load, lt, mul, sub, variable } from '../../ir/expr.ts'
import { isSet, rankOf } from './bitmap.ts'

export class Levels {
  readonly #axes: ReadonlyMap<string, Axis>

  constructor(axes: readonly Axis[]) {
    this.#axes = new Map(axes.map((a) => [a.name, a]))
  }

  axis(name: string): Axis {
    const a = this.#axes.get(name)
    invariant(a, `no axis ${name}`)
    return a
  }

  stored(name: string): StoredAxis {
    const a = this.axis(name)
    invariant(isStored(a), `axis ${name} has no storage`)
    return a
  }

  /** How many positions the axis has under all positions of its parent together. */
  positions(name: string): Expr {
    const a = this.stored(name)
    switch (a.kind) {
      case 'dense_fixed':
        return a.parent === null ? a.extent : mul(this.positions(a.parent), a.extent)
      case 'bitmap':
      case 'dense_variable':
      case 'sparse_variable':
        return variable(countOf(a.name))
      case 'sparse_fixed':
        return mul(this.positions(a.parent), a.width)
    }
  }

  /**
   * First position under parent position `parent` (up to parent position `end`, if it is given), and how many there
   * are; of a bitmap, how many there can be. A root has one segment.
   */
  segment(
    a: StoredAxis,
    parent: Expr | null,
    end: Expr | null = null,
  ): { readonly base: Expr; readonly length: Expr } {
    switch (a.kind) {
      case 'dense_fixed':
        return { base: parent === null ? int(0) : mul(parent, a.extent), length: a.extent }
      case 'sparse_fixed':
        invariant(parent, `axis ${a.name} entered without its parent`)
        return { base: mul(parent, a.width), length: end ? mul(sub(end, parent), a.width) : a.width }
      case 'bitmap':
        invariant(parent, `axis ${a.name} entered without its parent`)
        return { base: load(indptrOf(a.name), [parent], 'i32'), length: a.extent }
      case 'dense_variable':
      case 'sparse_variable': {
        if (parent === null) return { base: int(0), length: variable(countOf(a.name)) }
        const at = (p: Expr): Expr => load(indptrOf(a.name), [p], 'i32')
        const base = at(parent)
        return { base, length: sub(at(end ?? add(parent, int(1))), base) }
      }
    }
  }

  /**
   * What stands at place `relative` of the segment under `parent` that starts at `base`: its position and
   * coordinate, and the conditions under which there is anything (padding, bits that are not set).
   */
  entry(
    a: StoredAxis,
    parent: Expr | null,
    base: Expr,
    relative: Expr,
  ): { readonly offset: Expr; readonly coordinate: Expr; readonly guards: readonly Expr[] } {
    switch (a.kind) {
      case 'dense_fixed':
      case 'dense_variable':
        return { offset: add(base, relative), coordinate: relative, guards: [] }
      case 'bitmap':
        invariant(parent, `axis ${a.name} entered without its parent`)
        return {
          offset: add(base, rankOf(a, parent, relative)),
          coordinate: relative,
          guards: [isSet(a, parent, relative)],
        }
      case 'sparse_fixed':
      case 'sparse_variable': {
        const offset = add(base, relative)
        const coordinate = load(indicesOf(a.name), [offset], 'i32')
        return {
          offset,
          coordinate,
          guards: hasHoles(a) ? [lt(coordinate, a.extent)] : [],
        }
      }
    }
  }

  /** One group of axes for each tree, in order of the roots' first appearance. */
  trees(axes: readonly string[]): readonly (readonly string[])[] {
    const trees: string[][] = []
    const treeOf = new Map<string, string[]>()
    for (const name of axes) {
      const a = this.stored(name)
      const { parent } = a
      const tree = parent === null ? undefined : treeOf.get(parent)
      if (tree) {
        tree.push(name)
        treeOf.set(name, tree)
      } else {
        invariant(parent === null, `axis ${name} comes before its parent`)
        const fresh = [name]
        trees.push(fresh)
        treeOf.set(name, fresh)
      }
    }
    return trees
  }

  /** The shape of a buffer in positions: one dimension for each tree, in order of the roots' first appearance. */
  shape(axes: readonly string[]): Expr[] {
    return this.trees(axes).map((tree) => this.positions(tree[tree.length - 1]!))
  }
}
