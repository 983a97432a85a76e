/** Inputs of a plan: arrays, sizes and scalars by name, checked before anything is allocated. */
import { arrayClass, type TypedArray } from '../ir/values/arrays.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import { roundTo } from '../ir/values/words.ts'
import { addBases, lengthOf, type Sizes } from '../plan/interpret.ts'
import type { Plan, PlanBuffer } from '../plan/schema.ts'
import type { GpuBufferLike } from '../runtime/native-memory.ts'
import { failWith } from './plan-error.ts'
import { checkSizes, solve } from './sizes.ts'

/**
 * Arrays by buffer name (f16 and bf16 as bits in a `Uint16Array`, bool as 0 and 1 in a `Uint8Array`), and sizes and scalars. On WebGPU a
 * buffer can be a `GPUBuffer` of the same device with the usage `STORAGE`; the plan then reads or writes its memory.
 */
export type Inputs = Readonly<Record<string, TypedArray | GpuBufferLike | number | boolean>>

/** Checked inputs. `sizes` contains the scalars and the bases of packed arrays. */
export interface Bound {
  readonly sizes: Sizes
  readonly arrays: ReadonlyMap<string, TypedArray>
  readonly resident: ReadonlyMap<string, GPUBuffer>
}

/** The buffers that a caller sees: those of the plan, with packed arrays instead of their arenas. */
export const visibleBuffers = ({ buffers, packed = [] }: Plan): readonly PlanBuffer[] => [
  ...buffers.filter((b) => packed.every((p) => p.in !== b.name)),
  ...packed,
]

export const isInput = ({ role }: PlanBuffer): boolean => role !== 'out' && role !== 'local'
export const isOutput = ({ role }: Pick<PlanBuffer, 'role'>): boolean => role === 'out' || role === 'inout'

/** A number, or the kind of another value. */
const shown = (x: unknown): string =>
  typeof x === 'number' ? `${x}` : Object.prototype.toString.call(x).slice(8, -1)

/** @throws PlanError `bind/value-type`, `bind/values-length` */
export function checkArray({ name, dtype }: PlanBuffer, values: TypedArray, length: number): TypedArray {
  const type = arrayClass(dtype)
  if (!(values instanceof type))
    failWith('bind/value-type', `${name} (${dtype}) is given in ${shown(values)}`, type.name)
  if (values.length !== length)
    failWith('bind/values-length', `${name} has ${values.length} values`, `${length} values`)
  return values
}

/** @throws PlanError `bind/unknown-name` */
export const named = <T extends { readonly name: string }>(
  list: readonly T[],
  name: string,
  { kernel }: Plan,
): T =>
  list.find((x) => x.name === name) ??
  failWith('bind/unknown-name', `${kernel} has no ${name}`, list.map((x) => x.name).join(', '))

/**
 * Checks the inputs, and infers missing sizes from the lengths of arrays.
 * @throws PlanError `bind/…`, `run/requirement`, `plan/…`
 */
export function bindInputs(plan: Plan, inputs: Inputs): Bound {
  const buffers = visibleBuffers(plan)
  const sizes = sizesOf(plan, inputs)
  const arrays = new Map<string, TypedArray>()
  const resident = new Map<string, GPUBuffer>()
  const known = [
    ...buffers.filter((b) => b.role !== 'local'),
    ...plan.sizes.filter((s) => s.from !== 'packed'),
    ...plan.scalars,
  ]
  for (const [name, value] of Object.entries(inputs)) {
    const x = named(known, name, plan)
    if ('length' in x) {
      if (ArrayBuffer.isView(value)) arrays.set(name, value as TypedArray)
      else if (typeof (value as GPUBuffer)?.usage === 'number' && !('in' in x))
        resident.set(name, value as GPUBuffer)
      else failWith('bind/value-type', `${name} is ${shown(value)}`, 'a typed array')
    } else sizes.set(name, numberOf(x, value))
  }
  for (const x of known)
    if (!('length' in x || sizes.has(x.name))) {
      const kind = 'dtype' in x ? 'scalar' : 'size'
      failWith(`bind/missing-${kind}`, `missing ${kind} ${x.name}`, `a number ${x.name}`)
    }
  addBases(plan.packed, sizes)
  for (const b of buffers) {
    const length = elementsOf(b, sizes)
    const values = arrays.get(b.name)
    if (values) checkArray(b, values, length)
    else if (isInput(b) && length > 0 && !resident.has(b.name))
      failWith(
        'bind/missing-buffer',
        `missing ${b.name}`,
        `a ${arrayClass(b.dtype).name} of ${length} values`,
      )
  }
  checkSizes(plan, sizes)
  return { sizes, arrays, resident }
}

/** Numbers of the inputs, and sizes that the lengths of arrays determine. */
export function sizesOf(plan: Plan, inputs: Inputs): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const [name, value] of Object.entries(inputs)) if (typeof value === 'number') sizes.set(name, value)
  // Each round may determine the sizes that the next one needs.
  for (const _ of plan.sizes)
    for (const { name, length } of visibleBuffers(plan)) {
      const values = inputs[name]
      if (ArrayBuffer.isView(values)) solve(length, (values as TypedArray).length, sizes)
    }
  return sizes
}

/** A scalar in its type, or a size. Floats are rounded if they stay finite. @throws PlanError `bind/scalar-range`, `bind/size-range` */
function numberOf(
  { name, dtype }: { readonly name: string; readonly dtype?: Dtype },
  value: unknown,
): number {
  if (typeof value === 'number' || (dtype === 'bool' && typeof value === 'boolean')) {
    const given = Number(value)
    const rounded = roundTo(dtype ?? 'u32', given)
    if (rounded === given || (/f/.test(dtype ?? '') && Math.abs(given - rounded) !== Infinity)) return rounded
  }
  return failWith(
    `bind/${dtype ? 'scalar' : 'size'}-range`,
    `${name} is ${shown(value)}`,
    dtype ? `a number of ${dtype}` : 'an integer, at least 0',
  )
}

/** @throws PlanError `plan/too-large` */
export function elementsOf(buffer: PlanBuffer, sizes: Sizes): number {
  const n = lengthOf(buffer, sizes)!
  return n < 2 ** 31 ? n : failWith('plan/too-large', `${buffer.name} has ${n} elements`, 'less than 2^31')
}
