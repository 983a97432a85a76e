/** Value arrays by element type, and conversion between types through float64. */
import { fail } from '../ast/diagnostic.ts'
import { checkAllocation, outOfMemory } from '../columns/allocate.ts'
import { arrayClass } from '../ir/arrays.ts'
import { type Dtype, INT_RANGE, isFloat } from '../ir/dtype.ts'
import { fromBf16, fromF16, toBf16, toF16 } from '../ir/half.ts'
import type { EntryValues } from './format-operands.ts'
import type { ValueArray } from './tensor.ts'

export { arrayClass } from '../ir/arrays.ts'

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

/** Rejects a number for element `at`. */
export type Misfit = (x: number, at: number) => never

/**
 * The function from a number to its stored element; `null` for the identity (f64). Floats are rounded; a finite number
 * that becomes infinite, an inexact integer, or a bool other than 0 and 1 is passed to `misfit`.
 */
export function encoder(
  dtype: Dtype,
  misfit: Misfit = misfitAt(dtype),
): ((x: number, at: number) => number) | null {
  switch (dtype) {
    case 'f64':
      return null
    case 'f32':
      return (x, at) => {
        const y = Math.fround(x)
        return Number.isFinite(y) || !Number.isFinite(x) ? y : misfit(x, at)
      }
    case 'f16':
    case 'bf16': {
      const [round, infinity] = dtype === 'f16' ? [toF16, 0x7c00] : [toBf16, 0x7f80]
      return (x, at) => {
        const bits = round(x)
        return (bits & 0x7fff) !== infinity || !Number.isFinite(x) ? bits : misfit(x, at)
      }
    }
    case 'bool':
      return (x, at) => (x === 0 || x === 1 ? x : misfit(x, at))
    default: {
      const [lo, hi] = INT_RANGE[dtype]
      return (x, at) => (x >= lo && x <= hi && Number.isInteger(x) ? x : misfit(x, at))
    }
  }
}

/** The range of finite numbers of a type, for messages. */
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

/** Rejects a number that does not fit, naming its location. @throws SptError `bind/value-range` */
export const misfitAt =
  (dtype: Dtype, place = (at: number) => `element ${at}`): Misfit =>
  (x, at) =>
    fail({
      code: 'bind/value-range',
      message: `the value ${x} at ${place(at)} does not fit ${dtype}`,
      expected: rangeOf(dtype),
      hint: isFloat(dtype)
        ? 'declare the buffer with a wider type, or scale the values; an infinity is given as Infinity'
        : dtype === 'bool'
          ? 'compare the values first: values.map((x) => (x !== 0 ? 1 : 0))'
          : 'declare the buffer with a wider or a floating-point type',
    })

/**
 * Values converted to another type; the same array if the types are equal. `place` names an element in messages.
 * @throws SptError `bind/value-range`, `bind/value-type`
 */
export function convert(
  values: ValueArray,
  from: Dtype,
  to: Dtype,
  place?: (at: number) => string,
): ValueArray {
  checkValueArray(values, from, place)
  if (from === to) return values
  const out = newValues(to, values.length)
  const read = decoder(from)
  const write = encoder(to, misfitAt(to, place))
  for (let e = 0; e < values.length; e++) {
    const x = read ? read(values[e]!) : values[e]!
    out[e] = write ? write(x, e) : x
  }
  return out
}

/** Gathers the values of selected entries. */
export function gatherValues({ values, dtype }: EntryValues, entries: Int32Array): ValueArray {
  const out = newValues(dtype, entries.length)
  for (let s = 0; s < entries.length; s++) out[s] = values[entries[s]!]!
  return out
}

/** An array with all elements equal. @throws SptError `bind/value-range` */
export function filled(dtype: Dtype, length: number, value: number): ValueArray {
  const out = newValues(dtype, length)
  const write = encoder(dtype)
  const bits = write ? write(value, 0) : value
  if (bits !== 0 || Object.is(bits, -0)) out.fill(bits)
  return out
}

/**
 * Checks that the array's class matches the type, and that bool bytes are 0 or 1. @throws SptError `bind/value-type`,
 * `bind/value-range`
 */
export function checkValueArray(values: ValueArray, dtype: Dtype, place?: (at: number) => string): void {
  checkArrayClass(values, dtype)
  if (dtype !== 'bool') return
  const at = (values as Uint8Array).findIndex((x) => x > 1)
  if (at >= 0) misfitAt(dtype, place)(values[at]!, at)
}

/** Checks the class alone, for values computed by a device. @throws SptError `bind/value-type` */
export function checkArrayClass(values: ValueArray, dtype: Dtype): void {
  if (values instanceof arrayClass(dtype)) return
  fail({
    code: 'bind/value-type',
    message: `the values of type ${dtype} are in ${className(values)}`,
    expected: arrayClass(dtype).name,
    hint: `copy them into a ${arrayClass(dtype).name}, or state another type`,
  })
}

const className = (x: unknown): string => Object.prototype.toString.call(x).slice(8, -1)
