/** `tuneAll`: a kernel tuned on several data, and a choice by what is known of data before anything is measured. */
import {
  checkDevice,
  expectArgument,
  expectDistinct,
  expectEach,
  expectOptions,
  isRecord,
} from '../../api/argument-checks.ts'
import type { Kernel } from '../../api/kernel.ts'
import { type Diagnostic, SptError } from '../../ast/diagnostic.ts'
import { expectValues, FUNCTION, POSITIVE_COUNT, RECORD, TEXT } from '../../ast/value-kinds.ts'
import { questionsOf } from '../choice/conditions.ts'
import type { EvidenceCandidate } from '../choice/evidence.ts'
import {
  type Generalised,
  type GeneraliseOptions,
  generalise,
  type Judged,
  type Loss,
  type Verdict,
} from '../choice/generalise.ts'
import { decided } from '../choice/rules.ts'
import { choiceText } from '../choice/text.ts'
import type { WrongResult } from '../tally.ts'
import type { ScheduleCall, Timing } from '../types.ts'
import { type CaseOptions, CaseStudy, type Compared, type Searched, type TuneCase } from './case-study.ts'
import { TUNE_OPTIONS, type TuneProgress } from './index.ts'
import { type SharedCandidate, SharedCandidates } from './shared-candidates.ts'
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

/** A schedule that was tried on all cases. */
export interface TunedCandidate {
  readonly kernel: Kernel
  /** How the program calls it; `null`: it has no name there. */
  readonly call: ScheduleCall | null
  /** Groups of cases that it was found on; `null`: the kernel as written. */
  readonly foundOn: readonly string[] | null
  /** For each case; `null`: it could not be measured there. */
  readonly timings: readonly (Timing | null)[]
}

/** What came of one case. Candidates are told by their place. */
export interface TunedCase {
  readonly name: string
  readonly group: string
  /** Why it has no part in the result: its data could not be used. */
  readonly refused: Diagnostic | null
  readonly search: Searched | null
  /** What conditions can ask of it: sizes, statistics, the device. */
  readonly values: Readonly<Record<string, number>> | null
  /** The fastest candidate. */
  readonly best: number | null
  /** What runs unasked; `null` as well where the kernel's choice refuses the data. */
  readonly standard: number | null
  /** What the choice takes. */
  readonly choice: number | null
  /** The best single schedule; `null` where it cannot run. */
  readonly single: number | null
}

export interface TuneAllResult {
  readonly cases: readonly TunedCase[]
  readonly candidates: readonly TunedCandidate[]
  /** The choice and the single best schedule; `null` where it ended before all was tried on all. */
  readonly generalised: Generalised | null
  /** Of what runs unasked. */
  readonly standard: Loss | null
  /** The best of these three on data that it has not seen; `null` as `generalised`. */
  readonly verdict: Verdict | null
  /**
   * The choice or the single schedule, as the language writes it: `schedule k.tuned choose { … }`, or a schedule alone. `null`
   * as well where what runs unasked is the best.
   */
  readonly schedule: { readonly name: string; readonly text: string } | null
  /** Bugs of the compiler. */
  readonly wrong: readonly (WrongResult & { readonly case: string })[]
  readonly seconds: number
}

const SHARED = 3

/**
 * Tunes a kernel (without steps) on several data: each is searched by itself, then the fastest of each are measured on all, and
 * a small decision tree over what choices can ask (sizes, statistics, the device) says which of them is for which data. It is
 * judged leave-one-out, beside the best single schedule, which stays where the tree is no better on data it has not seen, and
 * what runs unasked, which stays where neither is.
 * ```ts
 * const { schedule, generalised, standard } = await tuneAll(kernel, { cases: [{ name: 'a', inputs }, …], device, trials: 64 })
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

type Found<T> = T | SptError | undefined
const isDone = <T>(found: Found<T>): found is T => found !== undefined && !(found instanceof SptError)

/** What comes of each, or what its data are refused for; nothing of those that an abort came before. */
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

/** Rooms whose refusals are not of one case's data: of the records, the server, the device, and of what was asked. */
const ELSEWHERE = ['api', 'records', 'studies', 'device']
const ASKED = ['search/strategy', 'search/budget', 'search/seed', 'search/lock', 'search/no-model']

const isOfData = ({ diagnostics: [d] }: SptError): boolean =>
  !ELSEWHERE.includes(d!.code.split('/')[0]!) && !ASKED.includes(d!.code)

interface Work {
  readonly studies: readonly CaseStudy[]
  readonly shared: SharedCandidates
  readonly searched: readonly Found<Searched & { readonly standard: string | null }>[]
  readonly comparedOf: readonly Found<Compared>[]
  readonly start: number
}

function resultOf(kernel: Kernel, options: TuneAllOptions, work: Work): TuneAllResult {
  const { studies, shared, searched, comparedOf, start } = work
  const all = shared.all
  const candidates = all.map((c, k) => candidateOf(c, k, studies, comparedOf))
  const timeOf = (k: number, n: number): number | null => candidates[k]!.timings[n]?.median ?? null
  const places = studies.map((_, n) => n)
  const bestOf = (n: number): number | null =>
    candidates.reduce<number | null>((best, _, k) => {
      const [time, least] = [timeOf(k, n), best === null ? null : timeOf(best, n)]
      return time !== null && (least === null || time < least) ? k : best
    }, null)
  const usable = places.filter((n) => bestOf(n) !== null)
  const standards = searched.map((s) =>
    isDone(s) && s.standard !== null ? all.findIndex((c) => c.key === s.standard) : null,
  )
  const evidence = {
    measures: questionsOf(kernel).measures,
    cases: usable.map((n) => ({
      group: studies[n]!.group,
      values: (comparedOf[n] as Compared).values,
      standard: standards[n] ?? null,
    })),
    candidates: all.map(
      (c, k): EvidenceCandidate => ({
        times: usable.map((n) => timeOf(k, n)),
        requires: c.kernel.compilation.loops.facts ?? [],
        foundOn: c.foundOn,
      }),
    ),
  }
  // Where it was ended in the middle, what is missing is not what cannot run.
  const isWhole =
    usable.length > 0 && places.every((n) => comparedOf[n] !== undefined || searched[n] instanceof SptError)
  const generalised = isWhole ? generalise(evidence, options) : null
  const verdict = generalised?.verdict ?? null
  const kept = verdict && verdict !== 'unasked' ? generalised![verdict] : null
  const takenBy = (judged: Judged | undefined, at: number): number | null =>
    judged && at >= 0
      ? (decided(judged.rules, evidence.candidates, evidence.cases[at]!.values) ?? null)
      : null
  return {
    cases: places.map((n): TunedCase => {
      const at = usable.indexOf(n)
      const found = searched[n]
      return {
        name: studies[n]!.name,
        group: studies[n]!.group,
        refused: refusalOf(found) ?? refusalOf(comparedOf[n]),
        search: isDone(found) ? found : null,
        values: at >= 0 ? Object.fromEntries(evidence.cases[at]!.values) : null,
        best: bestOf(n),
        standard: standards[n] ?? null,
        choice: takenBy(generalised?.choice, at),
        single: takenBy(generalised?.single, at),
      }
    }),
    candidates,
    generalised,
    standard: generalised?.standard ?? null,
    verdict,
    schedule:
      kept &&
      choiceText(
        kernel,
        kept.rules,
        all.map((c, k) => ({ ...c, requires: evidence.candidates[k]!.requires })),
      ),
    wrong: places.flatMap((n) => {
      const [a, b] = [searched[n], comparedOf[n]]
      const own = [...(isDone(a) ? a.wrong : []), ...(isDone(b) ? b.wrong : [])]
      return own.map((w) => ({ ...w, case: studies[n]!.name }))
    }),
    seconds: (performance.now() - start) / 1000,
  }
}

const refusalOf = (found: Found<unknown>): Diagnostic | null =>
  found instanceof SptError ? found.diagnostics[0]! : null

/** One that is wrong anywhere is out everywhere. */
function candidateOf(
  { kernel, call, foundOn }: SharedCandidate,
  k: number,
  studies: readonly CaseStudy[],
  comparedOf: readonly Found<Compared>[],
): TunedCandidate {
  const outcomes = studies.map((_, n) => {
    const found = comparedOf[n]
    return isDone(found) ? found.outcomes[k] : undefined
  })
  const isWrong = outcomes.some((o) => o?.status === 'wrong')
  const timings = outcomes.map((o) => (!isWrong && o?.status === 'measured' ? o.timing : null))
  return { kernel, call, foundOn: foundOn && [...foundOn], timings }
}

/** Of one search, which of all: inputs are those of cases, and there is no report of one. */
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
