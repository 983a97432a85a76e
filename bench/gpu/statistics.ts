/** Figures over many cases. */
import { median } from '../support.ts'

export { median }

export const geometricMean = (ratios: readonly number[]): number =>
  Math.exp(ratios.reduce((sum, r) => sum + Math.log(r), 0) / ratios.length)

/** Three digits, whatever the size. */
export const three = (x: number): string =>
  !Number.isFinite(x) ? '-' : x >= 1000 ? x.toFixed(0) : x >= 100 ? x.toFixed(0) : x.toPrecision(3)

/** `12.3`, `1.02 ms` from microseconds. */
export const time = (us: number | null): string =>
  us === null ? '-' : us >= 1000 ? `${three(us / 1000)} ms` : three(us)
