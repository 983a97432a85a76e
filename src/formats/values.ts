/** Value arrays by element type, and conversion between types through float64. */
import { fail } from '../ast/diagnostic.ts'
import { arrayClass } from '../ir/arrays.ts'
import { type Dtype, INT_RANGE } from '../ir/dtype.ts'
import { fromBf16, fromF16, toBf16, toF16 } from '../ir/half.ts'
import type { EntryValues } from './given.ts'
import { outOfMemory } from './storage.ts'
import type { ValueArray } from './tensor.ts'

export { arrayClass } from '../ir/arrays.ts'

/** A zeroed array. @throws SptError `bind/out-of-memory` */
export function newValues(dtype: Dtype, length: number): ValueArray {
  try {
    return new (arrayClass(dtype))(length)
  } catch (e) {
    return outOfMemory(e, length, `${dtype} values`)
  }
}

/** The number that an element of `dtype` stands for; `null` where it is the element itself. */
export const decoder = (dtype: Dtype): ((bits: number) => number) | null =>
  dtype === 'f16' ? fromF16 : dtype === 'bf16' ? fromBf16 : null

/** What is stored for a number; `null` where assignment to the array rounds as it should (f64, f32). */
export function encoder(dtype: Dtype): ((x: number, at: number) => number) | null {
  switch (dtype) {
    case 'f64':
    case 'f32':
      return null
    case 'f16':
      return toF16
    case 'bf16':
      return toBf16
    case 'bool':
      return (x) => (x !== 0 ? 1 : 0)
    default: {
      const [lo, hi] = INT_RANGE[dtype]
      return (x, at) => {
        if (!(x >= lo && x <= hi && Number.isInteger(x)))
          fail({
            code: 'bind/value-range',
            message: `the value ${x} at element ${at} is no ${dtype}`,
            expected: `integers from ${lo} to ${hi}`,
            hint: 'declare the buffer with a wider or a floating-point type',
          })
        return x
      }
    }
  }
}

/** Values in another type; the same array where the types agree. @throws SptError `bind/value-range` */
export function convert(values: ValueArray, from: Dtype, to: Dtype): ValueArray {
  if (from === to) return values
  const out = newValues(to, values.length)
  const read = decoder(from)
  const write = encoder(to)
  for (let e = 0; e < values.length; e++) {
    const x = read ? read(values[e]!) : values[e]!
    out[e] = write ? write(x, e) : x
  }
  return out
}

/** Values at chosen entries. */
export function gatherValues({ values, dtype }: EntryValues, entries: Int32Array): ValueArray {
  const out = newValues(dtype, entries.length)
  for (let s = 0; s < entries.length; s++) out[s] = values[entries[s]!]!
  return out
}

/** An array of one value. @throws SptError `bind/value-range` */
export function filled(dtype: Dtype, length: number, value: number): ValueArray {
  const out = newValues(dtype, length)
  const write = encoder(dtype)
  const bits = write ? write(value, 0) : value
  if (bits !== 0 || Object.is(bits, -0)) out.fill(bits)
  return out
}

/** The array's class must carry the type it is said to have. @throws SptError `bind/value-type` */
export function checkValueArray(values: ValueArray, dtype: Dtype): void {
  if (values instanceof arrayClass(dtype)) return
  fail({
    code: 'bind/value-type',
    message: `the values of type ${dtype} are in ${className(values)}`,
    expected: arrayClass(dtype).name,
    hint: `copy them into a ${arrayClass(dtype).name}, or state another type`,
  })
}

const className = (x: unknown): string => Object.prototype.toString.call(x).slice(8, -1)
