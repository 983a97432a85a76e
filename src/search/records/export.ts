/** Records as text for other tools. */
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import { groupBy } from '../../ir/memoize.ts'
import type { DecisionValue, Point } from '../types.ts'
import type { StoredTrial, StudySummary } from './types.ts'

export const EXPORT_FORMATS = ['csv', 'json', 'optuna'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

type Writer = (studies: readonly StudySummary[], trials: readonly StoredTrial[]) => string

const WRITERS: Readonly<Record<ExportFormat, Writer>> = {
  csv,
  json: (studies, trials) => `${JSON.stringify({ studies, trials }, null, 1)}\n`,
  optuna,
}

/** @throws SptError `api/argument` */
export function exportText(
  format: ExportFormat,
  studies: readonly StudySummary[],
  trials: readonly StoredTrial[],
): string {
  expectArgument(EXPORT_FORMATS.includes(format), 'the format', format, EXPORT_FORMATS.join(', '))
  return WRITERS[format](studies, trials)
}

/** RFC 4180. One line a trial, with its study; points, steps and samples as JSON. */
function csv(studies: readonly StudySummary[], trials: readonly StoredTrial[]): string {
  const byId = new Map(studies.map((s) => [s.id, s]))
  const lines = trials.map((t) => {
    const s = byId.get(t.study)!
    const o = t.outcome
    const timing = o.status === 'measured' ? o.timing : null
    return {
      trial: t.id,
      study: t.study,
      kernel: s.kernelName,
      kernel_hash: s.kernel,
      device: s.device.kind,
      device_name: s.device.name,
      driver: s.device.driver,
      compiler: s.compiler,
      fingerprint: s.fingerprint,
      data: s.data?.name,
      tensors: s.data && JSON.stringify(s.data.tensors),
      sizes: JSON.stringify(s.sizes),
      status: o.status,
      code: 'code' in o ? o.code : '',
      message: 'message' in o ? o.message : '',
      median_ms: timing?.median,
      low_ms: timing?.interval?.[0],
      high_ms: timing?.interval?.[1],
      at_most_ms: o.status === 'bounded' ? o.atMost : undefined,
      share: timing ? (t.share ?? 1) : undefined,
      bytes: t.bytes,
      relative_error: t.relativeError,
      sampled: t.sampled,
      predicted_ms: t.predicted,
      duration_ms: t.duration,
      worker: t.worker,
      time: new Date(t.time).toISOString(),
      point: JSON.stringify(t.point),
      steps: t.steps && JSON.stringify(t.steps),
      trace: t.trace && JSON.stringify(t.trace),
      terms: t.terms && JSON.stringify(t.terms),
      samples: timing && JSON.stringify(timing.samples),
    }
  })
  const names = Object.keys(lines[0] ?? { trial: '', study: '' })
  return [names, ...lines.map((l) => Object.values(l))].map((l) => `${l.map(cell).join(',')}\r\n`).join('')
}

const cell = (value: unknown): string => {
  const text = value === undefined || value === null ? '' : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const OPTUNA = { createStudy: 0, setStudyAttribute: 2, createTrial: 4 } as const
const MINIMIZE = 1
const STATES = { measured: 1, bounded: 2, rejected: 3, failed: 3, wrong: 3 } as const

/** One operation a line, as Optuna's `JournalFileBackend` has them: studies are numbered as they are created. */
function optuna(studies: readonly StudySummary[], trials: readonly StoredTrial[]): string {
  const lines: object[] = []
  const put = (op_code: number, fields: object): void => {
    lines.push({ op_code, worker_id: 'sparsetile', ...fields })
  }
  for (const [study_id, s] of studies.entries()) {
    put(OPTUNA.createStudy, { study_name: `${s.kernelName} ${s.id}`, directions: [MINIMIZE] })
    const { kernelName: _, trials: __, best: ___, latest: ____, ...attributes } = s
    for (const [key, value] of Object.entries(attributes))
      put(OPTUNA.setStudyAttribute, { study_id, user_attr: { [key]: value } })
    const studyTrials = trials.filter((t) => t.study === s.id)
    const distributions = distributionsOf(studyTrials.map((t) => t.point))
    for (const t of studyTrials) put(OPTUNA.createTrial, { study_id, ...optunaTrial(t, distributions) })
  }
  return lines.map((l) => `${JSON.stringify(l)}\n`).join('')
}

/** Optuna distribution of a parameter, the same in all trials of a study. */
interface Distribution {
  readonly text: string
  readonly inner: (value: DecisionValue) => number
}

/** Distributions of the values that were tried: integers at equal steps, or a list. */
function distributionsOf(points: readonly Point[]): ReadonlyMap<string, Distribution> {
  const values = groupBy(points.flatMap(Object.entries<DecisionValue>), ([name]) => name)
  return new Map([...values].map(([name, all]) => [name, distribution([...new Set(all.map(([, v]) => v))])]))
}

function distribution(values: readonly DecisionValue[]): Distribution {
  const text = (name: string, attributes: object): string => JSON.stringify({ name, attributes })
  const numbers = values.filter((v) => typeof v === 'number').sort((a, b) => a - b)
  const step = numbers.length === values.length ? stepOf(numbers) : null
  if (step !== null) {
    const range = { log: false, step, low: numbers[0], high: numbers.at(-1) }
    return { text: text('IntDistribution', range), inner: Number }
  }
  const choices = [...numbers, ...values.filter((v) => typeof v !== 'number')]
  return { text: text('CategoricalDistribution', { choices }), inner: (v) => choices.indexOf(v) }
}

/** The step that ascending numbers have all in common: 1, 2, 4 have none. */
function stepOf(numbers: readonly number[]): number | null {
  const [first = 0, second = first + 1] = numbers
  const step = second - first
  return numbers.every((v, k) => Number.isSafeInteger(v) && v === first + k * step) ? step : null
}

function optunaTrial(t: StoredTrial, distributions: ReadonlyMap<string, Distribution>): object {
  const o = t.outcome
  const measured = o.status === 'measured'
  const params = Object.entries(t.point)
  return {
    // Naive, as Optuna writes them; ours are of UTC.
    datetime_start: optunaTime(t.time - (t.duration ?? 0)),
    datetime_complete: optunaTime(t.time),
    state: STATES[o.status],
    value: measured ? o.timing.median : null,
    values: null,
    distributions: Object.fromEntries(params.map(([name]) => [name, distributions.get(name)!.text])),
    params: Object.fromEntries(params.map(([name, v]) => [name, distributions.get(name)!.inner(v)])),
    user_attrs: {
      id: t.id,
      status: o.status,
      ...(measured && { interval: o.timing.interval, samples: o.timing.samples }),
      message: 'message' in o ? o.message : undefined,
      at_most: o.status === 'bounded' ? o.atMost : undefined,
      code: 'code' in o ? o.code : undefined,
      trace: t.trace,
      share: t.share,
      bytes: t.bytes,
      relative_error: t.relativeError,
      predicted: t.predicted,
      terms: t.terms,
      worker: t.worker,
    },
    system_attrs: {},
    intermediate_values: {},
  }
}

const optunaTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000')
