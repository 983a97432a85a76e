/** The levels of a kernel: numbers of positions, segments, and trees of axes, with the segment sizes that the kernel itself computes. */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Axis, StoredAxis } from '../../ir/coordinates/axis.ts'
import { countOf, indptrOf, isDense, isStored, raggedAxis, segmentSize } from '../../ir/coordinates/axis.ts'
import { type Expr, load, min, mul, variable } from '../../ir/expressions/expr.ts'
import { formatOf } from '../../levels/index.ts'
import type { KernelLevels, Segment } from '../../levels/types.ts'

/** Treats a dense axis with run-time offsets as a ragged axis. */
const withOffsets = (a: Axis): Axis =>
  isDense(a) && a.offsets && a.parent !== null ? raggedAxis(a.name, a.parent, a.extent) : a

export class Levels implements KernelLevels {
  readonly #axes: ReadonlyMap<string, Axis>
  /** Offset arrays that the kernel computes, by axis, with the capacity in positions; undefined if there is no limit. */
  readonly #offsets: ReadonlyMap<string, { readonly array: string; readonly room: Expr | undefined }>

  /** Numbers of positions per parent that the kernel counts, by axis: ends of loops. */
  readonly #ends: ReadonlyMap<string, Expr>

  constructor(axes: readonly Axis[]) {
    this.#axes = new Map(axes.map((a) => [a.name, withOffsets(a)]))
    this.#offsets = new Map(
      axes.flatMap((a) =>
        isDense(a) && a.offsets ? [[a.name, { array: a.offsets, room: a.capacity }] as const] : [],
      ),
    )
    // With a limited capacity, the offsets give the stored number instead.
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

  /** Name of the array of segment offsets of a variable axis. */
  offsets(name: string): string {
    return this.#offsets.get(name)?.array ?? indptrOf(name)
  }

  /** The end of a loop over the positions of one parent, if the kernel counts them and the capacity is unlimited; otherwise undefined. */
  end(name: string): Expr | undefined {
    return this.#ends.get(name)
  }

  /** The number of positions in a run; loaded for axes that the kernel counts. */
  count(name: string): Expr {
    const { parent } = this.stored(name)
    return parent !== null && this.#offsets.has(name)
      ? load(this.offsets(name), [this.positions(parent)])
      : this.positions(name)
  }

  /** The number of positions under all parents; the capacity for axes that the kernel counts. */
  positions(name: string): Expr {
    const a = this.stored(name)
    const counted = this.#offsets.get(name)
    const each = counted ? a.extent : segmentSize(a)
    if (!each) return variable(countOf(a.name))
    const all = a.parent === null ? each : mul(this.positions(a.parent), each)
    return counted?.room ? min(all, counted.room) : all
  }

  /** The segment under parent position `parent`, or under the range up to `end`. A root has one segment. */
  segment(a: StoredAxis, parent: Expr | null, end: Expr | null = null): Segment {
    invariant(parent || a.parent === null, `axis ${a.name} entered without its parent`)
    return formatOf(a).segment(a, parent, end, this)
  }

  /** Groups axes into trees, in the order of their roots. */
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

  /** The shape of a buffer in positions: one dimension per tree, in the order of the roots. */
  shape(axes: readonly string[]): Expr[] {
    return this.trees(axes).map((tree) => this.positions(tree[tree.length - 1]!))
  }
}
