/** Numbers as tables and charts print them. */

/** True for values that are printed as a dash. */
export const isMissing = (x: unknown): boolean => x === undefined || x === null

const withSeparators = (x: number, decimals: number): string =>
  x.toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })

/** Number of decimals that gives a number `digits` significant digits. */
const decimalsOf = (x: number, digits: number): number =>
  Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(x))))

/** Columns with more decimals or larger numbers are hard to read aligned: each number is formatted on its own. */
const MAX_DECIMALS = 9
const MAX_ALIGNED = 1e12

/** Printer for the values of a column: all its numbers get the same number of decimals. */
export function formatter(values: readonly unknown[], digits: number): (value: unknown) => string {
  const numbers = values.filter((x): x is number => typeof x === 'number' && Number.isFinite(x))
  const magnitudes = numbers
    .map(Math.abs)
    .filter((x) => x > 0)
    .sort((a, b) => a - b)
  const median = magnitudes[magnitudes.length >> 1]
  const decimals = numbers.every(Number.isInteger) || median === undefined ? 0 : decimalsOf(median, digits)
  const isAligned = decimals <= MAX_DECIMALS && (magnitudes.at(-1) ?? 0) < MAX_ALIGNED
  const print = (x: unknown): string => {
    if (isMissing(x)) return '–'
    if (typeof x === 'bigint') return x.toLocaleString('en-US')
    if (Array.isArray(x)) return x.map(print).join(', ')
    if (typeof x !== 'number') return String(x)
    if (!Number.isFinite(x)) return String(x)
    return isAligned ? withSeparators(x, decimals) : brief(x, digits)
  }
  return print
}

/** A single number with `digits` significant digits, without trailing zeros. */
export function brief(x: number, digits = 3): string {
  if (!Number.isFinite(x)) return String(x)
  if (x === 0) return '0'
  const rounded = Number(x.toPrecision(digits))
  if (Math.abs(rounded) < 1e-4) return rounded.toExponential()
  if (Math.abs(rounded) >= 1e15) return rounded.toExponential()
  if (Math.abs(rounded) >= 1e6)
    return rounded.toLocaleString('en-US', { notation: 'compact', maximumSignificantDigits: digits })
  return rounded.toLocaleString('en-US', { maximumSignificantDigits: digits })
}
