/** What a run says: a table for people, one object for programs. */
import type { Chosen } from '../../api/decide.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Verification } from '../../verify.ts'
import { count, ms, size } from '../figures.ts'

export interface Report {
  readonly kernel: string
  readonly device: DeviceKind
  readonly deviceName: string
  readonly schedule: string | null
  /** Why it is this one, where a choice says so. */
  readonly choice: Chosen | null
  readonly sizes: Readonly<Record<string, number>>
  readonly nnz: Readonly<Record<string, number>>
  readonly stored: Readonly<Record<string, number>>
  /** On the device. */
  readonly bytes: number
  /** Milliseconds; `run` is the median. */
  readonly time: {
    readonly parse: number
    /** Statistics of the data, and the steps of what was chosen by them; 0 without a choice. */
    readonly choose: number
    readonly lower: number
    readonly build: number
    readonly compile: number
    readonly run: number
  }
  readonly repeat: number
  readonly seed: number
  /** What is random: tensors, axes (`axis j`: its coordinates), lists and sets. */
  readonly random: readonly string[]
  readonly verification: Verification | null
  /** Outputs with the files they were written to. */
  readonly written: readonly (readonly [string, string])[]
}

/** Numbers that JSON has no word for are strings. */
const plain = (_: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isFinite(value) ? String(value) : value

export function json(r: Report): string {
  const { kernel, device, schedule, sizes, nnz, bytes, time, random, seed } = r
  const choice = r.choice && { name: r.choice.choice, because: r.choice.because, values: r.choice.values }
  const v = r.verification
  const verify =
    v === null
      ? null
      : { ok: v.ok, maxRelativeError: v.maxRelativeError, maxAbsoluteError: v.maxAbsoluteError }
  return `${JSON.stringify({ kernel, device, schedule, choice, sizes, nnz, random, seed, bytes, time, verify }, plain)}\n`
}

const list = (record: Readonly<Record<string, number>>): string =>
  Object.entries(record)
    .map(([name, n]) => `${name} = ${Number.isInteger(n) ? count(n) : n}`)
    .join(', ')

function sparse(r: Report): string {
  return Object.entries(r.nnz)
    .map(([name, n]) => {
      const padding = r.stored[name]! - n
      return `${name} = ${count(n)}${padding > 0 ? ` (and ${count(padding)} of padding)` : ''}`
    })
    .join(', ')
}

function verdict(v: Verification): string {
  const errors = `relative error ${v.maxRelativeError.toExponential(1)}, absolute ${v.maxAbsoluteError.toExponential(1)}`
  const part = v.sampled ? `, on ${count(v.sampled.coordinates.length)} coordinates of ${v.sampled.axis}` : ''
  return `${v.ok ? 'agrees with the reference' : 'DIFFERS from the reference'} (${errors})${part}`
}

function why({ choice, because, values }: Chosen): string {
  const known = Object.entries(values).filter(([, v]) => typeof v === 'number') as [string, number][]
  const with_ = known.map(([name, v]) => `${name} = ${Number.isInteger(v) ? count(v) : v.toPrecision(3)}`)
  return `${choice}: ${because}${with_.length > 0 ? ` (${with_.join(', ')})` : ''}`
}

export function human(r: Report): string {
  const rows: readonly (readonly [string, string])[] = [
    ['kernel', r.kernel],
    ['device', r.deviceName === r.device ? r.device : `${r.device} (${r.deviceName})`],
    ['schedule', r.schedule ?? 'none'],
    ['chosen by', r.choice ? why(r.choice) : ''],
    ['sizes', list(r.sizes) || 'none'],
    ['nnz', sparse(r)],
    ['random', r.random.length > 0 ? `${r.random.join(', ')} (seed ${r.seed})` : ''],
    ['memory', `${size(r.bytes)} on the device`],
    ['parse', ms(r.time.parse)],
    ['choose', r.choice ? ms(r.time.choose) : ''],
    ['lower', ms(r.time.lower)],
    ['build', ms(r.time.build)],
    ['compile', ms(r.time.compile)],
    ['run', `${ms(r.time.run)}${r.repeat > 1 ? ` (median of ${r.repeat})` : ''}`],
    ['verify', r.verification === null ? '' : verdict(r.verification)],
    ...r.written.map(([name, path]) => ['wrote', `${name} to ${path}`] as const),
  ]
  return rows
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name.padEnd(9)} ${value}\n`)
    .join('')
}
