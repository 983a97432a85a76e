/** `tuneAll`: tunes a kernel on several data sets, and derives a dispatch over known properties of the data. */

import {
  checkDevice,
  expectArgument,
  expectDistinct,
  expectEach,
  expectOptions,
  isRecord,
} from '../../../api/inputs/argument-checks.ts'
import type { Kernel } from '../../../api/kernels/kernel.ts'
import { SptError } from '../../../ast/diagnostics/diagnostic.ts'
import {
  either,
  expectValues,
  FUNCTION,
  POSITIVE_COUNT,
  RECORD,
  TEXT,
} from '../../../ast/diagnostics/value-kinds.ts'
import type { AbortSignalLike } from '../../../ast/work.ts'
import { questionsOf } from '../../choice/conditions.ts'
import type { GeneraliseOptions } from '../../choice/generalise.ts'
import type { TuneProgress } from '../tune-options.ts'
import { ANY, checkQueue, checkTuning, SPACE } from '../tune-options.ts'
import { type CaseOptions, CaseStudy, type TuneCase } from './case-study.ts'
import { SharedCandidates } from './shared-candidates.ts'
import { type CaseResult, isSuccess, resultOf, type TuneAllResult } from './tune-all-result.ts'

export interface TuneAllOptions extends CaseOptions, GeneraliseOptions {
  /** Cases, each with at most `trials` measured points; `seconds` are for all searches together. */
  readonly cases: readonly TuneCase[]
  /** Number of fastest schedules per case that are evaluated on all cases; default 3. */
  readonly shared?: number | undefined
  readonly onProgress?: ((progress: TuneAllProgress) => void) | undefined
}

export interface TuneAllProgress {
  readonly case: string
  /** Position of the case, from 1 to `of`. */
  readonly at: number
  readonly of: number
  /** `null` while candidates of all cases are evaluated. */
  readonly search: TuneProgress | null
}

const DEFAULT_SHARED = 3

/** Implements `tuneAll` of `sparsetile/search`. @throws SptError as `tune` */
export async function tuneAll(kernel: Kernel, options: TuneAllOptions): Promise<TuneAllResult> {
  check(kernel, options)
  const start = performance.now()
  const { cases, signal, seconds, shared: count = DEFAULT_SHARED, onProgress } = options
  const caseOptions = seconds === undefined ? options : { ...options, seconds: seconds / cases.length }
  const studies = cases.map((c) => new CaseStudy(kernel, c, caseOptions))
  const shared = new SharedCandidates(kernel)
  shared.add(kernel, null)
  const searches = await runCases(studies, signal, (study, position) =>
    study.search(shared, count, (search) =>
      onProgress?.({ case: study.name, at: position, of: studies.length, search }),
    ),
  )
  const successful = studies.filter((_, k) => isSuccess(searches[k]))
  const [firstError] = searches.filter((s) => s instanceof SptError)
  if (successful.length === 0 && firstError) throw firstError
  const questions = questionsOf(kernel)
  const results = await runCases(successful, signal, (study, position) =>
    study.compare(shared, questions, () =>
      onProgress?.({ case: study.name, at: position, of: successful.length, search: null }),
    ),
  )
  const comparisons = studies.map((s) => results[successful.indexOf(s)])
  return resultOf(kernel, options, { studies, shared, searches, comparisons, start })
}

/** Runs `work` on each case; an error of a case's data is its result. After an abort, the remaining cases have none. */
async function runCases<T>(
  studies: readonly CaseStudy[],
  signal: AbortSignalLike | undefined,
  work: (study: CaseStudy, position: number) => Promise<T>,
): Promise<CaseResult<T>[]> {
  const results: CaseResult<T>[] = []
  for (const [k, study] of studies.entries()) {
    if (signal?.aborted) return results
    try {
      results[k] = await work(study, k + 1)
    } catch (e) {
      if (signal?.aborted) return results
      if (!(e instanceof SptError) || !concernsData(e)) throw e
      results[k] = e
    }
  }
  return results
}

/** Modules whose diagnostics do not concern one case's data: records, server, device and arguments. */
const OTHER_MODULES = ['api', 'records', 'studies', 'device']
const OPTION_CODES = ['search/strategy', 'search/budget', 'search/seed', 'search/lock', 'search/no-model']

const concernsData = ({ diagnostics: [d] }: SptError): boolean =>
  !OTHER_MODULES.includes(d!.code.split('/')[0]!) && !OPTION_CODES.includes(d!.code)

function check(kernel: unknown, options: TuneAllOptions): void {
  checkTuning('tuneAll', kernel, options, {
    cases: ANY,
    space: either(FUNCTION, SPACE),
    shared: POSITIVE_COUNT,
    leaves: POSITIVE_COUNT,
    groups: POSITIVE_COUNT,
    gain: { holds: (x) => typeof x === 'number' && x >= 0, expected: 'a number that is not negative' },
  })
  const { cases, queue } = options
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
  checkQueue(queue, null)
}
