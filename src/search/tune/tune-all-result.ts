/** Result of tuning on several data sets: the choice, and its performance on each case. */
import type { Kernel } from '../../api/kernel.ts'
import { type Diagnostic, SptError } from '../../ast/diagnostic.ts'
import { questionsOf } from '../choice/conditions.ts'
import type { EvidenceCandidate } from '../choice/evidence.ts'
import {
  type Generalisation,
  type GeneraliseOptions,
  generalise,
  type JudgedRules,
  type Loss,
  type Verdict,
} from '../choice/generalise.ts'
import { decided } from '../choice/rules.ts'
import { choiceText } from '../choice/text.ts'
import { summarizeSamples } from '../measuring/median-interval.ts'
import type { WrongResult } from '../tally.ts'
import type { ScheduleCall, Timing } from '../types.ts'
import type { CaseStudy, Compared, Searched } from './case-study.ts'
import type { SharedCandidate, SharedCandidates } from './shared-candidates.ts'

/** A schedule that was tried on all cases. */
export interface TunedCandidate {
  readonly kernel: Kernel
  /** Schedule call in the program; `null` if it has no name there. */
  readonly call: ScheduleCall | null
  /** Groups of cases that it was found on; `null`: the kernel as written. */
  readonly tunedOn: readonly string[] | null
  /** For each case; `null`: it could not be measured there. */
  readonly timings: readonly (Timing | null)[]
}

/** Result of one case. Candidates are given by index. */
export interface TunedCase {
  readonly name: string
  readonly group: string
  /** Why it has no part in the result: its data could not be used. */
  readonly rejection: Diagnostic | null
  readonly search: Searched | null
  /** Values of the quantities that conditions use: sizes, statistics, the device. */
  readonly values: Readonly<Record<string, number>> | null
  /** The fastest candidate. */
  readonly best: number | null
  /** Candidate of the default schedule; `null` as well if the kernel's choice rejects the data. */
  readonly defaultSchedule: number | null
  /** Candidate that the choice selects. */
  readonly dispatch: number | null
  /** The best single schedule; `null` where it cannot run. */
  readonly single: number | null
}

export interface TuneAllResult {
  readonly cases: readonly TunedCase[]
  readonly candidates: readonly TunedCandidate[]
  /** The choice and the single best schedule; `null` where it ended before all was tried on all. */
  readonly generalisation: Generalisation | null
  /** Loss of the default schedule. */
  readonly defaultLoss: Loss | null
  /** The best of these three on data that it has not seen; `null` as `generalisation`. */
  readonly verdict: Verdict | null
  /**
   * Source of the choice (`schedule k.tuned choose { … }`) or of the single schedule; `null` also if the default schedule is
   * the best.
   */
  readonly schedule: { readonly name: string; readonly text: string } | null
  /** Bugs of the compiler. */
  readonly wrong: readonly (WrongResult & { readonly case: string })[]
  readonly seconds: number
}

/** Result of a case, or the error that rejected its data; undefined if it was aborted before. */
export type Found<T> = T | SptError | undefined
export const isDone = <T>(found: Found<T>): found is T => found !== undefined && !(found instanceof SptError)

export interface Work {
  readonly studies: readonly CaseStudy[]
  readonly shared: SharedCandidates
  readonly searched: readonly Found<Searched & { readonly standard: string | null }>[]
  readonly comparedOf: readonly Found<Compared>[]
  readonly start: number
}

export function resultOf(kernel: Kernel, options: GeneraliseOptions, work: Work): TuneAllResult {
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
  const kept = verdict && verdict !== 'default' ? generalised![verdict] : null
  const takenBy = (judged: JudgedRules | undefined, at: number): number | null =>
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
        rejection: refusalOf(found) ?? refusalOf(comparedOf[n]),
        search: isDone(found) ? found : null,
        values: at >= 0 ? Object.fromEntries(evidence.cases[at]!.values) : null,
        best: bestOf(n),
        defaultSchedule: standards[n] ?? null,
        dispatch: takenBy(generalised?.dispatch, at),
        single: takenBy(generalised?.single, at),
      }
    }),
    candidates,
    generalisation: generalised,
    defaultLoss: generalised?.defaultLoss ?? null,
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
  const timings = outcomes.map((o) => {
    if (isWrong) return null
    // It runs there, if slowly: what cannot run would be left out elsewhere as well.
    if (o?.status === 'bounded') return summarizeSamples([o.atMost])
    return o?.status === 'measured' ? o.timing : null
  })
  return { kernel, call, tunedOn: foundOn && [...foundOn], timings }
}
