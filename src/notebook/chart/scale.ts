/** Scales: values → pixels along an axis, with ticks. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { brief } from '../numbers.ts'

/** Value on an axis or a colour scale: a number or a category. */
export type Datum = number | string

export interface Tick {
  readonly pixel: number
  readonly text: string
}

export interface Scale {
  /** Pixel of a value; of a category, its centre. */
  pixelOf(value: Datum): number
  readonly ticks: readonly Tick[]
  /** Width of a category in pixels; 0 for numbers. */
  readonly band: number
}

export interface ScaleOptions {
  readonly log: boolean
  /** Starts the axis at 0; impossible for logarithmic axes. */
  readonly zero: boolean
}

/** Maximum number of distinct values for which each value gets a tick. */
const MAX_DISTINCT_TICKS = 9

/**
 * A scale from pixel `from` to pixel `to` (either may be the greater). One string makes all values categories.
 * @throws SptError `notebook/log-range`
 */
export function scaleOf(values: readonly Datum[], from: number, to: number, options: ScaleOptions): Scale {
  if (values.every((v) => typeof v === 'number')) return numericScale(values, from, to, options)
  return categoryScale([...new Set(values)], from, to)
}

function categoryScale(names: readonly Datum[], from: number, to: number): Scale {
  const band = (to - from) / Math.max(1, names.length)
  const pixelOf = (value: Datum): number => from + (names.indexOf(value) + 0.5) * band
  return {
    pixelOf,
    ticks: names.map((n) => ({ pixel: pixelOf(n), text: datumText(n) })),
    band: Math.abs(band),
  }
}

export const datumText = (d: Datum): string => (typeof d === 'number' ? brief(d) : d)

function numericScale(
  values: readonly number[],
  from: number,
  to: number,
  { log, zero }: ScaleOptions,
): Scale {
  const min = smallest(values)
  if (log && min <= 0)
    failWith('notebook/log-range', `a logarithmic axis has no place for ${brief(min)}`, {
      expected: 'numbers above 0',
      hint: 'leave those rows out, or the axis linear',
    })
  const max = -smallest(values.map((v) => -v))
  const transform = log ? Math.log : (x: number) => x
  const fromZero = zero && !log
  const range = fromZero ? ([Math.min(0, min), Math.max(0, max)] as const) : ([min, max] as const)
  // A single value, or values that differ only by rounding, are centred.
  const [low, high] =
    range[1] - range[0] > 1e-9 * Math.max(...range.map(Math.abs))
      ? range
      : log
        ? [min / 2, max * 2]
        : [min - singleValuePadding(min), max + singleValuePadding(max)]
  const margin = (transform(high) - transform(low)) * 0.04
  const begin = transform(low) - (fromZero && low === 0 ? 0 : margin)
  const end = transform(high) + (fromZero && high === 0 ? 0 : margin)
  const pixelOf = (v: Datum): number => from + ((transform(Number(v)) - begin) / (end - begin)) * (to - from)
  const distinct = [...new Set(values)].sort((a, b) => a - b)
  const useDistinct = distinct.length <= MAX_DISTINCT_TICKS && areApart(distinct.map(pixelOf))
  const tickValues = useDistinct && !fromZero ? distinct : log ? logTicks(low, high) : linearTicks(low, high)
  return { pixelOf, ticks: tickValues.map((v) => ({ pixel: pixelOf(v), text: brief(v) })), band: 0 }
}

const smallest = (values: readonly number[]): number => values.reduce((a, b) => Math.min(a, b), Infinity)

const singleValuePadding = (x: number): number => Math.max(1, Math.abs(x) / 10)

/** True if labels at these pixels do not overlap horizontally. */
const areApart = (pixels: readonly number[]): boolean =>
  pixels.every((x, k) => k === 0 || Math.abs(x - pixels[k - 1]!) >= 34)

/** About six multiples of 1, 2 or 5 times a power of ten. */
function linearTicks(low: number, high: number): number[] {
  const roughStep = (high - low) / 6
  const power = 10 ** Math.floor(Math.log10(roughStep))
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= roughStep)
  // The values differ only in their last digits.
  if (step === undefined || low + step === low) return [low]
  const first = Math.ceil(low / step)
  const count = Math.floor(high / step) - first + 1
  return Array.from({ length: count }, (_, k) => (first + k) * step)
}

/** Minimum number of logarithmic ticks: fewer do not show the scale. */
const MIN_TICKS = 3

/**
 * At most about eight powers of ten; with their multiples by 2 and 5 if there are few; linear ticks if fewer than `MIN_TICKS`
 * remain.
 */
function logTicks(low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))]
  const factors = last - first < 4 ? [1, 2, 5] : [1]
  const stride = Math.ceil((last - first) / 8)
  const ticks: number[] = []
  for (let k = first; k <= last; k += stride)
    for (const f of factors) {
      const tick = f * 10 ** k
      if (tick >= low && tick <= high) ticks.push(tick)
    }
  return ticks.length >= MIN_TICKS ? ticks : linearTicks(low, high)
}
