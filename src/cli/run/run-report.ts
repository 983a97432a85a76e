/** What a run says: a table for people, one object for programs. */
import type { Chosen } from '../../api/choice-conditions.ts'
import { coverageText } from '../../run/compare-outputs.ts'
import type { UnorderedSum } from '../../run/summation-order.ts'
import type { Verification } from '../../run/verify.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { count, ms, plainNumbers, size } from '../figures.ts'
import { byModel, type Form, formJson, formRows, notEvaluated } from '../forms.ts'
import type { Phase } from './laps.ts'
import { summationRow } from './summation-row.ts'

export interface Report {
  readonly kernel: string
  readonly device: DeviceKind
  readonly deviceName: string
  readonly schedule: string | null
  /** Why it is this one, where a choice says so. */
  readonly choice: Chosen | null
  /** Of a kernel without one: the forms that were looked at, the one that ran first; empty where none did. */
  readonly forms: readonly Form[]
  /** Of the schedule that ran; none: equal inputs give equal bits. */
  readonly unorderedSums: readonly UnorderedSum[]
  readonly sizes: Readonly<Record<string, number>>
  readonly nnz: Readonly<Record<string, number>>
  readonly stored: Readonly<Record<string, number>>
  /** Zeros of blocks in files, which were not bound. */
  readonly zeros: Readonly<Record<string, number>>
  /** On the device. */
  readonly bytes: number
  /** The most memory that this process has had. */
  readonly peak: number
  /**
   * Milliseconds. `run` is the median of the timed runs, which are warm, and `first` the first run; all others are phases, and add up to `total`: `choose` is 0
   * without a choice, `verify` and `write` where nothing is compared or written.
   */
  readonly time: Readonly<Record<Phase | 'random' | 'run' | 'first' | 'total', number>>
  readonly repeat: number
  /** Of phase `runs`: the first, those that warm up, and those that are timed. */
  readonly runs: number
  readonly seed: number
  /** What is random: tensors, axes (`axis j`: its coordinates), lists and sets. */
  readonly random: readonly string[]
  readonly verification: Verification | null
  /** Outputs with the files they were written to. */
  readonly written: readonly (readonly [string, string])[]
}

export function json(r: Report): string {
  const { kernel, device, schedule, sizes, nnz, zeros, bytes, peak, time, random, seed } = r
  const choice = r.choice && {
    name: r.choice.choice,
    because: r.choice.because,
    ...(r.choice.from === null ? {} : { from: r.choice.from }),
    values: r.choice.values,
    ...(r.choice.expected.length > 0 ? { expected: r.choice.expected, expectedBy: r.choice.expectedBy } : {}),
  }
  const v = r.verification
  const verify =
    v === null
      ? null
      : {
          ok: v.ok,
          verdict: v.verdict,
          maxRelativeError: v.maxRelativeError,
          maxAbsoluteError: v.maxAbsoluteError,
          elements: v.elements,
          compared: v.compared,
          undecided: v.undecided,
          weak: v.weak,
          sampled: v.sampled && { axis: v.sampled.axis, coordinates: v.sampled.coordinates.length },
        }
  const said = {
    kernel,
    device,
    schedule,
    choice,
    form: r.forms.length > 0 ? formJson(r.forms) : null,
    deterministic: r.unorderedSums.length === 0,
    unorderedSums: r.unorderedSums,
    sizes,
    nnz,
    zeros,
    random,
    seed,
    bytes,
    peak,
    time,
    verify,
  }
  return `${JSON.stringify(said, plainNumbers)}\n`
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
  switch (v.verdict) {
    case 'empty':
      return 'nothing to compare: the outputs have no elements'
    case 'undecided':
      return `NOTHING COMPARED${part}: ${coverageText(v)}`
    default:
      return `${v.ok ? 'agrees with the reference' : 'DIFFERS from the reference'} (${errors})${part}: ${coverageText(v)}`
  }
}

function why(chosen: Chosen, { device, deviceName }: Report): string {
  const { choice, because, from, values, expected, expectedBy } = chosen
  if (chosen.schedule === null) return notEvaluated(chosen)
  const known = Object.entries(values).filter(([, v]) => typeof v === 'number') as [string, number][]
  const with_ = known.map(([name, v]) => `${name} = ${Number.isInteger(v) ? count(v) : v.toPrecision(3)}`)
  const [first, second] = expected
  const times = first
    ? `; ${first.milliseconds.toPrecision(3)} ms are expected${second ? `, of ${second.text} ${second.milliseconds.toPrecision(3)}` : ''}${byModel(expectedBy, device, deviceName)}`
    : ''
  return `${choice}: ${because}${from ? `, of ${from}` : ''}${with_.length > 0 ? ` (${with_.join(', ')})` : ''}${times}`
}

/** Too little to be a row, of those that are not in every run. */
const NOTHING = 0.1

/** Where the time went, in order. */
function phases(time: Report['time']): (readonly [string, number])[] {
  const always = ['parse', 'lower', 'build', 'compile'] as const
  const all = [
    ...(['parse', 'lower', 'read', 'open', 'choose', 'compile', 'random', 'build', 'upload'] as const),
    ...(['runs', 'verify', 'write', 'count'] as const),
  ]
  return all
    .filter((p) => time[p] >= NOTHING || (always as readonly string[]).includes(p))
    .map((p) => [p === 'random' || p === 'verify' ? ROWS[p] : p, time[p]])
}

/** Phases whose names are those of other rows. */
const ROWS = { random: 'generate', verify: 'reference' } as const

/** The phase has more than the time of a run. */
const runsText = ({ runs, time }: Report): string =>
  ` (${count(runs)} in all, the first ${ms(time.first)} with what is compiled then)`

export function human(r: Report): string {
  const rows: readonly (readonly [string, string])[] = [
    ['kernel', r.kernel],
    ['device', r.deviceName === r.device ? r.device : `${r.device} (${r.deviceName})`],
    ['schedule', r.schedule ?? 'none'],
    ['chosen by', r.choice ? why(r.choice, r) : ''],
    ...formRows(r.forms, byModel(r.forms[0]?.expectedBy, r.device, r.deviceName)),
    summationRow(r.unorderedSums),
    ['sizes', list(r.sizes) || 'none'],
    ['nnz', sparse(r)],
    [
      'zeros',
      Object.keys(r.zeros).length > 0 ? `${list(r.zeros)} of stored blocks are padding, left out` : '',
    ],
    ['random', r.random.length > 0 ? `${r.random.join(', ')} (seed ${r.seed})` : ''],
    ['memory', `${size(r.bytes)} on the device; at most ${size(r.peak)} in this process`],
    ['run', `${ms(r.time.run)} (warm${r.repeat > 1 ? `, median of ${r.repeat}` : ''})`],
    ...phases(r.time).map(([name, t]) => [name, `${ms(t)}${name === 'runs' ? runsText(r) : ''}`] as const),
    ['total', ms(r.time.total)],
    ['verify', r.verification === null ? '' : verdict(r.verification)],
    ...r.written.map(([name, path]) => ['wrote', `${name} to ${path}`] as const),
  ]
  return rows
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name.padEnd(9)} ${value}\n`)
    .join('')
}
