/**
 * Where the positions of an axis lie: the arithmetic of level formats (`ast/axis-kinds.ts`), as expressions. The one
 * place that knows how a level is laid out; iteration and access both build on it.
 */
import { invariant } from '../../ast/diagnostic.ts'
import {
  type Axis,
  countOf,
  hasHoles,
  hasIndices,
  hasMask,
  indicesOf,
  indptrOf,
  isDense,
  isStored,
  raggedAxis,
  type StoredAxis,
  segmentSize,
} from '../../ir/axis.ts'
import { add, type Expr, int, load, lt, min, mul, sub, variable } from '../../ir/expr.ts'
import { isSet, rankOf } from './bitmap.ts'

/** An axis whose positions lie one after the other is as one of variable length. */
const withOffsets = (a: Axis): Axis =>
  isDense(a) && a.offsets && a.parent !== null ? raggedAxis(a.name, a.parent, a.extent) : a

export class Levels {
  readonly #axes: ReadonlyMap<string, Axis>
  /** Arrays of offsets that the kernel fills, by axis, and how many positions there is room for. */
  readonly #offsets: ReadonlyMap<string, { readonly array: string; readonly room: Expr | undefined }>

  /** Where loops over the positions under one of the parent end that the kernel has counted. */
  readonly #ends: ReadonlyMap<string, Expr>

  constructor(axes: readonly Axis[]) {
    this.#axes = new Map(axes.map((a) => [a.name, withOffsets(a)]))
    this.#offsets = new Map(
      axes.flatMap((a) =>
        isDense(a) && a.offsets ? [[a.name, { array: a.offsets, room: a.capacity }] as const] : [],
      ),
    )
    // Where there may be no room for all of them, the offsets know better.
    this.#ends = new Map(
      axes.flatMap((a) =>
        isDense(a) && a.count && !(a.offsets && a.capacity) ? [[a.name, a.count] as const] : [],
      ),
    )
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

  /** The array of where segments of a variable axis begin. */
  offsets(name: string): string {
    return this.#offsets.get(name)?.array ?? indptrOf(name)
  }

  /** Where a loop over the positions under one of the parent ends, if the kernel counts them and has room for all. */
  end(name: string): Expr | undefined {
    return this.#ends.get(name)
  }

  /** How many positions a run has; known before it but for what it counts itself. */
  count(name: string): Expr {
    const { parent } = this.stored(name)
    return parent !== null && this.#offsets.has(name)
      ? load(this.offsets(name), [this.positions(parent)], 'i32')
      : this.positions(name)
  }

  /** How many positions the axis has under all positions of its parent together, and how many there can be of what a run counts. */
  positions(name: string): Expr {
    const a = this.stored(name)
    const counted = this.#offsets.get(name)
    const each = counted ? a.extent : segmentSize(a)
    if (!each) return variable(countOf(a.name))
    const all = a.parent === null ? each : mul(this.positions(a.parent), each)
    return counted?.room ? min(all, counted.room) : all
  }

  /**
   * First position under parent position `parent` (up to parent position `end`, if it is given), and how many there
   * are; of a mask, how many there can be. A root has one segment.
   */
  segment(
    a: StoredAxis,
    parent: Expr | null,
    end: Expr | null = null,
  ): { readonly base: Expr; readonly length: Expr } {
    const each = segmentSize(a)
    invariant(parent || a.parent === null, `axis ${a.name} entered without its parent`)
    if (parent === null) return { base: int(0), length: each ?? variable(countOf(a.name)) }
    if (each) return { base: mul(parent, each), length: end ? mul(sub(end, parent), each) : each }
    const at = (p: Expr): Expr => load(this.offsets(a.name), [p], 'i32')
    const base = at(parent)
    return { base, length: hasMask(a) ? a.extent : sub(at(end ?? add(parent, int(1))), base) }
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
    if (hasMask(a)) {
      invariant(parent, `axis ${a.name} entered without its parent`)
      const offset = add(base, rankOf(a, parent, relative))
      return { offset, coordinate: relative, guards: [isSet(a, parent, relative)] }
    }
    const offset = add(base, relative)
    if (!hasIndices(a)) return { offset, coordinate: relative, guards: [] }
    const coordinate = load(indicesOf(a.name), [offset], 'i32')
    return { offset, coordinate, guards: hasHoles(a) ? [lt(coordinate, a.extent)] : [] }
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
