/**
 * The bind plan of a kernel: tensors over the declared axes, before formats replaced axes, and the operations of binding in order.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import {
  type Axis,
  chainTo,
  isAttached,
  isDenseChain,
  isFused,
  isGathered,
  isNonunique,
  isStored,
  parentOf,
  type StoredAxis,
} from '../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1, Reformat } from '../../ir/coordinates/stage1.ts'
import { allAxesOf, walkStmts1 } from '../../ir/coordinates/stage1-tree.ts'
import { groupBy, memoize } from '../../ir/memoize.ts'
import { arrayClass, coordinatesAt } from '../../ir/values/arrays.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { convertValues, type DenseTensor, type ValueArray } from '../../storage/tensor.ts'

export { allAxesOf } from '../../ir/coordinates/stage1-tree.ts'

/** A tensor as declared in the kernel's source, and the buffers that store it. */
export interface CallerTensor {
  readonly name: string
  readonly axes: readonly string[]
  /** One buffer per part, in the order of the parts; the tensor itself without a format. */
  readonly buffers: readonly Buffer1[]
  /** The first buffer. Every part has the same role, type and fill value. */
  readonly first: Buffer1
  /** The kernel may read the tensor before the first write. */
  readonly isInput: boolean
  /** The tensor is stored over the declared axes. */
  readonly asDeclared: boolean
  /** Declared axes that are sparse or ragged, or below such an axis. */
  readonly structured: readonly string[]
  /** Dimensions in the order of storage, tree by tree in the order of the roots; `null`: as declared. */
  readonly order: readonly number[] | null
}

/** Levels to assemble: those of a chain of axes, or of a prefix that other chains or shorter tensors may share. */
export interface LevelStep {
  readonly axes: readonly string[]
  readonly layout: readonly StoredAxis[]
  /** The whole chain; `null` for a chain itself. */
  readonly prefixOf: readonly string[] | null
}

/** The facts of a kernel that binding needs, and the operations in order, derived once. */
export interface BindPlan {
  /** Axes by name, also axes that formats replaced. */
  readonly axes: ReadonlyMap<string, Axis>
  /** Tensors in the order of their first buffers, without tables of formats and buffers filled at run time. */
  readonly tensors: readonly CallerTensor[]
  /** The tensor of each buffer, by name. */
  readonly owners: ReadonlyMap<string, string>
  /** List and set arguments of formats by name, with the format step that uses each. */
  readonly operands: ReadonlyMap<string, { readonly kind: 'list' | 'set'; readonly of: Reformat }>
  /** Axes that iterations visit but no tensor has (lists and bare patterns), the last one of each chain. */
  readonly bare: readonly string[]
  readonly levels: readonly LevelStep[]
  readonly stored: readonly StoredAxis[]
  /** The axes of each buffer, by name. */
  readonly layouts: ReadonlyMap<string, readonly StoredAxis[]>
  readonly masks: readonly Buffer1[]
}

export const bindPlan = memoize((kernel: Kernel1): BindPlan => {
  const axes = allAxesOf(kernel)
  const chains = leafChains(kernel.axes)
  const { owners, declared } = declaredTensors(kernel)
  const buffers = groupBy(
    kernel.buffers.filter((b) => !b.table && !b.filledAtRunTime),
    (b) => owners.get(b.name) ?? b.name,
  )
  const tensors = [...buffers].map(([name, own]): CallerTensor => {
    const first = own[0]!
    const over = declared.get(name) ?? first.axes
    return {
      name,
      axes: over,
      buffers: own,
      first,
      isInput: first.role === 'in' || first.role === 'inout',
      asDeclared: own.length === 1 && first.axes.join() === over.join(),
      structured: over.filter((a) => isStructured(axes, a)),
      order: storageOrder(axes, over),
    }
  })
  const isPrefix = (prefix: readonly string[]): boolean =>
    isStructured(axes, prefix.at(-1)!) && !prefix.some((a) => isNonunique(axes.get(a)!))
  const prefixes = chains.flatMap((chain) =>
    chain.slice(0, -1).map((_, d) => ({ axes: chain.slice(0, d + 1), prefixOf: chain })),
  )
  return {
    axes,
    tensors,
    owners,
    operands: new Map(
      kernel.reformats.flatMap((of) => of.instance.given.map((g) => [g.name, { kind: g.kind, of }] as const)),
    ),
    bare: axesWithoutTensor(kernel, chains),
    levels: [
      ...prefixes.filter((p) => isPrefix(p.axes)),
      ...chains.map((chain) => ({ axes: chain, prefixOf: null })),
    ].map((step) => ({ ...step, layout: step.axes.map((a) => storedAxis(axes, a)) })),
    stored: kernel.axes.filter(isStored),
    layouts: new Map(kernel.buffers.map((b) => [b.name, b.axes.map((a) => storedAxis(axes, a))])),
    masks: kernel.buffers.filter((b) => b.mask !== undefined),
  }
})

/** The declared tensor of each buffer of a format, and the declared axes of each tensor. */
function declaredTensors(kernel: Kernel1) {
  const owners = new Map<string, string>()
  const declared = new Map<string, readonly string[]>()
  for (const r of kernel.reformats)
    for (const b of r.buffers) {
      const root = owners.get(b.name) ?? b.name
      if (!declared.has(root)) declared.set(root, b.axes)
      for (const part of b.parts) owners.set(part, root)
    }
  return { owners, declared }
}

export const callerTensors = (kernel: Kernel1): readonly CallerTensor[] => bindPlan(kernel).tensors

export const callerTensor = (kernel: Kernel1, name: string): CallerTensor | undefined =>
  callerTensors(kernel).find((t) => t.name === name)

/** Returns the stored axis of this name, from a map that also contains replaced axes. */
export function storedAxis(axes: ReadonlyMap<string, Axis>, name: string): StoredAxis {
  const a = axes.get(name)
  invariant(a && isStored(a), `axis ${name} has no storage`)
  return a
}

/** The mask of the format in which a buffer is stored; undefined without a mask. */
export const maskOver = (kernel: Kernel1, b: Buffer1): Buffer1 | undefined =>
  bindPlan(kernel).masks.find((x) => x.axes.every((a) => b.axes.includes(a)))

/** Returns true if the axis or an ancestor is sparse or ragged. */
export const isStructured = (axes: ReadonlyMap<string, Axis>, name: string): boolean =>
  !isDenseChain(axes, name)

/** The chains from a root to an axis without children. Every stored axis is on a chain. */
export function leafChains(axes: readonly Axis[]): readonly (readonly string[])[] {
  const stored = axes.filter(isStored)
  const byName = new Map<string, Axis>(stored.map((a) => [a.name, a]))
  const parents = new Set(stored.map(parentOf))
  return stored.filter((a) => !parents.has(a.name)).map((a) => chainTo(byName, a.name))
}

function axesWithoutTensor(kernel: Kernel1, chains: readonly (readonly string[])[]): readonly string[] {
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
  return chains.flatMap((chain) => {
    const last = chain.findLast((a) => used.has(a))
    return last === undefined || covered.has(last) ? [] : [last]
  })
}

// Storage order of dense tensors whose axes are declared in another order.

function storageOrder(axes: ReadonlyMap<string, Axis>, names: readonly string[]): readonly number[] | null {
  const roots = names.map((n) => chainTo(axes, n)[0]!)
  const trees = [...new Set(roots)]
  const order = trees.flatMap((r) => roots.flatMap((x, k) => (x === r ? [k] : [])))
  return order.every((d, k) => d === k) ? null : order
}

/** True if a tensor is dense, without a format, and stored in the order of its dimensions. */
export const isRowMajor = (t: CallerTensor): boolean =>
  t.asDeclared && t.structured.length === 0 && t.order === null

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
