/** What `collect` writes and what models are trained from: one line of JSON for each kernel on each case. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { medianInterval } from '../../src/search/measuring/median-interval.ts'

export interface Measured {
  /** Kind and name of the device. */
  readonly device: 'cpu' | 'webgpu' | 'cuda'
  readonly chip: string
  readonly suite: string
  /** A file of the data folder, or a member of a family (`road:40000:1`). */
  readonly data: string
  readonly width: number
  /** `FILE.spt:kernel.schedule(arguments)`, or a library's routine. */
  readonly candidate: string
  readonly status: 'ok' | 'wrong' | 'failed'
  /** Why it is not ok. */
  readonly note?: string
  /** Microseconds of one run by device events: the median, and its 95 % interval by order statistics. */
  readonly median?: number
  readonly low?: number
  readonly high?: number
  readonly samples?: number
  /** Mean microseconds of runs back to back, of what is short. */
  readonly back?: number | null
}

export const keyOf = (m: Pick<Measured, 'device' | 'suite' | 'data' | 'width' | 'candidate'>): string =>
  [m.device, m.suite, m.data, m.width, m.candidate].join(' | ')

/** The lines that are whole: a process that was killed may have left half of one. */
export const readRecords = (path: string): Measured[] => linesOf<Measured>(path)

export const recordsIn = (text: string): Measured[] => linesIn<Measured>(text)

/** A file's text, of one that ends in `.gz` what was packed. */
export function textOf(path: string): string {
  const bytes = readFileSync(path)
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
}

export const linesOf = <T>(path: string): T[] =>
  existsSync(path) ? linesIn<T>(readFileSync(path, 'utf8')) : []

export const linesIn = <T>(text: string): T[] =>
  text.split('\n').flatMap((line) => {
    try {
      return line === '' ? [] : [JSON.parse(line) as T]
    } catch {
      return []
    }
  })

export const append = (path: string, record: Measured): void =>
  appendFileSync(
    path,
    `${JSON.stringify(record, (_, v) => (typeof v === 'number' ? Number(v.toPrecision(6)) : v))}\n`,
  )

/** The median and its interval of 95 %. */
export function summary(samples: readonly number[]): Pick<Measured, 'median' | 'low' | 'high' | 'samples'> {
  const { median, low, high } = medianInterval(samples)
  return { median, low, high, samples: samples.length }
}
