/** The caller's view of a kernel: tensors over their declared axes, before formats replaced these axes. */
import { invariant } from '../../../ast/diagnostics/diagnostic.ts'
import {
  type Axis,
  chainTo,
  isAttached,
  isDenseChain,
  isFused,
  isGathered,
  isStored,
  parentOf,
  type StoredAxis,
} from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1, Reformat } from '../../../ir/coordinates/stage1.ts'
import { allAxesOf, walkStmts1 } from '../../../ir/coordinates/stage1-tree.ts'
import { arrayClass, coordinatesAt } from '../../../ir/values/arrays.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import { convertValues, type DenseTensor, type ValueArray } from '../../../storage/tensor.ts'

export { allAxesOf } from '../../../ir/coordinates/stage1-tree.ts'

/** A tensor as declared in the kernel's source, and the buffers that store it. */
export interface CallerTensor {
  readonly name: string
  readonly axes: readonly string[]
  /** One buffer per part, in the order of the parts; the tensor itself if it has no format. */
  readonly buffers: readonly Buffer1[]
  /** The first buffer. Role, type and fill value are the same in all parts. */
  readonly first: Buffer1
}

/** The declared tensor (`owner`) of each buffer of a format, and the declared axes of each tensor. */
function declaredTensors(kernel: Kernel1) {
  const owner = new Map<string, string>()
  const axes = new Map<string, readonly string[]>()
  for (const r of kernel.reformats)
    for (const b of r.buffers) {
      const root = owner.get(b.name) ?? b.name
      if (!axes.has(root)) axes.set(root, b.axes)
      for (const part of b.parts) owner.set(part, root)
    }
  return { owner, axes }
}

export const tensorNameOf = (kernel: Kernel1, buffer: string): string =>
  declaredTensors(kernel).owner.get(buffer) ?? buffer

/** In the order of their first buffers, without tables of formats and buffers filled at run time. */
export function callerTensors(kernel: Kernel1): readonly CallerTensor[] {
  const { owner, axes } = declaredTensors(kernel)
  const parts = new Map<string, Buffer1[]>()
  for (const b of kernel.buffers) {
    if (b.table || b.filledAtRunTime) continue
    const root = owner.get(b.name) ?? b.name
    const known = parts.get(root)
    if (known) known.push(b)
    else parts.set(root, [b])
  }
  return [...parts].map(([name, buffers]) => ({
    name,
    axes: axes.get(name) ?? buffers[0]!.axes,
    buffers,
    first: buffers[0]!,
  }))
}

/** True if a tensor is read by the kernel before it may be written. */
export const isInput = ({ first: { role } }: CallerTensor): boolean => role === 'in' || role === 'inout'

export const callerTensor = (kernel: Kernel1, name: string): CallerTensor | undefined =>
  callerTensors(kernel).find((t) => t.name === name)

/** Returns true if a tensor is stored over its declared axes. */
export const asDeclared = (t: CallerTensor): boolean =>
  t.buffers.length === 1 && t.first.axes.join() === t.axes.join()

/** Returns the stored axis of this name, from a map that also contains replaced axes. */
export function storedAxis(axes: ReadonlyMap<string, Axis>, name: string): StoredAxis {
  const a = axes.get(name)
  invariant(a && isStored(a), `axis ${name} has no storage`)
  return a
}

/** The mask of the format in which a buffer is stored; undefined if it has none. */
export const maskOver = (kernel: Kernel1, b: Buffer1): Buffer1 | undefined =>
  kernel.buffers.find((x) => x.mask !== undefined && x.axes.every((a) => b.axes.includes(a)))

/** Returns true if the axis or one of its ancestors is sparse or ragged. */
export const isStructured = (axes: ReadonlyMap<string, Axis>, name: string): boolean =>
  !isDenseChain(axes, name)

/** The chains from a root to an axis without children. Every stored axis is on at least one. */
export function leafChains(axes: readonly Axis[]): readonly (readonly string[])[] {
  const stored = axes.filter(isStored)
  const byName = new Map<string, Axis>(stored.map((a) => [a.name, a]))
  const parents = new Set(stored.map(parentOf))
  return stored.filter((a) => !parents.has(a.name)).map((a) => chainTo(byName, a.name))
}

/** List and set arguments of formats by name, with the format step that uses each. */
export function givenOf(
  kernel: Kernel1,
): ReadonlyMap<string, { readonly kind: 'list' | 'set'; readonly of: Reformat }> {
  return new Map(
    kernel.reformats.flatMap((of) => of.instance.given.map((g) => [g.name, { kind: g.kind, of }] as const)),
  )
}

/** Axes that iterations visit but no tensor has (lists and bare patterns), the last one of each chain. */
export function axesWithoutTensor(kernel: Kernel1): readonly string[] {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const used = new Set<string>()
  const add = (name: string): void => {
    const a = axes.get(name)
    if (isFused(a)) for (const m of a.members) add(m)
    else if (isAttached(a) || isGathered(a)) add(a.base)
    else used.add(name)
  }
  walkStmts1(kernel.body, (s) => {
    if (s.kind === 'iterate') for (const x of s.iters) add(x.axis)
  })
  const covered = new Set(kernel.buffers.flatMap((b) => b.axes))
  return leafChains(kernel.axes).flatMap((chain) => {
    const last = chain.findLast((a) => used.has(a))
    return last === undefined || covered.has(last) ? [] : [last]
  })
}

// Storage order of dense tensors whose axes are declared in another order.

/** The order in which a buffer stores its dimensions: tree by tree, in the order of the roots. `null` if this is the declared order. */
export function storageOrder(kernel: Kernel1, names: readonly string[]): readonly number[] | null {
  const axes = allAxesOf(kernel)
  const roots = names.map((n) => chainTo(axes, n)[0]!)
  const trees = [...new Set(roots)]
  const order = trees.flatMap((r) => roots.flatMap((x, k) => (x === r ? [k] : [])))
  return order.every((d, k) => d === k) ? null : order
}

/** Returns true if a tensor is dense, without a format, and stored in the order of its dimensions. */
export const isRowMajor = (kernel: Kernel1, t: CallerTensor): boolean =>
  asDeclared(t) &&
  !t.axes.some((a) => isStructured(allAxesOf(kernel), a)) &&
  storageOrder(kernel, t.axes) === null

/** Permutes the dimensions of row-major values. `order[k]`: the input dimension that becomes dimension k. */
export function inOrder(
  values: ValueArray,
  dtype: Dtype,
  shape: readonly number[],
  order: readonly number[],
): ValueArray {
  const out = new (arrayClass(dtype))(values.length) as ValueArray
  const strides = shape.map((_, k) => shape.slice(k + 1).reduce((a, b) => a * b, 1))
  const at = order.map(() => 0)
  let from = 0
  for (let q = 0; q < out.length; q++) {
    out[q] = values[from]!
    for (let k = order.length - 1; k >= 0; k--) {
      const d = order[k]!
      from += strides[d]!
      if (++at[k]! < shape[d]!) break
      from -= strides[d]! * shape[d]!
      at[k] = 0
    }
  }
  return out
}

/** An element as text: `A[3, 5]`. */
export const elementOf = (name: string, coordinates: readonly number[]): string =>
  `${name}[${coordinates.join(', ')}]`

/** Converts the values of a dense tensor to another type. Throws SptError `bind/value-range`. */
export const convertDense = (
  name: string,
  { values, dtype, shape }: Pick<DenseTensor, 'values' | 'dtype' | 'shape'>,
  to: Dtype,
): ValueArray => convertValues(values, dtype, to, (at) => elementOf(name, coordinatesAt(at, shape)))

export const inverseOrder = (order: readonly number[]): readonly number[] =>
  order.map((_, d) => order.indexOf(d))
