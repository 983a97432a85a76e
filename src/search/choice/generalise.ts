/** Derives one dispatch from measurements on several data sets, validated on unseen data. */
import { CANNOT_RUN, type Evidence, lossesOf, type Part, whole, without } from './conditions.ts'
import { type GrowOptions, grow, leavesOf, type Rule, rulesOf, selectCandidate, type Tree } from './rules.ts'

/** `gain`: 0.01. `leaves`: 8. `groups`: 2. */
export type GeneraliseOptions = Partial<GrowOptions>

/** Distance of schedules from the best ones. */
export interface Loss {
  /** Mean of log(time / best) over the cases on which they run. */
  readonly mean: number
  /** Number of cases on which the selected candidate cannot run. */
  readonly rejected: number
}

export interface JudgedRules {
  readonly rules: readonly Rule[]
  /** Loss on the cases from which the rules were derived. */
  readonly fittedLoss: Loss
  /** Cross-validated loss of each group under rules fitted without it; `null` if there is only one group. */
  readonly heldOutLoss: Loss | null
}

export interface Generalisation {
  readonly tree: Tree
  readonly dispatch: JudgedRules
  /** The single candidate with the least loss. */
  readonly single: JudgedRules
  /** True if the choice beats the single schedule in cross-validation by at least the gain required of a leaf. */
  readonly isBetter: boolean
  /** Loss of the default schedule, which is not fitted to the data; `null` if it is unknown for some case. */
  readonly defaultLoss: Loss | null
  /** The best of the three in cross-validation; fitted rules must save as much as a leaf. */
  readonly verdict: Verdict
}

export type Verdict = 'dispatch' | 'single' | 'default'

const GAIN = 0.01
const LEAVES = 8
/** Minimum number of groups per leaf: a leaf grown from a single matrix cannot be validated. */
const GROUPS = 2

/**
 * Grows a decision tree over the conditions of choices, and compares it with the best single candidate by leave-one-group-out
 * cross-validation; the times and the candidates found only on the group are left out.
 */
export function generalise(evidence: Evidence, options: GeneraliseOptions = {}): Generalisation {
  const { gain = GAIN, leaves = LEAVES, groups = GROUPS } = options
  const losses = lossesOf(evidence)
  const grown = (part: Part, most: number): Tree =>
    grow(evidence, losses, part, { gain, leaves: most, groups })
  const choice = judgeRules(evidence, losses, (part) => rulesOf(grown(part, leaves), evidence, losses, part))
  // If its requirements on sizes fail, there is no fallback.
  const single = judgeRules(evidence, losses, (part) => leavesOf(grown(part, 1)))
  const tree = grown(whole(evidence), leaves)
  const isBetter = isLess(choice.heldOutLoss, single.heldOutLoss, gain)
  const standard = standardLoss(evidence, losses)
  const selected = isBetter ? choice : single
  const isWorth = standard === null || isLess(selected.heldOutLoss ?? selected.fittedLoss, standard, gain)
  const verdict = isWorth ? (isBetter ? 'dispatch' : 'single') : 'default'
  return { tree, dispatch: choice, single, isBetter, defaultLoss: standard, verdict }
}

function standardLoss({ cases }: Evidence, losses: readonly Float64Array[]): Loss | null {
  const all = cases.flatMap(({ standard }, c) =>
    standard === undefined ? [] : [standard === null ? CANNOT_RUN : losses[standard]![c]!],
  )
  return all.length === cases.length ? lossFrom(all) : null
}

type Make = (part: Part) => readonly Rule[]

function judgeRules(evidence: Evidence, losses: readonly Float64Array[], make: Make): JudgedRules {
  const { cases, candidates } = evidence
  const rules = make(whole(evidence))
  const lossOf = (by: readonly Rule[], c: number): number => {
    const k = selectCandidate(by, candidates, cases[c]!.values)
    return k === undefined ? CANNOT_RUN : losses[k]![c]!
  }
  const groups = [...new Set(cases.map((c) => c.group))]
  const leftOut = groups.flatMap((group) => {
    const part = without(evidence, group)
    if (part.cases.length === 0 || part.candidates.length === 0) return []
    const others = make(part)
    return [...cases.keys()].filter((c) => cases[c]!.group === group).map((c) => lossOf(others, c))
  })
  return {
    rules,
    fittedLoss: lossFrom(cases.map((_, c) => lossOf(rules, c))),
    heldOutLoss: leftOut.length > 0 ? lossFrom(leftOut) : null,
  }
}

function lossFrom(losses: readonly number[]): Loss {
  const run = losses.filter((l) => l < CANNOT_RUN)
  return {
    mean: run.reduce((n, l) => n + l, 0) / Math.max(1, run.length),
    rejected: losses.length - run.length,
  }
}

/** True if loss `a` is smaller than `b` by at least `by`; a candidate that cannot run is worse than any slow one. */
const isLess = (a: Loss | null, b: Loss | null, by: number): boolean =>
  a !== null &&
  b !== null &&
  (a.rejected < b.rejected || (a.rejected === b.rejected && a.mean + by <= b.mean))
