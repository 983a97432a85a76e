/** Tables of studies and trials for `spt records`. */

import { escapeLine } from '../../ast/diagnostics/render.ts'
import { alignedColumns } from '../../ast/print/message-text.ts'
import type { Timing } from '../types.ts'
import type { StoredTrial, Study, StudySummary } from './types.ts'

/** Displayed characters of an id: enough for thousands of studies. */
const SHOWN = 10
const FINGERPRINT = 8

const utcText = (time: number): string => new Date(time).toISOString().slice(0, 16).replace('T', ' ')

const milliseconds = (t: number | null): string => (t === null ? '' : `${Number(t.toPrecision(4))}`)

const pairs = (values: Readonly<Record<string, string | number>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

const table = (rows: readonly (readonly string[])[]): string =>
  alignedColumns(rows.map((r) => r.map(escapeLine)))
    .map((line) => `${line}\n`)
    .join('')

/** Columns of trial counts. Their sum is the number of trials. */
const COUNTED = ['measured', 'bounded', 'rejected', 'failed', 'wrong'] as const

/** @param all - Number of studies in the file, before filtering */
export function studyTable(studies: readonly StudySummary[], path: string, all = studies.length): string {
  if (studies.length === 0)
    return all === 0
      ? `no studies in ${escapeLine(path)}\n`
      : `none of the ${all} studies in ${escapeLine(path)} matches\n`
  return table([
    ['study', 'kernel', 'device', 'data', 'fingerprint', 'sizes', ...COUNTED, 'best ms', 'latest (UTC)'],
    ...studies.map((s) => [
      s.id.slice(0, SHOWN),
      s.kernelName,
      `${s.device.kind} ${s.device.name}`,
      dataText(s),
      s.fingerprint.slice(0, FINGERPRINT),
      pairs(s.sizes),
      ...COUNTED.map((status) => String(s.trials[status])),
      milliseconds(s.best),
      s.latest === null ? '' : utcText(s.latest),
    ]),
  ])
}

/** Name of the data and shapes of their sparse tensors, or of all tensors if none is sparse. */
function dataText({ data }: Study): string {
  if (!data) return ''
  const sparse = data.tensors.filter((t) => t.stored !== null)
  const tensors = (sparse.length > 0 ? sparse : data.tensors).map(
    ({ name, shape, stored }) => `${name} ${shape.join(' × ')}${stored === null ? '' : `, ${stored} stored`}`,
  )
  return [data.name, tensors.join('; ')].filter((text) => text).join(': ')
}

/** @param unsuccessful - Trials of the study without a time */
export function studyReport(
  s: StudySummary,
  best: readonly StoredTrial[],
  unsuccessful: readonly StoredTrial[],
): string {
  const facts = table([
    ['study', s.id],
    ['kernel', `${s.kernelName} (${s.kernel})`],
    ['device', `${s.device.kind} ${s.device.name}, ${s.device.driver}`],
    ['compiler', s.compiler],
    ['data', dataText(s)],
    ['fingerprint', s.fingerprint],
    ['sizes', pairs(s.sizes)],
    [
      'started',
      `${utcText(s.created)}${s.strategy === undefined ? '' : `, ${s.strategy}`}${s.seed === undefined ? '' : `, seed ${s.seed}`}`,
    ],
    ['trials', pairs(s.trials)],
  ])
  const codes = new Map<string, number>()
  for (const { outcome } of unsuccessful) {
    const code = `${outcome.status}${'code' in outcome ? ` ${outcome.code}` : ''}`
    codes.set(code, (codes.get(code) ?? 0) + 1)
  }
  const times = table([
    ['trial', 'ms', 'interval', 'predicted', 'point'],
    ...best.map((t) => [t.id.slice(0, SHOWN), ...timesOf(t), pairs(t.point)]),
  ])
  const codeRows = [...codes].sort(([, a], [, b]) => b - a).map(([code, n]) => [String(n), code])
  return [facts, ...(best.length > 0 ? [times] : []), ...(codeRows.length > 0 ? [table(codeRows)] : [])].join(
    '\n',
  )
}

const intervalText = (interval: Timing['interval']): string =>
  interval?.map(milliseconds).join(' … ') ?? 'unknown'

function timesOf({ outcome, predicted }: StoredTrial): [string, string, string] {
  if (outcome.status !== 'measured') return ['', '', '']
  const { median, interval } = outcome.timing
  return [milliseconds(median), intervalText(interval), milliseconds(predicted ?? null)]
}

/** @param subject - The kernel and the device */
export function trialReport(t: StoredTrial, subject: string): string {
  const o = t.outcome
  const optional = <T>(name: string, value: T | undefined, text: (value: T) => string): string[][] =>
    value === undefined ? [] : [[name, text(value)]]
  return table([
    ['trial', t.id],
    ['study', `${t.study} (${subject})`],
    ['point', pairs(t.point)],
    ['status', o.status],
    ...optional('code', 'code' in o ? o.code : undefined, String),
    ...optional('message', 'message' in o ? o.message : undefined, String),
    ...(o.status === 'measured'
      ? [
          ['median', `${milliseconds(o.timing.median)} ms`],
          ['interval', `${intervalText(o.timing.interval)}${o.timing.interval ? ' ms' : ''}`],
          ['samples', o.timing.samples.map(milliseconds).join(' ')],
        ]
      : []),
    ...(o.status === 'bounded' ? [['at most', `${milliseconds(o.atMost)} ms: stopped during warm-up`]] : []),
    ...optional('bytes', t.bytes, String),
    ...optional('error', t.relativeError, (error) => `${error}, relative to the reference`),
    ...optional('share', t.share, (share) => `${share} of a measurement`),
    ...optional('predicted', t.predicted, (ms) => `${milliseconds(ms)} ms`),
    ...optional('terms', t.terms, pairs),
    ...optional('took', t.duration, (ms) => `${milliseconds(ms)} ms`),
    ...optional('worker', t.worker, String),
    ['ended', `${utcText(t.time)} UTC`],
    ...(t.trace ?? []).map((step, k) => [k === 0 ? 'steps' : '', JSON.stringify(step)]),
  ])
}
