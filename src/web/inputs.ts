/** Inputs of a plan: arrays, sizes and scalars by name, checked before anything is allocated. */
import { arrayClass, type TypedArray } from '../ir/values/arrays.ts'
import { roundTo } from '../ir/values/words.ts'
import { addBases, lengthOf, type Sizes } from '../plan/interpret.ts'
import type { Plan, PlanBuffer } from '../plan/schema.ts'
import { failWith } from './plan-error.ts'
import { checkSizes, failMissing, solve } from './sizes.ts'

/**
 * Arrays by buffer name (f16 and bf16 as bits in a `Uint16Array`, bool as 0 and 1 in a `Uint8Array`), and sizes and scalars. On WebGPU a
 * buffer can be a `GPUBuffer` of the same device with the usage `STORAGE`; the plan then reads or writes its memory.
 */
export type Inputs = Readonly<Record<string, TypedArray | GPUBuffer | number | boolean>>

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
export const isOutput = ({ role }: PlanBuffer): boolean => role === 'out' || role === 'inout'

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

/**
 * Checks the inputs, and infers missing sizes from the lengths of arrays.
 * @throws PlanError `bind/…`, `run/requirement`, `plan/…`
 */
export function bindInputs(plan: Plan, inputs: Inputs, statistics: readonly string[] = []): Bound {
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
    if (statistics.includes(name)) continue
    const x =
      known.find((k) => k.name === name) ??
      failWith(
        'bind/unknown-name',
        `${plan.kernel} has no input ${name}`,
        known.map((k) => k.name).join(', '),
      )
    if ('length' in x) {
      if (ArrayBuffer.isView(value)) arrays.set(name, value as TypedArray)
      else if (typeof (value as GPUBuffer)?.usage === 'number') resident.set(name, value as GPUBuffer)
      else failWith('bind/value-type', `${name} is ${shown(value)}`, 'a typed array')
    } else if ('dtype' in x && typeof value !== 'object') sizes.set(name, scalarOf(x, +value))
    else if (!(Number.isInteger(value) && (value as number) >= 0))
      failWith(
        'bind/size-range',
        `${name} is ${shown(value)}`,
        'a number, and of sizes an integer, at least 0',
      )
  }
  for (const x of known)
    if (!('length' in x || sizes.has(x.name))) failMissing('dtype' in x ? 'scalar' : 'size', x.name)
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

function scalarOf({ name, dtype }: Plan['scalars'][number], value: number): number {
  const rounded = roundTo(dtype, value)
  if (!/^b?f/.test(dtype) && rounded !== value)
    failWith('bind/scalar-range', `${name} is ${value}`, `a value of ${dtype}`)
  return rounded
}

/** @throws PlanError `plan/too-large` */
export function elementsOf(buffer: PlanBuffer, sizes: Sizes): number {
  const n = lengthOf(buffer, sizes)!
  return n < 2 ** 31 ? n : failWith('plan/too-large', `${buffer.name} has ${n} elements`, 'less than 2^31')
}
