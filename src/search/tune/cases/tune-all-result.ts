/** Result of tuning on several data sets: the generated dispatch, and its performance on each case. */
import type { Kernel } from '../../../api/kernels/kernel.ts'
import { type Diagnostic, SptError } from '../../../ast/diagnostics/diagnostic.ts'
import { type EvidenceCandidate, questionsOf } from '../../choice/conditions.ts'
import {
  type Generalisation,
  type GeneraliseOptions,
  generalise,
  type JudgedRules,
  type Loss,
  type Verdict,
} from '../../choice/generalise.ts'
import { choiceText, type DispatchText, selectCandidate } from '../../choice/rules.ts'
import type { WrongResult } from '../../loop/tally.ts'
import { summarizeSamples } from '../../measuring/median-interval.ts'
import type { ScheduleCall, Timing } from '../../types.ts'
import type { CaseComparison, CaseSearchResult, CaseStudy } from './case-study.ts'
import type { SharedCandidate, SharedCandidates } from './shared-candidates.ts'

/** A schedule that was evaluated on all cases. */
export interface TunedCandidate {
  readonly kernel: Kernel
  /** Schedule call in the program; `null` if it has no name there. */
  readonly call: ScheduleCall | null
  /** Groups of cases on which it was found; `null` for the unscheduled kernel. */
  readonly tunedOn: readonly string[] | null
  /** Timing for each case; `null` if it could not be measured there. */
  readonly timings: readonly (Timing | null)[]
}

/** Result of one case. Candidates are given by index. */
export interface TunedCase {
  readonly name: string
  readonly group: string
  /** Error that excluded the case from the result: its data could not be used. */
  readonly rejection: Diagnostic | null
  readonly search: CaseSearchResult | null
  /** Values of the quantities that conditions use: sizes, statistics, the device. */
  readonly values: Readonly<Record<string, number>> | null
  /** The fastest candidate. */
  readonly best: number | null
  /** Candidate of the default schedule; `null` as well if the kernel's choice rejects the data. */
  readonly defaultSchedule: number | null
  /** Candidate that the choice selects. */
  readonly dispatch: number | null
  /** The best single schedule; `null` if it cannot run on the case. */
  readonly single: number | null
}

export interface TuneAllResult {
  readonly cases: readonly TunedCase[]
  readonly candidates: readonly TunedCandidate[]
  /** The decision tree and the single best schedule; `null` if the tuning ended too early. */
  readonly generalisation: Generalisation | null
  /** Loss of the default schedule. */
  readonly defaultLoss: Loss | null
  /** The best of these three on unseen data; `null` as for `generalised`. */
  readonly verdict: Verdict | null
  /** Source of the choice or of the single schedule; `null` also if the default schedule is the best. */
  readonly schedule: DispatchText | null
  /** Wrong results, which are bugs of the compiler. */
  readonly wrong: readonly (WrongResult & { readonly case: string })[]
  readonly seconds: number
}

/** Result of a case, or the error that rejected its data; undefined if it was aborted before. */
export type CaseResult<T> = T | SptError | undefined
export const isSuccess = <T>(result: CaseResult<T>): result is T =>
  result !== undefined && !(result instanceof SptError)

export interface TuningData {
  readonly studies: readonly CaseStudy[]
  readonly shared: SharedCandidates
  readonly searches: readonly CaseResult<CaseSearchResult & { readonly standard: string | null }>[]
  readonly comparisons: readonly CaseResult<CaseComparison>[]
  readonly start: number
}

export function resultOf(kernel: Kernel, options: GeneraliseOptions, work: TuningData): TuneAllResult {
  const { studies, shared, searches, comparisons, start } = work
  const list = shared.list
  const candidates = list.map((c, k) => candidateOf(c, k, studies, comparisons))
  const timeOf = (k: number, n: number): number | null => candidates[k]!.timings[n]?.median ?? null
  const caseIndices = studies.map((_, n) => n)
  const bestOf = (n: number): number | null =>
    candidates.reduce<number | null>((best, _, k) => {
      const [time, bestTime] = [timeOf(k, n), best === null ? null : timeOf(best, n)]
      return time !== null && (bestTime === null || time < bestTime) ? k : best
    }, null)
  const measured = caseIndices.filter((n) => bestOf(n) !== null)
  const standards = searches.map((s) =>
    isSuccess(s) && s.standard !== null ? list.findIndex((c) => c.key === s.standard) : null,
  )
  const evidence = {
    measures: questionsOf(kernel).measures,
    cases: measured.map((n) => ({
      group: studies[n]!.group,
      values: (comparisons[n] as CaseComparison).values,
      standard: standards[n] ?? null,
    })),
    candidates: list.map(
      (c, k): EvidenceCandidate => ({
        times: measured.map((n) => timeOf(k, n)),
        requires: c.kernel.compilation.loops.facts ?? [],
        foundOn: c.foundOn,
      }),
    ),
  }
  // After an abort, missing outcomes do not mean that a candidate cannot run.
  const isComplete =
    measured.length > 0 &&
    caseIndices.every((n) => comparisons[n] !== undefined || searches[n] instanceof SptError)
  const generalised = isComplete ? generalise(evidence, options) : null
  const verdict = generalised?.verdict ?? null
  const selected = verdict && verdict !== 'default' ? generalised![verdict] : null
  const selectedBy = (judged: JudgedRules | undefined, index: number): number | null =>
    judged && index >= 0
      ? (selectCandidate(judged.rules, evidence.candidates, evidence.cases[index]!.values) ?? null)
      : null
  return {
    cases: caseIndices.map((n): TunedCase => {
      const index = measured.indexOf(n)
      const search = searches[n]
      return {
        name: studies[n]!.name,
        group: studies[n]!.group,
        rejection: errorOf(search) ?? errorOf(comparisons[n]),
        search: isSuccess(search) ? search : null,
        values: index >= 0 ? Object.fromEntries(evidence.cases[index]!.values) : null,
        best: bestOf(n),
        defaultSchedule: standards[n] ?? null,
        dispatch: selectedBy(generalised?.dispatch, index),
        single: selectedBy(generalised?.single, index),
      }
    }),
    candidates,
    generalisation: generalised,
    defaultLoss: generalised?.defaultLoss ?? null,
    verdict,
    schedule:
      selected &&
      choiceText(
        kernel,
        selected.rules,
        list.map((c, k) => ({ ...c, requires: evidence.candidates[k]!.requires })),
      ),
    wrong: caseIndices.flatMap((n) => {
      const [a, b] = [searches[n], comparisons[n]]
      const wrong = [...(isSuccess(a) ? a.wrong : []), ...(isSuccess(b) ? b.wrong : [])]
      return wrong.map((w) => ({ ...w, case: studies[n]!.name }))
    }),
    seconds: (performance.now() - start) / 1000,
  }
}

const errorOf = (result: CaseResult<unknown>): Diagnostic | null =>
  result instanceof SptError ? result.diagnostics[0]! : null

/** A candidate's timings on all cases. A candidate with a wrong result on any case has none. */
function candidateOf(
  { kernel, call, foundOn }: SharedCandidate,
  k: number,
  studies: readonly CaseStudy[],
  comparisons: readonly CaseResult<CaseComparison>[],
): TunedCandidate {
  const outcomes = studies.map((_, n) => {
    const result = comparisons[n]
    return isSuccess(result) ? result.outcomes[k] : undefined
  })
  const isWrong = outcomes.some((o) => o?.status === 'wrong')
  const timings = outcomes.map((o) => {
    if (isWrong) return null
    // It can run there, if slowly, so it must not count as one that cannot.
    if (o?.status === 'bounded') return summarizeSamples([o.atMost])
    return o?.status === 'measured' ? o.timing : null
  })
  return { kernel, call, tunedOn: foundOn && [...foundOn], timings }
}
