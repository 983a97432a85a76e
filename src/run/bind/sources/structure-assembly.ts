/** Assembly of structure: from coordinates on stored axes to the levels of all axes, and the storage of every buffer. */

import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { LEVEL_ARRAYS } from '../../../ast/nodes/axis-kinds.ts'
import { sameColumn } from '../../../columns/key-columns.ts'
import type { Level } from '../../../columns/stored-level.ts'
import { isDense, isNonunique, isStored, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { getOrAdd } from '../../../ir/memoize.ts'
import { MASK_BITS, packFields } from '../../../ir/values/packed-fields.ts'
import { bindLevel } from '../../../levels/index.ts'
import { type AxisSizes, buildStorage, sizesOfAxes } from '../../../storage/build-storage.ts'
import { type Entry, positionsOf, scatterValues } from '../../../storage/entries/locate.ts'
import type { FormatOperands } from '../../../storage/format-operands.ts'
import { validateStored } from '../../../storage/ready/validate.ts'
import type { Storage } from '../../../storage/storage.ts'
import { extentOf, makeLazyStorage, makeStorage, separatesDuplicates } from '../../../storage/storage.ts'
import { gatherValues, type StoredTensor, type ValueArray } from '../../../storage/tensor.ts'
import type { Elsewhere } from '../types.ts'
import {
  type BindPlan,
  bindPlan,
  callerTensor,
  elementOf,
  isStructured,
  storedAxis,
} from './caller-tensors.ts'
import { checkApart, distinctLists, type EntryList, united } from './entry-list.ts'

export interface Structure {
  readonly storages: ReadonlyMap<string, Storage>
  readonly levels: ReadonlyMap<string, Level>
  /** Positions of a list's entries in a buffer over its axes; `null`: entry e has position e. Computed once. */
  readonly positions: (list: EntryList, buffer: string) => Int32Array | null
  /** Milliseconds per chain of levels, by its last axis. */
  readonly times: ReadonlyMap<string, number>
}

const sameLevel = (x: Level, y: Level): boolean =>
  x.positions === y.positions && LEVEL_ARRAYS.every((array) => sameColumn(x[array], y[array]))

/** Builds the levels of all axes and the storage of all buffers; `ready` arrays and `levels` are reused. */
export function buildStructure(
  kernel: Kernel1,
  lists: readonly EntryList[],
  ready: ReadonlyMap<string, StoredTensor>,
  levels: Elsewhere['levels'],
  operands: FormatOperands,
): Structure {
  const structure = new StructureBuilder(kernel, lists, operands)
  for (const [name, level] of levels) structure.levels.set(name, level)
  for (const [name, tensor] of ready) structure.adoptReady(name, tensor)
  for (const { axes, prefixOf } of bindPlan(kernel).levels) structure.build(axes, prefixOf)
  structure.assembleBuffers()
  return structure
}

class StructureBuilder implements Structure {
  readonly levels = new Map<string, Level>()
  readonly storages = new Map<string, Storage>()
  readonly times = new Map<string, number>()
  readonly #kernel: Kernel1
  readonly #lists: readonly EntryList[]
  readonly #axes: BindPlan['axes']
  readonly #sizes: AxisSizes
  readonly #found = new Map<EntryList, Map<string, Int32Array | null>>()

  constructor(kernel: Kernel1, lists: readonly EntryList[], operands: FormatOperands) {
    this.#kernel = kernel
    this.#lists = lists
    this.#axes = bindPlan(kernel).axes
    this.#sizes = sizesOfAxes(kernel.axes.filter(isStored), operands)
  }

  readonly #axis = (name: string): StoredAxis => storedAxis(this.#axes, name)

  adoptReady(name: string, tensor: StoredTensor): void {
    const { axes: over, fill } = this.#kernel.buffers.find((b) => b.name === name)!
    const own = callerTensor(this.#kernel, name)
    const storage = validateStored(over.map(this.#axis), this.#sizes, tensor, {
      name,
      fill,
      part: !own?.asDeclared,
    })
    this.storages.set(name, storage)
    this.#adopt(storage, over)
  }

  #adopt(storage: Storage, names: readonly string[]): void {
    for (const name of names) {
      const level = storage.levels.get(name)
      if (!level) continue
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

  /** Builds storage. Coordinates are not range-checked again, because bound ones were checked and format maps stay in range. */
  #build(
    over: readonly string[],
    coords: readonly Int32Array[],
    from: readonly EntryList[],
    distinct = false,
  ): Storage {
    return buildStorage({
      ...(from.some(this.#keeps) ? {} : { duplicates: 'share' as const }),
      ...this.#sizes,
      axes: over.map(this.#axis),
      coords,
      inRange: true,
      distinct,
      existing: new Map([...this.levels].filter(([, l]) => !isNonunique(l.axis))),
    })
  }

  /** Builds the levels of a chain of axes, or of a prefix of one that other chains or shorter tensors share. */
  build(axes: readonly string[], prefixOf: readonly string[] | null): void {
    if (axes.every((a) => this.levels.has(a))) return
    const start = performance.now()
    const from = this.#lists.filter((p) => p.isOver(axes))
    if (prefixOf && from.every((p) => p.isOver(prefixOf))) return
    if (from.length === 0 && this.#buildDense(axes)) return
    const buffer = this.#bufferOver(axes, from)
    const over = buffer?.axes ?? axes
    // Dense levels need no entries.
    const needed = buffer || !axes.every((a) => isDense(this.#axis(a))) ? from : []
    const { members, first } = distinctLists(needed, over)
    const union = united(members, over, this.#keeps)
    const [alone] = members.length === 1 ? members : []
    const distinct = alone !== undefined && alone.order !== 'unknown' && alone.axes.length === over.length
    const storage = this.#build(over, union.columns, from, distinct)
    checkApart(this.#axes, members, union, storage)
    if (buffer && over.every((a) => !this.levels.has(a) || !isStructured(this.#axes, a))) {
      this.storages.set(buffer.name, storage)
      const { positions } = storage.entries!
      const slices = new Map(members.map((p) => [p, union.positionsOf(p, positions)]))
      for (const p of from) positionsBy(this.#found, p).set(over.join(), slices.get(first.get(p)!)!)
    }
    this.#adopt(storage, over)
    this.times.set(axes.at(-1)!, performance.now() - start)
  }

  /** Builds a dense axis below a structured one, whose positions follow from those of the parent; false for other chains. */
  #buildDense(chain: readonly string[]): boolean {
    const name = chain.at(-1)!
    const axis = this.#axis(name)
    if (!isDense(axis) || !isStructured(this.#axes, name)) return false
    const above = chain.slice(0, -1)
    this.build(above, null)
    const parent = this.levels.get(above.at(-1)!)!
    this.levels.set(name, bindLevel(axis, extentOf(this.#sizes.extents, name), parent, {}, {}, null))
    return true
  }

  /**
   * A buffer over the chain and all lists in `from`, whose storage gives the positions of their entries. Its other trees
   * are final, and none of them exists with duplicates.
   */
  #bufferOver(chain: readonly string[], from: readonly EntryList[]): Buffer1 | undefined {
    const isSettled = (a: string): boolean =>
      chain.includes(a) ||
      isDense(this.#axis(a)) ||
      (this.levels.has(a)
        ? !isNonunique(this.#axis(a))
        : this.#lists.every((p) => from.includes(p) || !p.axes.includes(a)))
    if (from.length === 0) return undefined
    return this.#kernel.buffers.find(
      (b) =>
        chain.every((a) => b.axes.includes(a)) &&
        from.every((p) => p.isOver(b.axes)) &&
        b.axes.every(isSettled),
    )
  }

  assembleBuffers(): void {
    for (const b of this.#kernel.buffers) {
      if (this.storages.has(b.name)) continue
      const over = b.axes.map(this.#axis)
      const levels = new Map(b.axes.map((a) => [a, this.levels.get(a)!]))
      this.storages.set(
        b.name,
        b.role === 'local' ? makeLazyStorage(over, levels) : makeStorage(over, levels, null),
      )
    }
  }

  readonly positions = (list: EntryList, buffer: string): Int32Array | null => {
    const storage = this.storages.get(buffer)!
    const over = storage.axes.map((a) => a.name)
    return getOrAdd(positionsBy(this.#found, list), over.join(), () => positionsOf(storage, list.over(over)))
  }
}

const positionsBy = (found: Map<EntryList, Map<string, Int32Array | null>>, list: EntryList) =>
  getOrAdd(found, list, () => new Map<string, Int32Array | null>())

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
  const distinct = storage.entries?.positions === positions && storage.entries.distinct
  const own: Storage = { ...storage, entries: { count: list.count, coords, positions, distinct } }
  const held = values && list.entries ? gatherValues({ values, dtype }, list.entries) : values
  const { name, columns } = list.source
  const pointOf = (entry: number): number[] => columns.map((c) => c[entry]!)
  const place = (e: number): string => elementOf(name, pointOf(list.entries?.[e] ?? e))
  return scatterValues(own, { coords, values: held, dtype }, b.dtype, b.fill, place)
}
