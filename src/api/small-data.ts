/** Small random data for a kernel, and what the reference computes from them: what interpreters get through in an instant. */
import { Facts } from '../analysis/integers/facts.ts'
import { SptError } from '../ast/diagnostic.ts'
import { type Axis, chainTo } from '../ir/axis.ts'
import { type Dtype, isFloat } from '../ir/dtype.ts'
import { variable } from '../ir/expr.ts'
import type { Fact } from '../ir/loops.ts'
import type { Kernel1, Param } from '../ir/stage1.ts'
import type { RefOutputs } from '../reference/index.ts'
import { openParams } from '../run/bind/bound-sizes.ts'
import {
  allAxesOf,
  type CallerTensor,
  callerTensors,
  isStructured,
  storedAxis,
} from '../run/bind/caller-tensors.ts'
import { extentsOf } from '../run/bind/coordinate-sources.ts'
import { type Bound, bindInputs } from '../run/bind/index.ts'
import { Random, randomCoords, randomKind, randomValues, seedFor } from '../run/bind/random-tensors.ts'
import { expectedOf } from '../run/bind/reference-inputs.ts'
import type { Compilation } from '../run/compile.ts'
import type { Tensor, ValueArray } from '../storage/tensor.ts'
import { newValues } from '../storage/values.ts'

/**
 * Sizes without a common divisor, so that every split has a rest. Random rows have about eight elements, as far as so many
 * fit, and some none.
 */
const UNEVEN = [13, 11, 7, 9, 5, 17]

/** Sizes where extents or formats want whole blocks. */
const WHOLE = [16, 32]

/** Where the schedule wants a size as large as a tile of an instruction: a few tiles are as much work as all else. */
const FEW = [3, 2]
const TILE = 64

/** Integers may be coordinates: they are below all sizes. */
const INTEGERS = 5

const SEED = 5

export interface SmallData {
  readonly bound: Bound
  readonly expected: RefOutputs
}

/** Data that the kernel takes, under which the facts of its schedule hold; what the first tried are refused for where it takes none. */
export function smallData(c: Compilation): SmallData | SptError {
  const { kernel } = c
  let refused: SptError | undefined
  const facts = c.loops.facts ?? []
  for (const sizes of facts.some((f) => f.by >= TILE) ? [FEW, UNEVEN, WHOLE] : [UNEVEN, WHOLE]) {
    const params = paramsOf(kernel, sizes, facts)
    for (const structure of [NOTHING, OUTPUTS, INDICES, DIAGONALS])
      try {
        const bound = bindInputs(kernel, {
          tensors: tensorsOf(kernel, params, structure),
          params,
          seed: SEED,
        })
        return { bound, expected: expectedOf(c.source, bound) }
      } catch (e) {
        if (!(e instanceof SptError)) throw e
        refused ??= e
      }
  }
  return refused!
}

function paramsOf(kernel: Kernel1, sizes: readonly number[], facts: readonly Fact[]): Record<string, number> {
  const value = (p: Param, k: number): number =>
    p.kind === 'size' ? sized(p, sizes[k % sizes.length]!, facts) : scalar(p)
  return Object.fromEntries(openParams(kernel).map((p, k) => [p.name, value(p, k)]))
}

/** A size near `usual` of which the facts hold. */
function sized({ name }: Param, usual: number, facts: readonly Fact[]): number {
  const own = facts.filter((f) => f.size === name)
  const equal = own.find((f) => f.relation === 'equal')
  if (equal) return equal.by
  const step = new Facts({ sizes: own }).divisor(variable(name))
  return Math.max(1, Math.round(usual / step)) * step
}

const scalar = ({ dtype }: Param): number => (dtype === 'bool' ? 1 : isFloat(dtype) ? 0.5 : 2)

/** What is bound for a tensor that is stored sparse, by name. */
type Structure = (t: CallerTensor, k: Sized) => Readonly<Record<string, Tensor>>

interface Sized {
  readonly axes: ReadonlyMap<string, Axis>
  readonly extent: (axis: string) => number
}

/** Random coordinates, by binding itself. */
const NOTHING: Structure = () => ({})

/** Random coordinates of what a kernel writes, too, which binding does not guess. */
const OUTPUTS: Structure = ({ axes: over, first: { role } }, { axes, extent }) => {
  const leaf = over.findLast((a) => isStructured(axes, a))!
  if (role === 'in' || role === 'inout') return {}
  const chain = chainTo(axes, leaf)
  const shape = chain.map(extent)
  const kinds = chain.map((a) => (isStructured(axes, a) ? 'sparse' : 'dense'))
  const coords = randomCoords(shape, kinds, new Random(seedFor(SEED, leaf)))
  return { [leaf]: { kind: 'coords', shape, coords, values: null, dtype: 'f32' } }
}

/** Integers that may be coordinates, as those of a list's pairs are; what shares an axis has the same places. */
const INDICES: Structure = ({ name, axes: over, first: { role, dtype } }, { axes, extent }) => {
  if (role === 'out' || role === 'local' || !isIndex(dtype)) return {}
  const shape = over.map(extent)
  const kinds = over.map((a) => randomKind(storedAxis(axes, a)))
  const coords = randomCoords(shape, kinds, new Random(seedFor(SEED, over.at(-1)!)))
  const values = below(dtype, coords[0]!.length, name)
  return { [name]: { kind: 'coords', shape, coords, values, dtype } }
}

/** Coordinates that are all alike, but for every fifth: few formats do not hold these. */
const DIAGONALS: Structure = ({ name, axes: over, first: { role, dtype } }, { extent }) => {
  if (role === 'local') return {}
  const shape = over.map(extent)
  const column = Array.from({ length: Math.min(...shape) }, (_, k) => k).filter((k) => k % 5 !== 3)
  const coords = shape.map(() => Int32Array.from(column))
  const values = randomValues(dtype, column.length, new Random(seedFor(SEED, name)))
  return { [name]: { kind: 'coords', shape, coords, values, dtype } }
}

function tensorsOf(
  kernel: Kernel1,
  params: Readonly<Record<string, number>>,
  structure: Structure,
): Record<string, Tensor> {
  const axes = allAxesOf(kernel)
  const extents = extentsOf(kernel, new Map(Object.entries(params)))
  const extent = (axis: string): number => extents.get(axis) ?? 0
  const out: Record<string, Tensor> = {}
  for (const t of callerTensors(kernel))
    if (t.axes.some((a) => isStructured(axes, a))) Object.assign(out, structure(t, { axes, extent }))
    else if ((t.first.role === 'in' || t.first.role === 'inout') && isIndex(t.first.dtype))
      out[t.name] = indices(t, t.axes.map(extent))
  return out
}

const isIndex = (dtype: Dtype): boolean => !isFloat(dtype) && dtype !== 'bool'

const indices = ({ name, first: { dtype } }: CallerTensor, shape: readonly number[]): Tensor => ({
  kind: 'dense',
  shape,
  values: below(
    dtype,
    shape.reduce((a, b) => a * b, 1),
    name,
  ),
  dtype,
})

function below(dtype: Dtype, length: number, name: string): ValueArray {
  const random = new Random(seedFor(SEED, name))
  return newValues(dtype, length).map(() => random.below(INTEGERS)) as ValueArray
}
