/** Studies and trials as rows, and back. */
import type { TraceStep } from '../../api/kernels/kernel.ts'
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import type { DeviceKind } from '../../backends/target.ts'
import type { Outcome, Point } from '../types.ts'
import { traceHash, trialId } from './identity.ts'
import type { Status, StoredTrial, Study, StudyData, TrialRecord } from './types.ts'

/** Values that may be bound to a statement: the native code crashes on others. */
export type Cell = string | number | null | Buffer

/** Truncates texts at a NUL, as SQLite's readers do. */
export const bindable = (cells: readonly Cell[]): Cell[] =>
  cells.map((c) => {
    expectArgument(isCell(c), 'what is kept', c, 'a text or a number')
    return typeof c === 'string' ? c.replaceAll('\0', '\ufffd') : c
  })

const isCell = (c: unknown): boolean =>
  c === null || typeof c === 'string' || (typeof c === 'number' && Number.isFinite(c)) || Buffer.isBuffer(c)

export type Row = Readonly<Record<string, Cell | ArrayBuffer>>

const json = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value))

export const STUDY_COLUMNS = [
  'id',
  'kernel',
  'kernel_name',
  'space',
  'device_kind',
  'device_name',
  'driver',
  'compiler',
  'fingerprint',
  'sizes',
  'strategy',
  'seed',
  'created',
  'data',
] as const

export function studyRow(s: Study): Cell[] {
  return [
    s.id,
    s.kernel,
    s.kernelName,
    s.space,
    s.device.kind,
    s.device.name,
    s.device.driver,
    s.compiler,
    s.fingerprint,
    JSON.stringify(s.sizes),
    s.strategy ?? null,
    s.seed ?? null,
    s.created,
    json(s.data),
  ]
}

export function studyFrom(row: Row): Study {
  return {
    id: row.id as string,
    kernel: row.kernel as string,
    kernelName: row.kernel_name as string,
    space: row.space as string,
    device: {
      kind: row.device_kind as DeviceKind,
      name: row.device_name as string,
      driver: row.driver as string,
    },
    compiler: row.compiler as string,
    fingerprint: row.fingerprint as string,
    sizes: JSON.parse(row.sizes as string) as Record<string, number>,
    ...(row.strategy === null ? {} : { strategy: row.strategy as string }),
    ...(row.seed === null ? {} : { seed: row.seed as number }),
    ...(row.data === null ? {} : { data: JSON.parse(row.data as string) as StudyData }),
    created: row.created as number,
  }
}

export const TRIAL_COLUMNS = [
  'id',
  'study',
  'point',
  'steps',
  'trace',
  'trace_hash',
  'status',
  'code',
  'message',
  'samples',
  'median',
  'low',
  'high',
  'share',
  'bytes',
  'relative_error',
  'sampled',
  'predicted',
  'terms',
  'duration',
  'worker',
  'time',
] as const

export function trialRow(t: TrialRecord): Cell[] {
  const o = t.outcome
  const timing = o.status === 'measured' ? o.timing : null
  return [
    trialId(t.study, t.point),
    t.study,
    JSON.stringify(t.point),
    json(t.steps),
    json(t.trace),
    t.trace === undefined ? null : traceHash(t.trace),
    o.status,
    'code' in o ? o.code : null,
    'message' in o ? o.message : null,
    timing && samplesBlob(timing.samples),
    timing?.median ?? null,
    timing?.interval?.[0] ?? null,
    o.status === 'bounded' ? o.atMost : (timing?.interval?.[1] ?? null),
    t.share ?? null,
    t.bytes ?? null,
    t.relativeError ?? null,
    t.sampled === undefined ? null : Number(t.sampled),
    t.predicted ?? null,
    json(t.terms),
    t.duration ?? null,
    t.worker ?? null,
    t.time ?? Date.now(),
  ]
}

function samplesBlob(samples: readonly number[]): Buffer {
  const bytes = Buffer.alloc(8 * samples.length)
  for (const [k, s] of samples.entries()) bytes.writeDoubleLE(s, 8 * k)
  return bytes
}

function samplesFrom(blob: Buffer | ArrayBuffer): number[] {
  const bytes = Buffer.isBuffer(blob) ? blob : Buffer.from(blob)
  return Array.from({ length: bytes.length / 8 }, (_, k) => bytes.readDoubleLE(8 * k))
}

export function trialFrom(row: Row): StoredTrial {
  return {
    id: row.id as string,
    study: row.study as string,
    point: JSON.parse(row.point as string) as Point,
    ...(row.steps === null ? {} : { steps: JSON.parse(row.steps as string) as string[] }),
    ...(row.trace === null ? {} : { trace: JSON.parse(row.trace as string) as TraceStep[] }),
    outcome: outcomeFrom(row),
    ...(row.share === null ? {} : { share: row.share as number }),
    ...(row.bytes === null ? {} : { bytes: row.bytes as number }),
    ...(row.relative_error === null ? {} : { relativeError: row.relative_error as number }),
    ...(row.sampled === null ? {} : { sampled: row.sampled === 1 }),
    ...(row.predicted === null ? {} : { predicted: row.predicted as number }),
    ...(row.terms === null ? {} : { terms: JSON.parse(row.terms as string) as Record<string, number> }),
    ...(row.duration === null ? {} : { duration: row.duration as number }),
    ...(row.worker === null ? {} : { worker: row.worker as string }),
    time: row.time as number,
  }
}

function outcomeFrom(row: Row): Outcome {
  const status = row.status as Status
  const message = row.message as string
  if (status === 'wrong') return { status, message }
  if (status === 'bounded') return { status, atMost: row.high as number }
  if (status !== 'measured') return { status, code: row.code as string, message }
  const interval = row.low === null ? null : ([row.low as number, row.high as number] as const)
  const samples = samplesFrom(row.samples as Buffer)
  return { status, timing: { median: row.median as number, interval, samples } }
}
