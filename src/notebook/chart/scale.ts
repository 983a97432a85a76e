/** Values → pixels along an axis, and where its ticks are. */
import { fail } from '../../ast/diagnostic.ts'
import { brief } from '../numbers.ts'

/** Value on an axis or a colour scale: a number, or a category. */
export type Datum = number | string

export interface Tick {
  readonly at: number
  readonly text: string
}

export interface Scale {
  /** Pixels; of a category, its middle. */
  at(value: Datum): number
  readonly ticks: readonly Tick[]
  /** Pixels of a category; 0 of numbers. */
  readonly band: number
}

export interface ScaleOptions {
  readonly log: boolean
  /** Starts the axis at 0; impossible for logarithmic axes. */
  readonly zero: boolean
}

/** Up to this many different numbers, the ticks are at the numbers. */
const FEW = 9

/**
 * An axis from pixel `from` to pixel `to` (either may be the greater). All categories if any value is one.
 * @throws SptError `notebook/log-range`
 */
export function scaleOf(values: readonly Datum[], from: number, to: number, options: ScaleOptions): Scale {
  if (values.every((v) => typeof v === 'number')) return numeric(values, from, to, options)
  return categories([...new Set(values)], from, to)
}

function categories(names: readonly Datum[], from: number, to: number): Scale {
  const band = (to - from) / Math.max(1, names.length)
  const at = (value: Datum): number => from + (names.indexOf(value) + 0.5) * band
  return { at, ticks: names.map((n) => ({ at: at(n), text: textOf(n) })), band: Math.abs(band) }
}

export const textOf = (d: Datum): string => (typeof d === 'number' ? brief(d) : d)

function numeric(values: readonly number[], from: number, to: number, { log, zero }: ScaleOptions): Scale {
  const least = smallest(values)
  if (log && least <= 0)
    fail({
      code: 'notebook/log-range',
      message: `a logarithmic axis has no place for ${brief(least)}`,
      expected: 'numbers above 0',
      hint: 'leave those rows out, or the axis linear',
    })
  const most = -smallest(values.map((v) => -v))
  const along = log ? Math.log : (x: number) => x
  const fromZero = zero && !log
  const ends = fromZero ? ([Math.min(0, least), Math.max(0, most)] as const) : ([least, most] as const)
  // One value alone, or several that only rounding tells apart, is in the middle.
  const [low, high] =
    ends[1] - ends[0] > 1e-9 * Math.max(...ends.map(Math.abs))
      ? ends
      : log
        ? [least / 2, most * 2]
        : [least - room(least), most + room(most)]
  const margin = (along(high) - along(low)) * 0.04
  const begin = along(low) - (fromZero && low === 0 ? 0 : margin)
  const end = along(high) + (fromZero && high === 0 ? 0 : margin)
  const at = (v: Datum): number => from + ((along(Number(v)) - begin) / (end - begin)) * (to - from)
  const distinct = [...new Set(values)].sort((a, b) => a - b)
  const few = distinct.length <= FEW && apart(distinct.map(at))
  const marks = few && !fromZero ? distinct : log ? logTicks(low, high) : linearTicks(low, high)
  return { at, ticks: marks.map((v) => ({ at: at(v), text: brief(v) })), band: 0 }
}

const smallest = (values: readonly number[]): number => values.reduce((a, b) => Math.min(a, b), Infinity)

const room = (x: number): number => Math.max(1, Math.abs(x) / 10)

/** True if labels at these pixels do not overlap. */
const apart = (at: readonly number[]): boolean =>
  at.every((x, k) => k === 0 || Math.abs(x - at[k - 1]!) >= 34)

/** Multiples of 1, 2 or 5 times a power of ten: some six of them. */
function linearTicks(low: number, high: number): number[] {
  const rough = (high - low) / 6
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough)
  // Numbers that differ in their last digits only.
  if (step === undefined || low + step === low) return [low]
  const first = Math.ceil(low / step)
  const count = Math.floor(high / step) - first + 1
  return Array.from({ length: count }, (_, k) => (first + k) * step)
}

/** Fewer do not show how an axis runs. */
const FEWEST = 3

/**
 * Powers of ten, at most about eight; with their multiples by 2 and 5 if there are few; linear ticks within one interval of
 * those.
 */
function logTicks(low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))]
  const factors = last - first < 4 ? [1, 2, 5] : [1]
  const every = Math.ceil((last - first) / 8)
  const out: number[] = []
  for (let k = first; k <= last; k += every)
    for (const f of factors) {
      const tick = f * 10 ** k
      if (tick >= low && tick <= high) out.push(tick)
    }
  return out.length >= FEWEST ? out : linearTicks(low, high)
}
