/** Conversion of results from storage order back to the caller's coordinates. */
import { failWith, invariant } from '../../../ast/diagnostics/diagnostic.ts'
import { runSync } from '../../../ast/work.ts'
import { allocate } from '../../../columns/allocate.ts'
import { rankedTuples } from '../../../columns/key-columns.ts'
import { chainTo } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { toCoords } from '../../../storage/entries/stored-coords.ts'
import type { FormatOperands } from '../../../storage/format-operands.ts'
import { separatesDuplicates } from '../../../storage/storage.ts'
import { newValues, type Tensor, type ValueArray } from '../../../storage/tensor.ts'
import {
  bindPlan,
  type CallerTensor,
  callerTensor,
  callerTensors,
  inOrder,
  storedAxis,
} from '../bind-plan.ts'
import { extentsOf, fullColumns } from '../sources/coordinate-sources.ts'
import { EntryList, united } from '../sources/entry-list.ts'
import { remapSources } from '../sources/remap-entries.ts'
import type { Bound, Route } from '../types.ts'

/** Names of the buffers that store a tensor. Throws SptError `bind/unknown-name`. */
export function buffersOf(kernel: Kernel1, name: string): readonly string[] {
  return tensorOf(kernel, name).buffers.map((b) => b.name)
}

/** Returns the tensor of this name. Throws SptError `bind/unknown-name`. */
export function tensorOf(kernel: Kernel1, name: string): CallerTensor {
  const t = callerTensor(kernel, name)
  if (t) return t
  const candidates = callerTensors(kernel).map((x) => x.name)
  return failWith('bind/unknown-name', `kernel ${kernel.name} has no tensor ${name}`, {
    lookup: { name, candidates },
    expected: `one of ${candidates.join(', ')}`,
  })
}

/** Returns true if a tensor is dense and without a format, so its coordinates do not depend on other bound data. */
export function isAlone(kernel: Kernel1, name: string): boolean {
  const t = tensorOf(kernel, name)
  return t.asDeclared && t.structured.length === 0
}

/**
 * Returns a tensor from the values of its buffers, in storage order: dense, or coordinates with values if an axis is sparse. Padding is
 * dropped. The result has the buffer's fill value if it is not 0.
 */
export function readTensor(bound: Bound, name: string, values: ReadonlyMap<string, ValueArray>): Tensor {
  const { kernel } = bound
  const t = tensorOf(kernel, name)
  const { dtype, fill } = t.first
  const absent = fill === 0 ? {} : { fill }
  const extents = extentsOf(kernel, bound.params)
  const shape = t.axes.map((a) => extents.get(a) ?? 0)
  const isDense = t.structured.length === 0
  if (t.asDeclared) {
    const own = values.get(t.first.name)!
    if (isDense) {
      const { order } = t
      if (!order) return { kind: 'dense', shape, values: own, dtype }
      const stored = order.map((d) => shape[d]!)
      const inverse = order.map((_, d) => order.indexOf(d))
      return { kind: 'dense', shape, values: inOrder(own, dtype, stored, inverse), dtype }
    }
    return { ...toCoords(bound.storages.get(t.first.name)!, own, dtype), shape, ...absent }
  }
  const { columns, parts } = bound.route(name)
  const n = columns[0]!.length
  const out = newValues(dtype, n)
  for (const p of parts) {
    const own = values.get(p.buffer)!
    const count = p.elements?.length ?? n
    for (let s = 0; s < count; s++)
      out[p.elements ? p.elements[s]! : s] = own[p.positions ? p.positions[s]! : s]!
  }
  if (!isDense) return { kind: 'coords', shape, coords: columns, values: out, dtype, ...absent }
  return { kind: 'dense', shape, values: out, dtype }
}

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

export function bufferOf(t: CallerTensor, p: EntryList): Buffer1 {
  const b = t.buffers.find((x) => p.isOver(x.axes))
  invariant(b, `no buffer of ${t.name} is over the axes of one of its lists`)
  return b
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
