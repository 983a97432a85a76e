/** Report of the formats of tensors, and of their storage cost. */

import { gather } from '../../../columns/allocate.ts'
import { largest, Occurrences } from '../../../columns/key-columns.ts'
import { provenance } from '../../../formats/proof/provenance.ts'
import type { Buffer1, Kernel1, Reformat } from '../../../ir/coordinates/stage1.ts'
import { additionalArrays } from '../../../ir/formats/format-tables.ts'
import { getOrAdd, memoize } from '../../../ir/memoize.ts'
import { DTYPE_BYTES } from '../../../ir/values/dtype.ts'
import { describe } from '../../../storage/storage-report.ts'
import { callerTensors } from '../bind-plan.ts'
import { distinctLists, type EntryList } from '../sources/entry-list.ts'
import type { Bound, PartFormat, TensorFormat } from '../types.ts'

/** Returns the report of every tensor with a format: the formats, and their storage cost. O(stored elements); cached. */
export const reportOf = memoize((bound: Bound): readonly TensorFormat[] => {
  const { kernel, storages, reported } = bound
  if (!reported) return []
  const { tables, splitTimes, levelTimes } = reported
  const counts = new Map<string, Counts>()
  return callerTensors(kernel).flatMap((t): TensorFormat[] => {
    const steps = stepsTo(
      kernel,
      t.buffers.map((b) => b.name),
    )
    if (steps.length === 0) return []
    const axes = new Set(t.buffers.flatMap((b) => b.axes))
    const parts = t.buffers.map((b): PartFormat => {
      const storage = storages.get(b.name)!
      const d = describe(storage, b.dtype)
      const { label, text, tableNames } = partOf(steps, b.axes)
      // Tensors with the same structure have the same counts.
      const structure = b.axes.join()
      const { stored, rows } = getOrAdd(counts, structure, () => countsOf(b, bound))
      return {
        label,
        buffer: b.name,
        format: text,
        rows,
        slots: d.size,
        stored,
        padding: d.size - stored,
        bytes:
          d.structureBytes +
          d.size * DTYPE_BYTES[b.dtype] +
          tableNames.reduce((n, name) => n + (tables.get(name)?.byteLength ?? 0), 0),
        levels: d.levels,
      }
    })
    const sum = (of: (p: PartFormat) => number): number => parts.reduce((n, p) => n + of(p), 0)
    const times = [
      ...steps.map((r) => splitTimes.get(r) ?? 0),
      ...[...levelTimes].flatMap(([leaf, ms]) => (axes.has(leaf) ? [ms] : [])),
    ]
    return [
      {
        tensor: t.name,
        formats: steps.map((r) => r.format),
        parts,
        slots: sum((p) => p.slots),
        stored: sum((p) => p.stored),
        padding: sum((p) => p.padding),
        bytes: sum((p) => p.bytes),
        buildTime: times.reduce((n, ms) => n + ms, 0),
        provenance: steps.flatMap((r) => {
          const { nodes, parts: each } = provenance(r.instance)
          return [...nodes, ...each].map((x) => x.text)
        }),
      },
    ]
  })
})

function stepsTo(kernel: Kernel1, buffers: readonly string[]): Reformat[] {
  const wanted = new Set(buffers)
  const out: Reformat[] = []
  for (const r of kernel.reformats.toReversed())
    for (const b of r.buffers)
      if (b.parts.some((p) => wanted.has(p))) {
        wanted.add(b.name)
        if (!out.includes(r)) out.unshift(r)
      }
  return out
}

function partOf(
  steps: readonly Reformat[],
  axes: readonly string[],
): { label: string; text: string; tableNames: readonly string[] } {
  const found = steps.flatMap((r) =>
    r.instance.parts.filter((p) => p.instance.order.some((a) => axes.includes(a))),
  )
  return {
    label: found.map((p) => p.label).findLast((l) => l !== '') ?? '',
    text: found.map((p) => p.instance.text).at(-1) ?? '',
    tableNames: found.flatMap((p) => additionalArrays(p.instance).map((a) => a.name)),
  }
}

interface Counts {
  readonly rows: number
  readonly stored: number
}

function countsOf(b: Buffer1, { storages, lists, positions }: Bound): Counts {
  const own = lists.filter((p) => p.isOver(b.axes))
  const { members } = distinctLists(own, b.axes)
  const occupied = new Occurrences(storages.get(b.name)!.size)
  const stored = members.reduce((n, p) => n + occupied.add(positions(p, b.name), p.count), 0)
  return { stored, rows: rowsOf(members) }
}

/** The number of distinct coordinates on the first dimension. */
function rowsOf(lists: readonly EntryList[]): number {
  const columns = lists.map(({ source, entries }) => {
    const rows = source.columns[0]!
    return entries ? gather(rows, entries) : rows
  })
  const rows = new Occurrences(1 + columns.reduce((n, c) => Math.max(n, largest(c)), 0))
  return columns.reduce((n, c) => n + rows.add(c), 0)
}
