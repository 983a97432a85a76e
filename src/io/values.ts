/** Arrays of element types, and conversion between them. */
import { fail } from '../ast/diagnostic.ts'
import type { ValueArray } from '../formats/tensor.ts'
import { arrayClass } from '../formats/values.ts'
import { type Dtype, INT_RANGE } from '../ir/dtype.ts'
import { fromBf16, fromF16, toBf16, toF16 } from '../ir/half.ts'
import { allocate } from './source.ts'

/** Zeros. Throws `io/too-large` where the host cannot hold them. */
export function valueArray(dtype: Dtype, length: number, name: string): ValueArray {
  return allocate<ValueArray>(arrayClass(dtype), length, name, `${dtype} values`)
}

/**
 * A number → what a `dtype` array holds for it: floats round, bool is "not zero", integers must be exact and in
 * range: NaN says that they are not.
 */
export type Encode = (value: number) => number

export function encoder(dtype: Dtype): Encode {
  switch (dtype) {
    case 'f64':
    case 'f32':
      return (v) => v
    case 'f16':
      return toF16
    case 'bf16':
      return toBf16
    case 'bool':
      return (v) => (v !== 0 ? 1 : 0)
    default: {
      const [lo, hi] = INT_RANGE[dtype]
      return (v) => (Number.isInteger(v) && v >= lo && v <= hi ? v : Number.NaN)
    }
  }
}

/** Whether `encoder(dtype)` answers NaN for what does not fit. */
export const isChecked = (dtype: Dtype): boolean => dtype in INT_RANGE

/** What a `dtype` array holds → the number. */
export function decoder(dtype: Dtype): (stored: number) => number {
  return dtype === 'f16' ? fromF16 : dtype === 'bf16' ? fromBf16 : (v) => v
}

/** Throws `io/value-range`. */
export function misfit(where: string, value: number, dtype: Dtype): never {
  return fail({
    code: 'io/value-range',
    message: `${where}: the value ${value} does not fit ${dtype}`,
    hint: 'Read it as a wider type, such as f64.',
  })
}

/** The same values as `to`; the same array where nothing changes. Throws `io/value-range`. */
export function convertValues(values: ValueArray, from: Dtype, to: Dtype, name: string): ValueArray {
  if (from === to) return values
  const out = valueArray(to, values.length, name)
  const read = decoder(from)
  const write = encoder(to)
  const checked = isChecked(to)
  for (let e = 0; e < values.length; e++) {
    const v = read(values[e]!)
    const w = write(v)
    if (checked && Number.isNaN(w)) misfit(`${name}, element ${e}`, v, to)
    out[e] = w
  }
  return out
}
