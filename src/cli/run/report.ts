/** What a run says: a table for people, one object for programs. */
import type { DeviceKind } from '../../runtime/device.ts'
import type { Verification } from '../../verify.ts'
import { count, ms, size } from '../figures.ts'

export interface Report {
  readonly kernel: string
  readonly device: DeviceKind
  readonly deviceName: string
  readonly schedule: string | null
  readonly sizes: Readonly<Record<string, number>>
  readonly nnz: Readonly<Record<string, number>>
  readonly stored: Readonly<Record<string, number>>
  /** On the device. */
  readonly bytes: number
  /** Milliseconds; `run` is the median. */
  readonly time: {
    readonly parse: number
    readonly lower: number
    readonly build: number
    readonly compile: number
    readonly run: number
  }
  readonly repeat: number
  readonly seed: number
  /** Buffers with random contents. */
  readonly random: readonly string[]
  readonly verification: Verification | null
  /** Outputs with the files they were written to. */
  readonly written: readonly (readonly [string, string])[]
}

/** Numbers that JSON has no word for are strings. */
const plain = (_: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isFinite(value) ? String(value) : value

export function json(r: Report): string {
  const { kernel, device, schedule, sizes, nnz, bytes, time } = r
  const v = r.verification
  const verify =
    v === null
      ? null
      : { ok: v.ok, maxRelativeError: v.maxRelativeError, maxAbsoluteError: v.maxAbsoluteError }
  return `${JSON.stringify({ kernel, device, schedule, sizes, nnz, bytes, time, verify }, plain)}\n`
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

export function human(r: Report): string {
  const rows: readonly (readonly [string, string])[] = [
    ['kernel', r.kernel],
    ['device', r.deviceName === r.device ? r.device : `${r.device} (${r.deviceName})`],
    ['schedule', r.schedule ?? 'none'],
    ['sizes', list(r.sizes) || 'none'],
    ['nnz', sparse(r)],
    ['random', r.random.length > 0 ? `${r.random.join(', ')} (seed ${r.seed})` : ''],
    ['memory', `${size(r.bytes)} on the device`],
    ['parse', ms(r.time.parse)],
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
