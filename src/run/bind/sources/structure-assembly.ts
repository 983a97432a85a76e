/** Assembly of structure: from coordinates on stored axes to the levels of all axes, and the storage of every buffer. */

import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { LEVEL_ARRAYS } from '../../../ast/nodes/axis-kinds.ts'
import { allocate } from '../../../columns/allocate.ts'
import { sameColumn } from '../../../columns/key-columns.ts'
import type { Level, PlacedEntries } from '../../../columns/stored-level.ts'
import { chainTo, isDense, isNonunique, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { getOrAdd } from '../../../ir/memoize.ts'
import { MASK_BITS, packFields } from '../../../ir/values/packed-fields.ts'
import { bindLevel } from '../../../levels/index.ts'
import { buildStorage, sizesOfAxes } from '../../../storage/build-storage.ts'
import { type Entry, locate, scatterValues } from '../../../storage/entries/locate.ts'
import type { FormatOperands } from '../../../storage/format-operands.ts'
import type { Storage } from '../../../storage/storage.ts'
import { extentOf, makeLazyStorage, makeStorage, separatesDuplicates } from '../../../storage/storage.ts'
import { gatherValues, type StoredTensor, type ValueArray } from '../../../storage/tensor.ts'
import { bindPlan, callerTensor, elementOf, type LevelStep, storedAxis } from '../bind-plan.ts'
import type { RareInputs } from '../rare-inputs.ts'
import type { Bound, Elsewhere } from '../types.ts'
import { checkDistinct, distinctLists, type EntryList, united } from './entry-list.ts'

const sameLevel = (x: Level, y: Level): boolean =>
  x.positions === y.positions && LEVEL_ARRAYS.every((array) => sameColumn(x[array], y[array]))

/** The levels of all axes, the storage of all buffers, and the positions of entries in them. */
export interface Structure extends Pick<Bound, 'positions'> {
  readonly levels: ReadonlyMap<string, Level>
  readonly storages: ReadonlyMap<string, Storage>
  /** Milliseconds per chain of levels, by its last axis. */
  readonly times: ReadonlyMap<string, number>
}

/** Builds all levels from the entries of the lists, except those of `ready` arrays, and `given` ones. */
export function assembleStructure(
  kernel: Kernel1,
  lists: readonly EntryList[],
  ready: ReadonlyMap<string, StoredTensor>,
  given: ReadonlyMap<string, Level>,
  operands: FormatOperands,
  rare: RareInputs | null,
): Structure {
  const plan = bindPlan(kernel)
  const axis = (name: string): StoredAxis => storedAxis(plan.axes, name)
  const sizes = sizesOfAxes(plan.stored, operands)
  const levels = new Map(given)
  const storages = new Map<string, Storage>()
  const times = new Map<string, number>()
  /** By axis, the union of entries from which its level and those above were built. */
  const placed = new Map<string, PlacedEntries>()
  /** Positions of entries on the level of an axis, and in buffers, by the names of their axes. */
  const known = new Map<EntryList, Map<string, Int32Array | null>>()
  const positionsOf = (list: EntryList): Map<string, Int32Array | null> =>
    getOrAdd(known, list, () => new Map<string, Int32Array | null>())

  const adopt = (added: ReadonlyMap<string, Level>): void => {
    for (const [name, level] of added) {
      const existing = levels.get(name)
      if (existing && !sameLevel(existing, level))
        failWith(
          'bind/structure-differs',
          `two tensors give axis ${name} different structure (${existing.positions} and ${level.positions} positions)`,
          {
            expected: 'a single structure for each axis',
            hint: 'declare a separate axis for the second tensor',
          },
        )
      if (!existing) levels.set(name, level)
    }
  }

  /** Returns true if duplicates stay separate, because an axis is declared nonunique; otherwise they are summed. */
  const keeps = (p: EntryList): boolean => separatesDuplicates(p.source.axes.map(axis))
  /** Returns true if equal coordinates of a list have separate positions, which only a single tree permits. */
  const separates = (p: EntryList): boolean =>
    keeps(p) && new Set(p.axes.map((a) => chainTo(plan.axes, a)[0])).size === 1

  /** Builds the levels of a chain of axes, or of a prefix of one that other chains or shorter tensors share. */
  const build = ({ axes, prefixOf, layout }: LevelStep): void => {
    if (axes.every((a) => levels.has(a))) return
    const start = performance.now()
    const from = lists.filter((p) => p.isOver(axes))
    if (prefixOf && from.every((p) => p.isOver(prefixOf))) return
    if (layout.every(isDense) || (from.length === 0 && isDense(layout.at(-1)))) {
      buildDense(layout)
      return
    }
    const { members, first } = distinctLists(from, axes)
    const union = united(members, axes, keeps)
    const [alone] = members.length === 1 ? members : []
    // Coordinates are not range-checked again, because bound ones were checked and format maps stay in range.
    const built = buildStorage({
      duplicates: from.some(separates) ? undefined : 'share',
      axes: layout,
      coords: union.columns,
      inRange: true,
      distinct: alone !== undefined && alone.order !== 'unknown' && alone.axes.length === axes.length,
      existing: levels,
      ...sizes,
    })
    adopt(built.levels)
    const leaf = axes.at(-1)!
    if (from.length > 0) placed.set(leaf, built.entries)
    for (const p of from) positionsOf(p).set(leaf, union.positionsOf(first.get(p)!, built.entries.positions))
    times.set(leaf, performance.now() - start)
  }

  /** Builds dense levels, whose positions follow from those of the parent, and the levels above them. */
  const buildDense = (layout: readonly StoredAxis[]): void => {
    const own = layout.at(-1)!
    const above = layout.slice(0, -1)
    if (above.length > 0) build({ axes: above.map((a) => a.name), prefixOf: null, layout: above })
    if (levels.has(own.name)) return
    const parent = levels.get(above.at(-1)?.name ?? '') ?? null
    const fixed = { capacity: sizes.capacities?.get(own.name) }
    levels.set(own.name, bindLevel(own, extentOf(sizes.extents, own.name), parent, {}, fixed, null))
  }

  /** Positions on the last level of a tree; undefined if they must be searched for. */
  const onTree = (list: EntryList, tree: readonly Level[]): Int32Array | null | undefined => {
    const found = positionsOf(list).get(tree.at(-1)!.axis.name)
    if (found !== undefined || !tree.every((l) => isDense(l.axis))) return found
    const columns = list.over(tree.map((l) => l.axis.name))
    return columns.length === 1 ? columns[0] : addressOf(list, columns, (d) => tree[d]!.extent)
  }

  const positions: Structure['positions'] = (list, buffer, separateDuplicates) => {
    const storage = storages.get(buffer)!
    const over = storage.axes.map((a) => a.name)
    return getOrAdd(positionsOf(list), over.join(), () => {
      const trees = storage.trees.map((tree) => onTree(list, tree))
      if (trees.includes(undefined)) return locate(storage, list.over(over), separateDuplicates, placed)
      const onTrees = trees as (Int32Array | null)[]
      if (trees.length === 1) return onTrees[0]!
      return addressOf(list, onTrees, (k) => storage.trees[k]!.at(-1)!.positions)
    })
  }

  /** Equal coordinates on nonunique axes have separate positions, as iterations visit each. @throws `bind/duplicates` */
  const checkApart = (): void => {
    for (const list of lists) {
      if (!keeps(list) || (separates(list) && list.axes.some((a) => isNonunique(axis(a))))) continue
      const b = kernel.buffers.find((x) => x.axes.length === list.axes.length && list.isOver(x.axes))
      const own = b && positions(list, b.name)
      // Without positions, each entry has its own position.
      if (own) checkDistinct(list, own, storages.get(b.name)!)
    }
  }

  for (const [name, tensor] of ready) {
    const { fill } = kernel.buffers.find((b) => b.name === name)!
    const part = !callerTensor(kernel, name)?.asDeclared
    const storage = rare!.validateStored(plan.layouts.get(name)!, sizes, tensor, { name, fill, part })
    storages.set(name, storage)
    adopt(storage.levels)
  }
  for (const step of plan.levels) build(step)
  for (const { name, axes, role } of kernel.buffers) {
    if (storages.has(name)) continue
    const own = new Map(axes.map((a) => [a, levels.get(a)!]))
    storages.set(name, (role === 'local' ? makeLazyStorage : makeStorage)(plan.layouts.get(name)!, own))
  }
  checkApart()
  return { levels, storages, times, positions }
}

/** Combines positions in dimensions of these sizes into one; `null`: entry e has position e. */
function addressOf(
  list: EntryList,
  columns: readonly (Int32Array | null)[],
  sizeOf: (d: number) => number,
): Int32Array {
  const out = allocate(list.count, 'positions')
  for (const [d, at] of columns.entries()) {
    const size = sizeOf(d)
    for (let e = 0; e < out.length; e++) out[e] = out[e]! * size + (at ? at[e]! : e)
  }
  return out
}

/** Masks of formats by name: bits for the entries of all tensors over their axes, which are the coordinates that iterations visit. */
export function masksOf(
  kernel: Kernel1,
  lists: readonly EntryList[],
  { storages, positions }: Structure,
  elsewhere: Elsewhere,
): ReadonlyMap<string, Int32Array> {
  const masks = bindPlan(kernel).masks.filter((b) => !b.axes.every((a) => elsewhere.levels.has(a)))
  return new Map(
    masks.map((b) => {
      const held = new Uint8Array(storages.get(b.name)!.size)
      const own = lists.filter((p) => p.isOver(b.axes))
      for (const p of distinctLists(own, b.axes).members) {
        const at = positions(p, b.name)
        if (at) for (const position of at) held[position] = 1
        else held.fill(1, 0, p.count)
      }
      return [b.name, packFields(held, MASK_BITS)] as const
    }),
  )
}

/** Returns the values of a buffer, in storage order, from the source of a list and the positions of its entries. */
export function placedValues(
  storage: Storage,
  b: Buffer1,
  list: EntryList,
  positions: Int32Array | null,
  { values, dtype }: Pick<Entry, 'values' | 'dtype'>,
): ValueArray {
  const coords = list.over(b.axes)
  const held = values && list.entries ? gatherValues({ values, dtype }, list.entries) : values
  const { name, columns } = list.source
  const pointOf = (entry: number): number[] => columns.map((c) => c[entry]!)
  const place = (e: number): string => elementOf(name, pointOf(list.entries?.[e] ?? e))
  const distinct = list.order !== 'unknown' && list.axes.length === b.axes.length
  return scatterValues(
    storage,
    { coords, values: held, dtype },
    b.dtype,
    b.fill,
    { positions, distinct },
    place,
  )
}
