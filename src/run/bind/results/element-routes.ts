/** Elements of tensors in a format: their coordinates in the caller's axes, and the positions that store them. */
import { runSync } from '../../../ast/work.ts'
import { allocate } from '../../../columns/allocate.ts'
import { rankedTuples } from '../../../columns/key-columns.ts'
import { chainTo } from '../../../ir/coordinates/axis.ts'
import type { FormatOperands } from '../../../storage/format-operands.ts'
import { separatesDuplicates } from '../../../storage/storage.ts'
import { bindPlan, type CallerTensor, storedAxis } from '../bind-plan.ts'
import { fullColumns } from '../sources/coordinate-sources.ts'
import { EntryList, united } from '../sources/entry-list.ts'
import { remapSources } from '../sources/remap-entries.ts'
import type { Bound, Route } from '../types.ts'
import { bufferOf, tensorOf } from './gather-results.ts'

type RouteInput = Pick<Bound, 'kernel' | 'sources' | 'lists' | 'positions'> & {
  readonly known: FormatOperands
  readonly ready: readonly EntryList[]
}

/** Returns the coordinates of a tensor and their positions, by splitting the caller's structure as the sources were split. */
export function routeOf(input: RouteInput, name: string): Route {
  const { kernel, known } = input
  const t = tensorOf(kernel, name)
  const direct = routeOfLists(t, input)
  if (direct) return direct
  const columns = fullColumns(t.axes, bindPlan(kernel).axes, known.extents, input.sources)
  const all = new EntryList(name, t.axes, () => ({ columns, tensor: null }))
  const { lists } = runSync(remapSources(kernel, [...input.sources, all], known))
  return {
    columns,
    parts: lists.flatMap((p) => {
      if (p.source !== all) return []
      const buffer = bufferOf(t, p).name
      return { buffer, elements: p.entries, positions: input.positions(p, buffer, true) }
    }),
  }
}

/** From the bound lists, each element being an entry of a source; `null` if the structure lacks dimensions. */
function routeOfLists(t: CallerTensor, input: RouteInput): Route | null {
  const { lists, positions } = input
  const ready = input.ready.find((s) => s.axes.join() === t.axes.join())
  const from = ready ? [ready] : sourcesOfStructure(t, input)
  const mine = lists.filter((p) => from.includes(p.source))
  if (from.length === 0 || !mine.every((p) => t.buffers.some((b) => p.isOver(b.axes)))) return null
  const axes = bindPlan(input.kernel).axes
  const apart = separatesDuplicates(t.axes.map((a) => storedAxis(axes, a)))
  const union = united(from, t.axes, () => apart)
  const entries = new Map(from.map((s) => [s, union.positionsOf(s, null)]))
  // Each position of ready-made arrays is an element, even if coordinates repeat.
  const { columns, rank } = rankedTuples(union.columns, ready !== undefined || apart)
  return {
    columns,
    parts: mine.map((p) => {
      const buffer = bufferOf(t, p).name
      const indices = entries.get(p.source)!
      const elements = allocate(p.count, 'elements')
      for (let k = 0; k < elements.length; k++) {
        const e = p.entries ? p.entries[k]! : k
        elements[k] = rank[indices ? indices[e]! : e]!
      }
      return { buffer, elements, positions: positions(p, buffer) }
    }),
  }
}

/** Sources with the structure of a tensor; empty if the tensor has axes outside of that structure, too. */
function sourcesOfStructure(t: CallerTensor, { kernel, sources }: RouteInput): readonly EntryList[] {
  const { axes } = bindPlan(kernel)
  const { structured } = t
  if (structured.length === 0 || t.axes.some((a) => chainTo(axes, a)[0] !== t.axes[0])) return []
  return sources.filter((s) => s.isOver(structured))
}
