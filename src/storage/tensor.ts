/** Tensors as inputs: coordinates, dense arrays, or arrays that are already in storage order. */

import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { LevelArray } from '../ast/nodes/axis-kinds.ts'
import { checkAllocation, outOfMemory } from '../columns/allocate.ts'
import { arrayClass, type TypedArray } from '../ir/values/arrays.ts'
import { type Dtype, INT_RANGE, isFloat } from '../ir/values/dtype.ts'
import { fromBf16, fromF16, toBf16, toF16 } from '../ir/values/half.ts'

/** f16 and bf16 are stored as bit patterns in `Uint16Array`; bool as 0/1 in `Uint8Array`. */
export type ValueArray = TypedArray

/** Values of entries, in their storage representation. */
export interface EntryValues {
  readonly values: ValueArray
  readonly dtype: Dtype
}

/** Element e is at `(coords[0][e], coords[1][e], …)`; any order, duplicates are summed. */
export interface CoordTensor {
  readonly kind: 'coords'
  readonly shape: readonly number[]
  readonly coords: readonly Int32Array[]
  /** One per element; `null` for a pattern, whose values are all 1. */
  readonly values: ValueArray | null
  readonly dtype: Dtype
  /** For a tensor read from blocks of a file: the number of zeros in them that are not elements. */
  readonly padding?: number | undefined
  /** Value of absent elements, if the file states one other than 0; the buffer must have the same fill value. */
  readonly fill?: number | undefined
}

/** Row-major. */
export interface DenseTensor {
  readonly kind: 'dense'
  readonly shape: readonly number[]
  readonly values: ValueArray
  readonly dtype: Dtype
}

/**
 * Ready-made arrays of an axis tree, used directly after validation: for each axis the index arrays that its
 * kind requires, and the values in position order.
 */
export interface StoredTensor {
  readonly kind: 'stored'
  readonly shape: readonly number[]
  readonly arrays: Readonly<Record<string, { readonly [A in LevelArray]?: Int32Array }>>
  readonly values: ValueArray | null
  readonly dtype: Dtype
  /** Defects of the indices that binding repairs in a copy. */
  readonly repair?: Repair | undefined
}

export interface Repair {
  /** Sort segments whose indices do not ascend. */
  readonly sort?: boolean | undefined
  /** Add values with equal coordinates. */
  readonly sum?: boolean | undefined
}

export type Tensor = CoordTensor | DenseTensor | StoredTensor

/** Upper bound on the number of stored elements of a tensor. */
export function storedElements(t: Tensor): number {
  if (t.kind === 'coords') return t.coords[0]?.length ?? 0
  if (t.kind === 'dense') return t.shape.reduce((a, b) => a * b, 1)
  return Math.max(0, ...Object.values(t.arrays).map((a) => a.indices?.length ?? 32 * (a.mask?.length ?? 0)))
}

/** A one-dimensional tensor of coordinates or positions. */
export const listTensor = (values: Int32Array): DenseTensor => ({
  kind: 'dense',
  shape: [values.length],
  values,
  dtype: 'i32',
})

/** Its arrays by axis, without axes that have none, which conversions also list. */
export const namedArrays = ({
  arrays,
}: StoredTensor): readonly (readonly [string, StoredTensor['arrays'][string]])[] =>
  Object.entries(arrays).filter(([, axisArrays]) => Object.keys(axisArrays).length > 0)

/** Dense tensors whose values are on a device only: on the host they have a shape and a type. */
export abstract class DenseOnDevice implements DenseTensor {
  readonly kind = 'dense'
  readonly shape: readonly number[]
  readonly dtype: Dtype
  /** A description for messages: `H of layer`. */
  readonly origin: string
  /** True for memory of the caller, which a kernel may write; the output of a kernel is written by that kernel only. */
  readonly isCallers: boolean = false

  constructor({ shape, dtype, origin }: Pick<DenseOnDevice, 'shape' | 'dtype' | 'origin'>) {
    this.shape = shape
    this.dtype = dtype
    this.origin = origin
  }

  /** Throws, so that no host code computes with missing values. @throws SptError `run/resident` */
  get values(): never {
    return failWith(
      'run/resident',
      `the values of ${this.origin} are on a device, and this call needs values on the host`,
      { expected: 'a tensor that the host has', hint: 'download() gives one' },
    )
  }
}

/** A bound tensor in messages: its name in the kernel and its origin. */
export const nameWithOrigin = (name: string, t: Tensor): string =>
  t instanceof DenseOnDevice ? `${name} (${t.origin}, resident)` : name

// Value arrays by element type, and conversion between types through float64.

export { arrayClass } from '../ir/values/arrays.ts'

/** A zeroed array. @throws SptError `bind/out-of-memory`, `bind/too-many-elements` */
export function newValues(dtype: Dtype, length: number): ValueArray {
  const kind = arrayClass(dtype)
  checkAllocation(length, kind.BYTES_PER_ELEMENT * length, `${dtype} values`)
  try {
    return new kind(length)
  } catch (e) {
    return outOfMemory(e, length, `${dtype} values`)
  }
}

/** The function from a stored element of `dtype` to its number; `null` for the identity. */
export const decoder = (dtype: Dtype): ((bits: number) => number) | null =>
  dtype === 'f16' ? fromF16 : dtype === 'bf16' ? fromBf16 : null

/** Rejects a number that does not fit the type, for one element. */
export type RejectValue = (x: number, element: number) => never

/**
 * The function from a number to its stored element; `null` for the identity (f64). Floats are rounded; a finite number
 * that becomes infinite, an inexact integer, or a bool other than 0 and 1 is passed to `misfit`.
 */
export function encoder(
  dtype: Dtype,
  misfit: RejectValue = rejectMisfit(dtype),
): ((x: number, element: number) => number) | null {
  switch (dtype) {
    case 'f64':
      return null
    case 'f32':
      return (x, element) => {
        const y = Math.fround(x)
        return Number.isFinite(y) || !Number.isFinite(x) ? y : misfit(x, element)
      }
    case 'f16':
    case 'bf16': {
      const [round, infinity] = dtype === 'f16' ? [toF16, 0x7c00] : [toBf16, 0x7f80]
      return (x, element) => {
        const bits = round(x)
        return (bits & 0x7fff) !== infinity || !Number.isFinite(x) ? bits : misfit(x, element)
      }
    }
    case 'bool':
      return (x, element) => (x === 0 || x === 1 ? x : misfit(x, element))
    default: {
      const [lo, hi] = INT_RANGE[dtype]
      return (x, element) => (x >= lo && x <= hi && Number.isInteger(x) ? x : misfit(x, element))
    }
  }
}

export function rangeOf(dtype: Dtype): string {
  if (dtype === 'bool') return '0 or 1'
  if (isFloat(dtype)) return `from -${LARGEST[dtype as Float]} to ${LARGEST[dtype as Float]}`
  const [lo, hi] = INT_RANGE[dtype as keyof typeof INT_RANGE]
  return `integers from ${lo} to ${hi}`
}

type Float = 'f64' | 'f32' | 'f16' | 'bf16'
const LARGEST: Readonly<Record<Float, string>> = {
  f64: '1.7976931348623157e+308',
  f32: '3.4028235e+38',
  f16: '65504',
  bf16: '3.3895314e+38',
}

/** Rejects a number that does not fit, with its location. @throws SptError `bind/value-range` */
export const rejectMisfit =
  (dtype: Dtype, locationOf = (element: number) => `element ${element}`): RejectValue =>
  (x, element) =>
    failWith('bind/value-range', `the value ${x} at ${locationOf(element)} does not fit ${dtype}`, {
      expected: rangeOf(dtype),
      hint: isFloat(dtype)
        ? 'declare the buffer with a wider type, or scale the values; an infinity is given as Infinity'
        : dtype === 'bool'
          ? 'compare the values first: values.map((x) => (x !== 0 ? 1 : 0))'
          : 'declare the buffer with a wider or a floating-point type',
    })

/**
 * Values converted to another type; the same array if the types are equal. `locationOf` names an element in messages.
 * @throws SptError `bind/value-range`, `bind/value-type`
 */
export function convertValues(
  values: ValueArray,
  from: Dtype,
  to: Dtype,
  locationOf?: (element: number) => string,
): ValueArray {
  checkValueArray(values, from, locationOf)
  if (from === to) return values
  const out = newValues(to, values.length)
  const read = decoder(from)
  const write = encoder(to, rejectMisfit(to, locationOf))
  for (let e = 0; e < values.length; e++) {
    const x = read ? read(values[e]!) : values[e]!
    out[e] = write ? write(x, e) : x
  }
  return out
}

export function gatherValues({ values, dtype }: EntryValues, entries: Int32Array): ValueArray {
  const out = newValues(dtype, entries.length)
  for (let s = 0; s < entries.length; s++) out[s] = values[entries[s]!]!
  return out
}

/** An array with all elements equal. @throws SptError `bind/value-range` */
export function filledArray(dtype: Dtype, length: number, value: number): ValueArray {
  const out = newValues(dtype, length)
  const write = encoder(dtype)
  const bits = write ? write(value, 0) : value
  if (bits !== 0 || Object.is(bits, -0)) out.fill(bits)
  return out
}

/** Checks the class of the array, and that bool bytes are 0 or 1. @throws `bind/value-type`, `bind/value-range` */
export function checkValueArray(
  values: ValueArray,
  dtype: Dtype,
  locationOf?: (element: number) => string,
): void {
  checkArrayClass(values, dtype)
  if (dtype !== 'bool') return
  const element = (values as Uint8Array).findIndex((x) => x > 1)
  if (element >= 0) rejectMisfit(dtype, locationOf)(values[element]!, element)
}

/** Checks the class alone, for values computed by a device. @throws SptError `bind/value-type` */
export function checkArrayClass(values: ValueArray, dtype: Dtype): void {
  if (values instanceof arrayClass(dtype)) return
  failWith('bind/value-type', `the values of type ${dtype} are in ${className(values)}`, {
    expected: arrayClass(dtype).name,
    hint: `copy the values into a ${arrayClass(dtype).name}, or state another type`,
  })
}

const className = (x: unknown): string => Object.prototype.toString.call(x).slice(8, -1)
