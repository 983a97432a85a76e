/**
 * `tuneAll`: tunes a kernel on several data sets, and derives a choice from properties of the data known before any
 * measurement.
 */
import {
  checkDevice,
  expectArgument,
  expectDistinct,
  expectEach,
  expectOptions,
  isRecord,
} from '../../api/argument-checks.ts'
import type { Kernel } from '../../api/kernel.ts'
import { SptError } from '../../ast/diagnostic.ts'
import { expectValues, FUNCTION, POSITIVE_COUNT, RECORD, TEXT } from '../../ast/value-kinds.ts'
import { questionsOf } from '../choice/conditions.ts'
import type { GeneraliseOptions } from '../choice/generalise.ts'
import { type CaseOptions, CaseStudy, type TuneCase } from './case-study.ts'
import { TUNE_OPTIONS, type TuneProgress } from './index.ts'
import { SharedCandidates } from './shared-candidates.ts'
import { type Found, isDone, resultOf, type TuneAllResult } from './tune-all-result.ts'
import { checkQueue, checkTuning, isSpace } from './tune-options.ts'

export interface TuneAllOptions extends CaseOptions, GeneraliseOptions {
  /** Points of each are measured at most `trials` times; `seconds` are those of all searches together. */
  readonly cases: readonly TuneCase[]
  /** The fastest of each case that are tried on all; 3. */
  readonly shared?: number | undefined
  readonly onProgress?: ((progress: TuneAllProgress) => void) | undefined
}

export interface TuneAllProgress {
  readonly case: string
  /** From 1. */
  readonly at: number
  readonly of: number
  /** `null` while candidates of all are tried. */
  readonly search: TuneProgress | null
}

const SHARED = 3

/**
 * Tunes a kernel (without steps) on several data: each is searched by itself, then the fastest of each are measured on all, and
 * a small decision tree over what choices can ask (sizes, statistics, the device) says which of them is for which data. It is
 * judged leave-one-out, beside the best single schedule, which stays where the tree is no better on data it has not seen, and
 * what runs unasked, which stays where neither is.
 * ```ts
 * const { schedule, generalisation, defaultLoss } = await tuneAll(kernel, { cases: [{ name: 'a', inputs }, …], device, trials: 64 })
 * ```
 * @throws SptError as `tune`; what is wrong with the data of one case is told of it, unless it is so of all
 */
export async function tuneAll(kernel: Kernel, options: TuneAllOptions): Promise<TuneAllResult> {
  check(kernel, options)
  const start = performance.now()
  const { cases, signal, seconds, shared: count = SHARED, onProgress } = options
  const each = seconds === undefined ? options : { ...options, seconds: seconds / cases.length }
  const studies = cases.map((c) => new CaseStudy(kernel, c, each))
  const shared = new SharedCandidates(kernel)
  shared.add(kernel, null)
  const searched = await forEach(studies, signal, (study, at) =>
    study.search(shared, count, (search) =>
      onProgress?.({ case: study.name, at, of: studies.length, search }),
    ),
  )
  const usable = studies.filter((_, k) => isDone(searched[k]))
  const [first] = searched.filter((s) => s instanceof SptError)
  if (usable.length === 0 && first) throw first
  const questions = questionsOf(kernel)
  const compared = await forEach(usable, signal, (study, at) =>
    study.compare(shared, questions, () =>
      onProgress?.({ case: study.name, at, of: usable.length, search: null }),
    ),
  )
  const comparedOf = studies.map((s) => compared[usable.indexOf(s)])
  return resultOf(kernel, options, { studies, shared, searched, comparedOf, start })
}

/** Runs `work` on each case; errors of a case's data are its result. Cases after an abort have none. */
async function forEach<T>(
  studies: readonly CaseStudy[],
  signal: AbortSignal | undefined,
  work: (study: CaseStudy, at: number) => Promise<T>,
): Promise<Found<T>[]> {
  const out: Found<T>[] = []
  for (const [k, study] of studies.entries()) {
    if (signal?.aborted) return out
    try {
      out[k] = await work(study, k + 1)
    } catch (e) {
      if (signal?.aborted) return out
      if (!(e instanceof SptError) || !isOfData(e)) throw e
      out[k] = e
    }
  }
  return out
}

/** Modules whose diagnostics do not concern one case's data: records, server, device and arguments. */
const ELSEWHERE = ['api', 'records', 'studies', 'device']
const ASKED = ['search/strategy', 'search/budget', 'search/seed', 'search/lock', 'search/no-model']

const isOfData = ({ diagnostics: [d] }: SptError): boolean =>
  !ELSEWHERE.includes(d!.code.split('/')[0]!) && !ASKED.includes(d!.code)

/** Options of one search that apply to all: inputs belong to cases, and there is no report of a single search. */
const ofAll = TUNE_OPTIONS.filter(
  (o) => o !== 'inputs' && o !== 'data' && o !== 'explain' && o !== 'libraries',
)
const OPTIONS = ['cases', ...ofAll, 'shared', 'gain', 'leaves', 'groups'] as const

function check(kernel: unknown, options: TuneAllOptions): void {
  expectOptions('tuneAll', options, [...OPTIONS])
  checkTuning(kernel, options)
  const { cases, space, prior, queue } = options
  const isCase = (c: unknown): boolean =>
    isRecord(c) && typeof c.name === 'string' && (isRecord(c.inputs) || typeof c.inputs === 'function')
  expectEach('cases', cases, isCase, 'case', '{ name, inputs }')
  expectArgument(cases.length > 0, 'cases', cases, 'at least one')
  expectDistinct(
    'names of cases',
    cases.map((c) => c.name),
  )
  for (const c of cases) {
    expectOptions(`case ${c.name}`, c, ['name', 'inputs', 'group', 'device', 'files', 'data'])
    expectValues(c, { group: TEXT, files: RECORD, data: TEXT })
    if (c.device !== undefined) checkDevice(c.device)
  }
  const isOne = space === undefined || typeof space === 'function' || isSpace(space)
  expectArgument(isOne, 'space', space, 'a space of schedules, or a function that gives one')
  expectValues({ prior }, { prior: FUNCTION })
  checkQueue(queue, null)
  expectValues(options, {
    shared: POSITIVE_COUNT,
    leaves: POSITIVE_COUNT,
    groups: POSITIVE_COUNT,
    gain: { holds: (x) => typeof x === 'number' && x >= 0, expected: 'a number that is not negative' },
  })
}
