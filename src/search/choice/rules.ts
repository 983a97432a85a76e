/** A tree as the rules of a `choose` block: the first rule that holds selects the candidate. */
import { type Condition, holds, type Values } from './conditions.ts'
import { type Evidence, type EvidenceCandidate, isMet, type Part } from './evidence.ts'
import type { Tree } from './tree.ts'

/** Selects a candidate under these conditions, if the sizes satisfy the requirements of its schedule. */
export interface Rule {
  /** All of them must hold; empty: always. */
  readonly conditions: readonly Condition[]
  readonly candidate: number
}

/**
 * The rules of a tree. The last rule has no conditions and no requirements: if the last leaf's candidate has
 * requirements, a rule for the best candidate without requirements on these cases is added.
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

/** One rule per leaf. Negated conditions are implicit, because earlier rules take precedence. */
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

/** The candidate for some data; `undefined` if no rule holds. */
export const decided = (
  rules: readonly Rule[],
  candidates: readonly EvidenceCandidate[],
  values: Values,
): number | undefined =>
  rules.find(
    ({ conditions, candidate }) =>
      conditions.every((c) => holds(c, values)) && isMet(candidates[candidate]!, values),
  )?.candidate
