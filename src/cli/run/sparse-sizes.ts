/** Fill statistics of the sparse tensors of a run. */
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { callerTensor, callerTensors } from '../../run/bind/bind-plan.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Tensor } from '../../storage/tensor.ts'

export interface SparseSizes {
  /** Number of entries of each sparse tensor, in coordinates of the unscheduled kernel. */
  readonly nnz: Readonly<Record<string, number>>
  /** Number of stored elements of each, including padding. */
  readonly stored: Readonly<Record<string, number>>
}

/** Number of bound entries of each tensor that have the coordinates of another one; values of these are added. */
export const duplicatesIn = (
  tensors: Readonly<Record<string, Tensor>>,
  nnz: Readonly<Record<string, number>>,
): Record<string, number> =>
  Object.fromEntries(
    Object.entries(tensors).flatMap(([name, t]) =>
      t.kind === 'coords' && t.padding === undefined && t.coords[0]!.length > (nnz[name] ?? Infinity)
        ? [[name, t.coords[0]!.length - nnz[name]!]]
        : [],
    ),
  )

/** Bound tensors whose values have another type than the buffer: `x: f64 to f32`. */
export const conversions = (kernel: Kernel1, tensors: Readonly<Record<string, Tensor>>): readonly string[] =>
  Object.entries(tensors).flatMap(([name, t]) => {
    const declared = callerTensor(kernel, name)?.first.dtype
    return declared === undefined || t.values === null || t.dtype === declared
      ? []
      : [`${name}: ${t.dtype} to ${declared}`]
  })

export function sparseSizes(bound: Bound): SparseSizes {
  const { kernel } = bound
  const nnz: [string, number][] = []
  const stored: [string, number][] = []
  for (const t of callerTensors(kernel)) {
    if (t.first.role === 'local' || t.structured.length === 0) continue
    const size = t.buffers.reduce((n, b) => n + bound.storages.get(b.name)!.size, 0)
    stored.push([t.name, size])
    nnz.push([t.name, t.asDeclared ? size : (countDistinct(bound, t.axes) ?? size)])
  }
  return { nnz: Object.fromEntries(nnz), stored: Object.fromEntries(stored) }
}

/** Number of distinct coordinates over these axes; `undefined` if no source covers all axes. */
function countDistinct(bound: Bound, axes: readonly string[]): number | undefined {
  const sources = bound.sources.filter((s) => s.isOver(axes))
  if (sources.length === 0) return undefined
  const columns = sources.map((s) => s.over(axes))
  const keys = new Float64Array(columns.reduce((n, c) => n + c[0]!.length, 0))
  // Coordinates are linearised. If an index exceeds the exact integers, duplicates are counted, too.
  const extents = axes.map((_, d) =>
    columns.reduce((m, c) => c[d]!.reduce((a, x) => Math.max(a, x + 1), m), 1),
  )
  if (extents.reduce((a, b) => a * b, 1) > Number.MAX_SAFE_INTEGER) return keys.length
  let next = 0
  for (const c of columns)
    for (let e = 0; e < c[0]!.length; e++)
      keys[next++] = c.reduce((key, column, d) => key * extents[d]! + column[e]!, 0)
  keys.sort()
  return keys.reduce((n, key, e) => n + (e === 0 || key !== keys[e - 1] ? 1 : 0), 0)
}
