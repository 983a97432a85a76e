/** The levels of a kernel: numbers of positions, segments, and trees of axes, with the segment sizes that the kernel itself computes. */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Axis, StoredAxis } from '../../ir/coordinates/axis.ts'
import { countOf, indptrOf, isDense, isStored, raggedAxis, segmentSize } from '../../ir/coordinates/axis.ts'
import { type Expr, load, min, mul, variable } from '../../ir/expressions/expr.ts'
import { formatOf } from '../../levels/index.ts'
import type { Segment } from '../../levels/types.ts'

/** Treats a dense axis with run-time offsets as a ragged axis. */
const withOffsets = (a: Axis): Axis =>
  isDense(a) && a.offsets && a.parent !== null ? raggedAxis(a.name, a.parent, a.extent) : a

export type Levels = ReturnType<typeof levelsOf>

export function levelsOf(axes: readonly Axis[]) {
  const byName = new Map(axes.map((a) => [a.name, withOffsets(a)]))
  const counted = axes.filter((a) => isDense(a))
  /** Offset arrays that the kernel computes, by axis, with the capacity in positions; undefined if there is no limit. */
  const computed = new Map(
    counted.flatMap((a) => (a.offsets ? [[a.name, { array: a.offsets, room: a.capacity }] as const] : [])),
  )
  /** Numbers of positions per parent that the kernel counts, by axis. With a limited capacity, the offsets give the stored number instead. */
  const ends = new Map(
    counted.flatMap((a) => (a.count && !(a.offsets && a.capacity) ? [[a.name, a.count] as const] : [])),
  )
  const axis = (name: string): Axis => {
    const a = byName.get(name)
    invariant(a, `no axis ${name}`)
    return a
  }
  const stored = (name: string): StoredAxis => {
    const a = axis(name)
    invariant(isStored(a), `axis ${name} has no storage`)
    return a
  }
  /** Name of the array of segment offsets of a variable axis. */
  const offsets = (name: string): string => computed.get(name)?.array ?? indptrOf(name)
  /** The end of a loop over the positions of one parent, if the kernel counts them and the capacity is unlimited; otherwise undefined. */
  const end = (name: string): Expr | undefined => ends.get(name)
  /** The number of positions in a run; loaded for axes that the kernel counts. */
  const count = (name: string): Expr => {
    const { parent } = stored(name)
    return parent !== null && computed.has(name) ? load(offsets(name), [positions(parent)]) : positions(name)
  }
  /** The number of positions under all parents; the capacity for axes that the kernel counts. */
  const positions = (name: string): Expr => {
    const a = stored(name)
    const own = computed.get(name)
    const each = own ? a.extent : segmentSize(a)
    if (!each) return variable(countOf(a.name))
    const all = a.parent === null ? each : mul(positions(a.parent), each)
    return own?.room ? min(all, own.room) : all
  }
  /** The segment under parent position `parent`, or under the range up to `end`. A root has one segment. */
  const segment = (a: StoredAxis, parent: Expr | null, end: Expr | null = null): Segment => {
    invariant(parent || a.parent === null, `axis ${a.name} entered without its parent`)
    return formatOf(a).segment(a, parent, end, levels)
  }
  /** Groups axes into trees, in the order of their roots. */
  const trees = (names: readonly string[]): readonly (readonly string[])[] => {
    const out: string[][] = []
    const treeOf = new Map<string, string[]>()
    for (const name of names) {
      const { parent } = stored(name)
      const found = parent === null ? undefined : treeOf.get(parent)
      invariant(found || parent === null, `axis ${name} comes before its parent`)
      const tree = found ?? []
      if (!found) out.push(tree)
      tree.push(name)
      treeOf.set(name, tree)
    }
    return out
  }
  /** The shape of a buffer in positions: one dimension per tree, in the order of the roots. */
  const shape = (names: readonly string[]): Expr[] => trees(names).map((tree) => positions(tree.at(-1)!))
  const levels = { axis, stored, offsets, end, count, positions, segment, trees, shape }
  return levels
}
