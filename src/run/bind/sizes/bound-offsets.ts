/** Offsets of ragged axes, and values by position, become ready-made arrays, which later phases check. */
import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import type { Axis, StoredAxis } from '../../../ir/coordinates/axis.ts'
import { chainTo, isDense, isDenseRoot, isRagged } from '../../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { freeVars } from '../../../ir/expressions/expr-tree.ts'
import { type Dtype, isFloat } from '../../../ir/values/dtype.ts'
import { evaluate } from '../../../ir/values/evaluate.ts'
import { sizeIn } from '../../../storage/format-operands.ts'
import type { DenseTensor, StoredTensor, Tensor } from '../../../storage/tensor.ts'
import { bindPlan, callerTensor, storedAxis } from '../bind-plan.ts'
import { bindingOf } from '../binding-names.ts'

type Tensors = Readonly<Record<string, Tensor>>
type Arrays = StoredTensor['arrays']

/** Returns true if a single array bound to `name` is read as offsets: `name` is a ragged axis with a parent. */
export const takesOffsets = (kernel: Kernel1, name: string): boolean =>
  isRagged(bindPlan(kernel).axes.get(name)) && bindingOf(kernel, name).kind === 'axis'

/**
 * Returns the axes from the root to the axis at whose positions a tensor's values may be given. The arrays of this axis must be bound, and
 * the other axes of the tensor must be dense roots. `null` if there is no such axis.
 */
export function positionsOf(
  kernel: Kernel1,
  name: string,
  isBound: (axis: string) => boolean,
): readonly string[] | null {
  const { axes } = bindPlan(kernel)
  const over = callerTensor(kernel, name)?.axes
  const leaf = over?.findLast((a) => !isDenseRoot(axes.get(a)!))
  if (!over || leaf === undefined || !isBound(leaf)) return null
  const chain = chainTo(axes, leaf)
  const isWhole = chain.every((a, d) => a === over[d])
  return isWhole && over.slice(chain.length).every((a) => isDenseRoot(axes.get(a)!)) ? chain : null
}

function isOffsets(kernel: Kernel1, name: string, t: Tensor | undefined): t is DenseTensor {
  return t?.kind === 'dense' && t.shape.length === 1 && takesOffsets(kernel, name)
}

function isArrays(kernel: Kernel1, name: string, t: Tensor | undefined): t is StoredTensor {
  return t?.kind === 'stored' && bindingOf(kernel, name, t).kind === 'axis'
}

/** Returns true if a tensor has one dimension for all positions of `chain`, plus one per following axis. */
const isByPosition = (t: Tensor, over: number, chain: readonly string[]): t is DenseTensor =>
  t.kind === 'dense' && chain.length > 1 && t.shape.length === 1 + over - chain.length

/**
 * Offsets and values by position become ready-made arrays. Missing sizes are inferred: the parent's from the number of
 * offsets, the axis' own from its longest segment. Throws SptError `bind/array-type`, `bind/missing-array`,
 * `bind/missing-size`.
 */
export function readyByPosition(
  kernel: Kernel1,
  tensors: Tensors,
  params: Readonly<Record<string, number>>,
): Record<string, Tensor> {
  const { axes } = bindPlan(kernel)
  // Only arrays that are bound to axes give positions.
  if (!Object.keys(tensors).some((name) => axes.has(name))) return { ...tensors }
  const hasArrays = (a: string): boolean =>
    isOffsets(kernel, a, tensors[a]) || isArrays(kernel, a, tensors[a])
  const offsets = new Map<string, Int32Array>()
  const byPosition = new Map<string, { readonly chain: readonly string[]; readonly tensor: DenseTensor }>()
  for (const [name, tensor] of Object.entries(tensors)) {
    if (isOffsets(kernel, name, tensor)) offsets.set(name, integers(name, axes, tensor))
    const chain = positionsOf(kernel, name, hasArrays)
    if (chain && isByPosition(tensor, callerTensor(kernel, name)!.axes.length, chain))
      byPosition.set(name, { chain, tensor })
  }
  const others = Object.entries(tensors).filter(([name]) => !offsets.has(name) && !byPosition.has(name))
  const known = new Map([...sizesOfShapes(kernel, Object.fromEntries(others)), ...Object.entries(params)])
  learnSizes(axes, offsets, known)
  const ready = (
    chain: readonly string[],
    rest: readonly number[],
    values: StoredTensor['values'],
    dtype: Dtype,
  ): StoredTensor => {
    const own = arrays(axes, chain, offsets, tensors)
    const extents = chain.map((a) => extentOf(storedAxis(axes, a), known))
    return { kind: 'stored', shape: [...extents, ...rest], arrays: own, values, dtype }
  }
  return Object.fromEntries([
    ...others,
    ...[...offsets.keys()].map((name) => [name, ready(chainTo(axes, name), [], null, 'f32')] as const),
    ...[...byPosition].map(([name, { chain, tensor: t }]) => {
      return [name, ready(chain, t.shape.slice(1), t.values, t.dtype)] as const
    }),
  ])
}

/** Converts offsets to 32-bit integers. Throws SptError `bind/array-type` for floats and booleans. */
function integers(name: string, axes: ReadonlyMap<string, Axis>, { values, dtype }: DenseTensor): Int32Array {
  if (values instanceof Int32Array) return values
  if (isFloat(dtype) || dtype === 'bool')
    failWith('bind/array-type', `the offsets of axis ${name} are ${dtype}`, {
      expected: `32-bit integers: the first 0, never decreasing, and one more than ${chainTo(axes, name).at(-2)} has positions`,
      hint: `convert the offsets; segment n of ${name} begins at offset n, and the last offset is the number of positions`,
    })
  return Int32Array.from(values)
}

/** Infers sizes that are extents: of dense axes from the number of offsets, of ragged axes from the longest segment. */
function learnSizes(
  axes: ReadonlyMap<string, Axis>,
  offsets: ReadonlyMap<string, Int32Array>,
  known: Map<string, number>,
): void {
  for (const [name, { length }] of offsets) {
    const above = chainTo(axes, name)
      .slice(0, -1)
      .map((a) => storedAxis(axes, a))
    if (!above.every(isDense)) continue
    const isOpen = (a: StoredAxis): boolean => [...freeVars(a.extent)].some((v) => !known.has(v))
    const [open, ...more] = above.filter(isOpen)
    if (open?.extent.kind !== 'var' || more.length > 0) continue
    const rest = above
      .filter((a) => a !== open)
      .reduce((n, a) => n * Math.max(0, evaluate(a.extent, known)), 1)
    known.set(open.extent.name, rest === 0 ? 0 : Math.max(0, Math.floor((length - 1) / rest)))
  }
  const given = new Set(known.keys())
  for (const [name, list] of offsets) {
    const { extent } = storedAxis(axes, name)
    if (extent.kind !== 'var' || given.has(extent.name)) continue
    known.set(extent.name, Math.max(known.get(extent.name) ?? 0, longest(list)))
  }
}

function longest(offsets: Int32Array): number {
  let n = 0
  for (let p = 1; p < offsets.length; p++) n = Math.max(n, offsets[p]! - offsets[p - 1]!)
  return n
}

/** The extent of an axis in coordinates. @throws SptError `bind/missing-size` */
const extentOf = ({ name, extent }: StoredAxis, known: ReadonlyMap<string, number>): number =>
  Math.max(0, sizeIn(extent, known, `the extent of axis ${name}`))

/** Returns the bound arrays of all axes of a chain. Throws SptError `bind/missing-array` if an axis has none. */
function arrays(
  axes: ReadonlyMap<string, Axis>,
  chain: readonly string[],
  offsets: ReadonlyMap<string, Int32Array>,
  tensors: Tensors,
): Arrays {
  const own = chain.flatMap((a): [string, Arrays[string]][] => {
    const t = tensors[a]
    const indptr = offsets.get(a)
    if (indptr) return [[a, { indptr }]]
    return t?.kind === 'stored' ? Object.entries(t.arrays) : []
  })
  const found: Arrays = Object.fromEntries(own)
  const missing = chain.find((a) => !isDense(axes.get(a)) && !Object.hasOwn(found, a))
  if (missing !== undefined) {
    const ragged = isRagged(axes.get(missing))
    failWith(
      'bind/missing-array',
      `offsets are bound to ${chain.at(-1)}, and the positions of the parent ${missing} are not known`,
      {
        expected: ragged ? `offsets of ${missing} too` : `the arrays of ${missing} too`,
        hint: ragged
          ? `bind ${missing} to its offsets`
          : `bind ${chain.at(-1)} to stored(shape, arrays), with the arrays of ${missing}`,
      },
    )
  }
  return found
}

/** Returns the sizes that are extents, inferred from shapes, without checking that they agree. */
export function sizesOfShapes(
  kernel: Kernel1,
  tensors: Readonly<Record<string, Tensor>>,
): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const [name, tensor] of Object.entries(tensors))
    bindingOf(kernel, name, tensor).dimensions.forEach(({ extent }, k) => {
      const size = tensor.shape[k]
      if (extent.kind === 'var' && size !== undefined) sizes.set(extent.name, size)
    })
  return sizes
}
