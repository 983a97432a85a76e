/** A tree as a choice writes it: a list of rules, of which the first that holds decides. */
import { type Condition, holds, type Values } from './conditions.ts'
import { type Evidence, type EvidenceCandidate, isMet, type Part } from './evidence.ts'
import type { Tree } from './tree.ts'

/** Under these conditions, and where sizes are such as its schedule requires: a candidate. */
export interface Rule {
  /** All of them; none: whatever the data are. */
  readonly conditions: readonly Condition[]
  readonly candidate: number
}

/**
 * The rules of a tree. The last has no conditions and requires nothing: where the tree's last leaf does, the candidate that
 * loses least on these cases of those that require nothing.
 */
export function rulesOf(
  tree: Tree,
  { candidates }: Evidence,
  losses: readonly Float64Array[],
  part: Part,
): Rule[] {
  const rules = leavesOf(tree)
  const requires = (k: number): boolean => candidates[k]!.requires.length > 0
  if (!requires(rules.at(-1)!.candidate)) return rules
  const free = part.candidates.filter((k) => !requires(k))
  const sums = free.map((k) => part.cases.reduce((n, c) => n + losses[k]![c]!, 0))
  const fallback = free[sums.indexOf(Math.min(...sums))]
  return fallback === undefined ? rules : [...rules, { conditions: [], candidate: fallback }]
}

/** A rule for each leaf. What does not hold of a condition needs no saying: rules before it have had their turn. */
export function leavesOf(tree: Tree, path: readonly Condition[] = []): Rule[] {
  if (tree.kind === 'leaf') return [{ conditions: path, candidate: tree.candidate }]
  const { condition, then, otherwise } = tree
  return [...leavesOf(then, narrowed(path, condition)), ...leavesOf(otherwise, path)]
}

/** Merges two conditions on one measure: the later is narrower, because it splits the remainder of the earlier. */
const narrowed = (path: readonly Condition[], condition: Condition): readonly Condition[] => [
  ...path.filter((c) => c.measure !== condition.measure),
  condition,
]

/** The candidate for some data; `undefined` where no rule holds. */
export const decided = (
  rules: readonly Rule[],
  candidates: readonly EvidenceCandidate[],
  values: Values,
): number | undefined =>
  rules.find(
    ({ conditions, candidate }) =>
      conditions.every((c) => holds(c, values)) && isMet(candidates[candidate]!, values),
  )?.candidate
