/** Assembly of structure: from coordinates on stored axes to the levels of all axes, and the storage of every buffer. */

import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { LEVEL_ARRAYS } from '../../../ast/nodes/axis-kinds.ts'
import { allocate } from '../../../columns/allocate.ts'
import { sameColumn } from '../../../columns/key-columns.ts'
import type { Level, PlacedEntries } from '../../../columns/stored-level.ts'
import { chainTo, isDense, isNonunique, isStored, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { getOrAdd } from '../../../ir/memoize.ts'
import { MASK_BITS, packFields } from '../../../ir/values/packed-fields.ts'
import { bindLevel } from '../../../levels/index.ts'
import { type AxisSizes, buildStorage, sizesOfAxes } from '../../../storage/build-storage.ts'
import { type Entry, locate, scatterValues } from '../../../storage/entries/locate.ts'
import type { FormatOperands } from '../../../storage/format-operands.ts'
import { validateStored } from '../../../storage/ready/validate.ts'
import type { Storage } from '../../../storage/storage.ts'
import { extentOf, makeLazyStorage, makeStorage, separatesDuplicates } from '../../../storage/storage.ts'
import { gatherValues, type StoredTensor, type ValueArray } from '../../../storage/tensor.ts'
import { type BindPlan, bindPlan, callerTensor, elementOf, isStructured, storedAxis } from '../bind-plan.ts'
import type { Bound, Elsewhere } from '../types.ts'
import { checkDistinct, distinctLists, type EntryList, united } from './entry-list.ts'

const sameLevel = (x: Level, y: Level): boolean =>
  x.positions === y.positions && LEVEL_ARRAYS.every((array) => sameColumn(x[array], y[array]))

/** The levels of all axes, the storage of all buffers, and the positions of entries in them. */
export class Structure {
  readonly levels: Map<string, Level>
  readonly storages = new Map<string, Storage>()
  /** Milliseconds per chain of levels, by its last axis. */
  readonly times = new Map<string, number>()
  readonly #kernel: Kernel1
  readonly #lists: readonly EntryList[]
  readonly #axes: BindPlan['axes']
  readonly #sizes: AxisSizes
  /** By axis, the union of entries from which its level and those above were built. */
  readonly #placed = new Map<string, PlacedEntries>()
  /** Positions of entries on the level of an axis, and in buffers, by the names of their axes. */
  readonly #positions = new Map<EntryList, Map<string, Int32Array | null>>()

  /** Builds all levels from the entries of the lists, except those of `ready` arrays, and `given` ones. */
  constructor(
    kernel: Kernel1,
    lists: readonly EntryList[],
    ready: ReadonlyMap<string, StoredTensor>,
    given: ReadonlyMap<string, Level>,
    operands: FormatOperands,
  ) {
    const plan = bindPlan(kernel)
    this.#kernel = kernel
    this.#lists = lists
    this.#axes = plan.axes
    this.#sizes = sizesOfAxes(kernel.axes.filter(isStored), operands)
    this.levels = new Map(given)
    for (const [name, tensor] of ready) this.#adoptReady(name, tensor)
    for (const { axes, prefixOf } of plan.levels) this.#build(axes, prefixOf)
    this.#assembleBuffers()
    this.#checkApart()
  }

  readonly #axis = (name: string): StoredAxis => storedAxis(this.#axes, name)

  #adoptReady(name: string, tensor: StoredTensor): void {
    const { axes: over, fill } = this.#kernel.buffers.find((b) => b.name === name)!
    const own = callerTensor(this.#kernel, name)
    const storage = validateStored(over.map(this.#axis), this.#sizes, tensor, {
      name,
      fill,
      part: !own?.asDeclared,
    })
    this.storages.set(name, storage)
    this.#adopt(storage.levels)
  }

  #adopt(levels: ReadonlyMap<string, Level>): void {
    for (const [name, level] of levels) {
      const known = this.levels.get(name)
      if (known && !sameLevel(known, level))
        failWith(
          'bind/structure-differs',
          `two tensors give axis ${name} different structure (${known.positions} and ${level.positions} positions)`,
          {
            expected: 'a single structure for each axis',
            hint: 'declare a separate axis for the second tensor',
          },
        )
      if (!known) this.levels.set(name, level)
    }
  }

  /** Returns true if duplicates stay separate, because an axis is declared nonunique; otherwise they are summed. */
  readonly #keeps = (p: EntryList): boolean => separatesDuplicates(p.source.axes.map(this.#axis))

  /** Returns true if equal coordinates of a list have separate positions, which only a single tree permits. */
  readonly #separates = (p: EntryList): boolean =>
    this.#keeps(p) && new Set(p.axes.map((a) => chainTo(this.#axes, a)[0])).size === 1

  /** Builds the levels of a chain of axes, or of a prefix of one that other chains or shorter tensors share. */
  #build(axes: readonly string[], prefixOf: readonly string[] | null): void {
    if (axes.every((a) => this.levels.has(a))) return
    const start = performance.now()
    const from = this.#lists.filter((p) => p.isOver(axes))
    if (prefixOf && from.every((p) => p.isOver(prefixOf))) return
    if (from.length === 0 && this.#buildDense(axes)) return
    // Dense levels need no entries.
    const needed = axes.every((a) => isDense(this.#axis(a))) ? [] : from
    const { members, first } = distinctLists(needed, axes)
    const union = united(members, axes, this.#keeps)
    const [alone] = members.length === 1 ? members : []
    // Coordinates are not range-checked again, because bound ones were checked and format maps stay in range.
    const { levels, entries } = buildStorage({
      ...this.#sizes,
      ...(from.some(this.#separates) ? {} : { duplicates: 'share' as const }),
      axes: axes.map(this.#axis),
      coords: union.columns,
      inRange: true,
      distinct: alone !== undefined && alone.order !== 'unknown' && alone.axes.length === axes.length,
      existing: new Map([...this.levels].filter(([, l]) => !isNonunique(l.axis))),
    })
    this.#adopt(levels)
    const leaf = axes.at(-1)!
    if (needed.length > 0) this.#placed.set(leaf, entries)
    for (const p of needed)
      this.#positionsOf(p).set(leaf, union.positionsOf(first.get(p)!, entries.positions))
    this.times.set(leaf, performance.now() - start)
  }

  /** Builds a dense axis below a structured one, whose positions follow from those of the parent; false for other chains. */
  #buildDense(chain: readonly string[]): boolean {
    const name = chain.at(-1)!
    const axis = this.#axis(name)
    if (!isDense(axis) || !isStructured(this.#axes, name)) return false
    const above = chain.slice(0, -1)
    this.#build(above, null)
    const parent = this.levels.get(above.at(-1)!)!
    this.levels.set(name, bindLevel(axis, extentOf(this.#sizes.extents, name), parent, {}, {}, null))
    return true
  }

  #assembleBuffers(): void {
    for (const b of this.#kernel.buffers) {
      if (this.storages.has(b.name)) continue
      const over = b.axes.map(this.#axis)
      const levels = new Map(b.axes.map((a) => [a, this.levels.get(a)!]))
      this.storages.set(
        b.name,
        b.role === 'local' ? makeLazyStorage(over, levels) : makeStorage(over, levels),
      )
    }
  }

  readonly positions: Bound['positions'] = (list, buffer, separateDuplicates) => {
    const storage = this.storages.get(buffer)!
    const over = storage.axes.map((a) => a.name)
    return getOrAdd(this.#positionsOf(list), over.join(), () => {
      const known = this.#composed(list, storage)
      return known === undefined ? locate(storage, list.over(over), separateDuplicates, this.#placed) : known
    })
  }

  readonly #positionsOf = (list: EntryList): Map<string, Int32Array | null> =>
    getOrAdd(this.#positions, list, () => new Map<string, Int32Array | null>())

  /** Positions in a storage from those on the last level of each tree; undefined if one of these is unknown. */
  #composed(list: EntryList, { trees }: Storage): Int32Array | null | undefined {
    const positions = trees.map((tree) => this.#onTree(list, tree))
    if (positions.includes(undefined)) return undefined
    if (trees.length === 1) return positions[0]
    const out = allocate(list.count, 'positions')
    for (const [k, tree] of trees.entries()) {
      const [at, size] = [positions[k], tree.at(-1)!.positions]
      for (let e = 0; e < out.length; e++) out[e] = out[e]! * size + (at ? at[e]! : e)
    }
    return out
  }

  /** Positions on the last level of a tree; undefined if they must be searched for. */
  #onTree(list: EntryList, tree: readonly Level[]): Int32Array | null | undefined {
    const known = this.#positionsOf(list).get(tree.at(-1)!.axis.name)
    if (known !== undefined || !tree.every((l) => isDense(l.axis))) return known
    const columns = list.over(tree.map((l) => l.axis.name))
    if (columns.length === 1) return columns[0]
    const out = allocate(list.count, 'positions')
    for (const [d, { extent }] of tree.entries())
      for (let e = 0; e < out.length; e++) out[e] = out[e]! * extent + columns[d]![e]!
    return out
  }

  /** Equal coordinates on nonunique axes have separate positions, as iterations visit each. @throws `bind/duplicates` */
  #checkApart(): void {
    for (const list of this.#lists) {
      if (!this.#keeps(list) || (this.#separates(list) && list.axes.some((a) => isNonunique(this.#axis(a)))))
        continue
      const b = this.#kernel.buffers.find((x) => x.axes.length === list.axes.length && list.isOver(x.axes))
      const positions = b && this.positions(list, b.name)
      // Without positions, each entry has its own position.
      if (positions) checkDistinct(list, positions, this.storages.get(b.name)!)
    }
  }
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
