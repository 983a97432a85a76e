/** Arrays of element types, and conversion between them. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import { arrayClass, decoder, rangeOf, encoder as storing, type ValueArray } from '../storage/tensor.ts'
import { allocate } from './byte-source.ts'

/** A zeroed array. @throws SptError `io/too-large` if the host cannot allocate it */
export function valueArray(dtype: Dtype, length: number, name: string): ValueArray {
  return allocate<ValueArray>(arrayClass(dtype), length, name, `${dtype} values`)
}

/**
 * Converts numbers to the elements of a `dtype` array.
 * @param where the place of a number, for messages
 * @param digits the digits in the file, for messages about integers that a double rounds
 * @throws SptError `io/value-range` for a number that does not fit
 */
export function encoder(
  dtype: Dtype,
  where: (at: number) => string,
  digits?: (at: number) => string,
): (value: number, at: number) => number {
  const digitsOf = (value: number, at: number): string =>
    digits && Number.isInteger(value) && !Number.isSafeInteger(value) ? digits(at) : `${value}`
  return storing(dtype, (value, at) => misfit(where(at), digitsOf(value, at), dtype)) ?? ((value) => value)
}

/** The message for a number beyond the range of f64. */
export const beyondDoubles = (token: string): [message: string, advice: { expected: string }] => [
  `the value ${token} does not fit f64`,
  { expected: rangeOf('f64') },
]

/** Rejects a value that does not fit. @throws SptError `io/value-range` */
function misfit(where: string, value: string, dtype: Dtype): never {
  return failWith('io/value-range', `${where}: the value ${value} does not fit ${dtype}`, {
    expected: rangeOf(dtype),
    hint: "read a wider type, { dtype: 'f64' }, or declare the buffer with a wider type, such as f64",
  })
}

/** The values converted to `to`; the same array if the types are equal. @throws SptError `io/value-range` */
export function convertValues(values: ValueArray, from: Dtype, to: Dtype, name: string): ValueArray {
  if (from === to) return values
  const out = valueArray(to, values.length, name)
  const read = decoder(from) ?? ((v) => v)
  const write = encoder(to, (at) => `${name}, element ${at}`)
  for (let e = 0; e < values.length; e++) out[e] = write(read(values[e]!), e)
  return out
}
