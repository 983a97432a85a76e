/**
 * Entry lists: coordinates by axis, in the axes that the caller declared or in those of a stored part; and unions of lists over the same
 * axes.
 */

import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { lazy } from '../../../ast/lazy.ts'
import { allocate, ascending, concat, gather } from '../../../columns/allocate.ts'
import { repetitions, uniqueTuples } from '../../../columns/key-columns.ts'
import { isSorted } from '../../../columns/lexicographic-sort.ts'
import type { Storage } from '../../../storage/storage.ts'
import type { Tensor } from '../../../storage/tensor.ts'

interface Content {
  /** A column for each axis. */
  readonly columns: readonly Int32Array[]
  /** Shape and values in declared coordinates; `null` for structure without values. */
  readonly tensor: Tensor | null
}

/** `ascending`: in lexicographic order, and distinct. `distinct`: no two entries are equal. */
type EntryOrder = 'ascending' | 'distinct' | 'unknown'

/** Entries of a tensor, with coordinates on some axes. */
export class EntryList {
  /** Name of the tensor, or of the last axis of bare structure. */
  readonly name: string
  readonly axes: readonly string[]
  /** The list in declared coordinates: this one, or the one of which `entries` are stored on other axes. */
  readonly source: EntryList
  /** Ascending entries of `source`; `null`: all. */
  readonly entries: Int32Array | null
  readonly #content: () => Content
  readonly #order: () => EntryOrder

  constructor(
    name: string,
    axes: readonly string[],
    content: () => Content,
    of: {
      readonly source: EntryList
      readonly entries: Int32Array | null
      readonly order: EntryOrder
    } | null = null,
  ) {
    this.name = name
    this.axes = axes
    this.#content = content
    this.source = of?.source ?? this
    this.entries = of?.entries ?? null
    this.#order = lazy(() => of?.order ?? (isSorted(this.columns, 0, true) ? 'ascending' : 'unknown'))
  }

  get columns(): readonly Int32Array[] {
    return this.#content().columns
  }

  get tensor(): Tensor | null {
    return this.#content().tensor
  }

  get order(): EntryOrder {
    return this.#order()
  }

  get count(): number {
    return this.entries?.length ?? this.columns[0]?.length ?? this.tensor?.values?.length ?? 1
  }

  /** True if the list has coordinates on all these axes. */
  isOver(axes: readonly string[]): boolean {
    return axes.every((a) => this.axes.includes(a))
  }

  /** The columns of these axes. */
  over(axes: readonly string[]): readonly Int32Array[] {
    return axes.map((a) => this.columns[this.axes.indexOf(a)]!)
  }

  /** Some entries of this list, on other axes. */
  part(
    columns: ReadonlyMap<string, Int32Array>,
    entries: Int32Array | null,
    order: EntryOrder = 'unknown',
  ): EntryList {
    const content: Content = { columns: [...columns.values()], tensor: this.tensor }
    return new EntryList(this.name, [...columns.keys()], () => content, {
      source: this.source,
      entries,
      order,
    })
  }

  withTensor(tensor: Tensor): EntryList {
    const { columns } = this
    return new EntryList(this.name, this.axes, () => ({ columns, tensor }))
  }
}

/** Groups lists whose columns on these axes are the same arrays; `first`: the first list of its group, by list. */
export function distinctLists(
  lists: readonly EntryList[],
  axes: readonly string[],
): { readonly members: readonly EntryList[]; readonly first: ReadonlyMap<EntryList, EntryList> } {
  const members: EntryList[] = []
  const first = new Map<EntryList, EntryList>()
  for (const list of lists) {
    const columns = list.over(axes)
    const same = members.find((m) => m.over(axes).every((c, d) => c === columns[d]))
    if (!same) members.push(list)
    first.set(list, same ?? list)
  }
  return { members, first }
}

interface Union {
  readonly columns: readonly Int32Array[]
  /** Maps positions of the union's entries to those of a list's entries, in its order. `null`: entry e has position e. */
  readonly positionsOf: (list: EntryList, positions: Int32Array | null) => Int32Array | null
}

/**
 * Returns the union of the lists' entries on these axes, in order. Normally, equal coordinates are simply repeated. If a list keeps
 * duplicates apart (`keeps`, for nonunique axes), the k-th duplicate of one list is identified with the k-th of another. All duplicates
 * of other lists are identified with the first.
 */
export function united(
  lists: readonly EntryList[],
  axes: readonly string[],
  keeps: (p: EntryList) => boolean,
): Union {
  const columns = axes.map((a) => concat(lists.map((p) => p.over([a])[0]!)))
  const kept = lists.map(keeps)
  const apart = kept.includes(true) && lists.length > 1
  const ids = apart ? uniqueTuples([...columns, timesOf(columns, lists, kept)]) : null
  const starts = new Map<EntryList, number>()
  let before = 0
  for (const p of lists) {
    starts.set(p, before)
    before += p.count
  }
  const positionsOf = (p: EntryList, positions: Int32Array | null): Int32Array | null => {
    if (lists.length === 1) return positions
    const at = starts.get(p)!
    const to = at + p.count
    const own = ids?.indexOf.subarray(at, to)
    if (own) return positions ? gather(positions, own) : own
    return positions ? positions.subarray(at, to) : ascending(to - at, 'positions', at)
  }
  return { columns: ids ? columns.map((c) => gather(c, ids.entries)) : columns, positionsOf }
}

/** The rank of each entry among its equals in its list; 0 in lists that do not keep duplicates apart. */
function timesOf(
  columns: readonly Int32Array[],
  lists: readonly EntryList[],
  kept: readonly boolean[],
): Int32Array {
  const times = new Int32Array(columns[0]!.length)
  let at = 0
  lists.forEach((p, k) => {
    const to = at + p.count
    if (kept[k]) times.set(repetitions(columns.map((c) => c.subarray(at, to))), at)
    at = to
  })
  return times
}

// Duplicate coordinates: entries of a `nonunique` axis that must stay separate, in formats that cannot keep
// them apart.

/** @throws SptError `bind/duplicates` if two entries have one position */
export function checkDistinct(list: EntryList, positions: Int32Array, storage: Storage): void {
  const first = allocate(storage.size, 'positions').fill(-1)
  for (let e = 0; e < positions.length; e++) {
    const at = positions[e]!
    const other = first[at]!
    first[at] = e
    if (other < 0) continue
    const [a, b] = [other, e].map((k) => list.entries?.[k] ?? k)
    const coordinate = list.source.columns.map((c) => c[b!]).join(', ')
    failWith(
      'bind/duplicates',
      `entries ${a} and ${b} of ${list.name} are both at (${coordinate}); its axes are declared nonunique, so each is visited, and its format over [${storage.axes.map((x) => x.name).join(', ')}] has a single place`,
      {
        expected: 'each coordinate once, or a format with a nonunique axis, such as coo',
        hint: 'add equal coordinates up before binding, or declare the axes unique: equal coordinates then add up',
      },
    )
  }
}
