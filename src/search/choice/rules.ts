/** A tree as the rules of a `choose` block: the first rule that holds selects the candidate. */

import type { Kernel } from '../../api/kernels/kernel.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { factText } from '../../ir/print/fact-text.ts'
import { scheduleText } from '../text.ts'
import type { ScheduleCall } from '../types.ts'
import type { Condition, Evidence, EvidenceCandidate, Measure, Part, Values } from './conditions.ts'
import { conditionText, holds, isMet, ratio } from './conditions.ts'
import type { StoredRule } from './table-text.ts'

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
export const selectCandidate = (
  rules: readonly Rule[],
  candidates: readonly EvidenceCandidate[],
  values: Values,
): number | undefined =>
  rules.find(
    ({ conditions, candidate }) =>
      conditions.every((c) => holds(c, values)) && isMet(candidates[candidate]!, values),
  )?.candidate

// Rules as a choice of the language, with the schedules that it chooses among.

export interface Choosable extends Pick<EvidenceCandidate, 'requires'> {
  readonly kernel: Kernel
  /** Schedule call of the candidate in the program; `null` if it has no name there. */
  readonly call: ScheduleCall | null
}

/** A dispatch in the syntax of the language. */
export interface DispatchText {
  readonly name: string
  /** The whole text; for a single rule, that schedule called `name`. */
  readonly text: string
  /** The schedules that have no name in the program, which the rules call. */
  readonly declarations: string
  readonly rules: readonly StoredRule[]
}

/** Rules as a dispatch `kernel.name`. Its text reads back in the program of the kernel. */
export function choiceText(
  kernel: Kernel,
  rules: readonly Rule[],
  candidates: readonly Choosable[],
): DispatchText {
  const taken = new Set([...kernel.schedules, ...kernel.dispatches, ...kernel.spaces])
  const fresh = (base: string): string => {
    let name = base
    for (let n = 2; taken.has(name); n++) name = `${base}_${n}`
    taken.add(name)
    return name
  }
  const name = fresh('tuned')
  const isSingle = rules.length === 1
  const called = new Map<number, string>()
  const written: string[] = []
  for (const { candidate } of rules) {
    if (called.has(candidate)) continue
    const { call, kernel: own } = candidates[candidate]!
    if (call) called.set(candidate, appliedName(call.name, call.args))
    else {
      const of = isSingle ? name : fresh(`${name}_${written.length + 1}`)
      written.push(scheduleText(own, of))
      called.set(candidate, of)
    }
  }
  const stored = rules.map(({ conditions, candidate }, k): StoredRule => {
    const all = [
      ...conditions.map(conditionText),
      ...candidates[candidate]!.requires.map(factText).filter((t, n, list) => list.indexOf(t) === n),
    ]
    const isLast = k === rules.length - 1 && all.length === 0
    return { ...(!isLast && { when: all.join(' and ') }), calls: called.get(candidate)! }
  })
  const declarations = written.map((text) => `${text}\n`).join('')
  const branches = stored.map(
    ({ when, calls }) => `  ${when === undefined ? 'otherwise' : `when (${when})`} ${calls}\n`,
  )
  const text = isSingle
    ? scheduleText(candidates[rules[0]!.candidate]!.kernel, name)
    : `${declarations}schedule ${kernel.name}.${name} choose {\n${branches.join('')}}\n`
  return { name, text, declarations, rules: stored }
}

// Decision trees that assign candidates to data with minimal total loss.

export type Tree =
  | { readonly kind: 'leaf'; readonly candidate: number }
  | { readonly kind: 'split'; readonly condition: Condition; readonly then: Tree; readonly otherwise: Tree }

export interface GrowOptions {
  /** Minimum gain of a leaf: the saving in log(time / best), averaged over all cases. */
  readonly gain: number
  readonly leaves: number
  /** Minimum number of groups with cases in a leaf. */
  readonly groups: number
}

/** A node while the tree grows. */
interface Node {
  readonly cases: readonly number[]
  readonly candidate: number
  /** The best split. */
  readonly split: Split | null
  /** After it was split: where the condition holds, and elsewhere. */
  children?: readonly [then: Node, otherwise: Node]
}

interface Split {
  readonly condition: Condition
  readonly gain: number
  readonly then: readonly number[]
  readonly otherwise: readonly number[]
}

/** Splits the leaf that saves most, until no split saves enough. */
export function grow(
  evidence: Evidence,
  losses: readonly Float64Array[],
  part: Part,
  { gain, leaves: maxLeaves, groups }: GrowOptions,
): Tree {
  const leafOf = (cases: readonly number[]): Node => {
    const sums = part.candidates.map((k) => cases.reduce((n, c) => n + losses[k]![c]!, 0))
    const loss = Math.min(...sums)
    const split = bestSplit(evidence, losses, part.candidates, cases, { loss, groups })
    return { cases, candidate: part.candidates[sums.indexOf(loss)]!, split }
  }
  const root = leafOf(part.cases)
  const leaves = [root]
  while (leaves.length < maxLeaves) {
    const next = leaves.reduce((best, leaf) =>
      (leaf.split?.gain ?? 0) > (best.split?.gain ?? 0) ? leaf : best,
    )
    if (!next.split || next.split.gain < gain * part.cases.length) break
    next.children = [leafOf(next.split.then), leafOf(next.split.otherwise)]
    leaves.splice(leaves.indexOf(next), 1, ...next.children)
  }
  return treeOf(root)
}

function treeOf({ candidate, split, children }: Node): Tree {
  if (!children) return { kind: 'leaf', candidate }
  const [then, otherwise] = children
  return { kind: 'split', condition: split!.condition, then: treeOf(then), otherwise: treeOf(otherwise) }
}

/** The split with the greatest gain; for ties, the earliest measure. */
function bestSplit(
  { measures, cases: all }: Evidence,
  losses: readonly Float64Array[],
  candidates: readonly number[],
  cases: readonly number[],
  { loss, groups }: { readonly loss: number; readonly groups: number },
): Split | null {
  let best: Split | null = null
  for (const measure of measures) {
    if (!cases.every((c) => isKnown(measure, all[c]!.values))) continue
    const order = [...cases].sort((a, b) => ratio(measure, all[a]!.values) - ratio(measure, all[b]!.values))
    const above = candidates.map((k) => order.reduce((n, c) => n + losses[k]![c]!, 0))
    const below = new Float64Array(candidates.length)
    for (let at = 1; at < order.length; at++) {
      const [low, high] = [order[at - 1]!, order[at]!]
      for (const [n, k] of candidates.entries()) {
        below[n]! += losses[k]![low]!
        above[n]! -= losses[k]![low]!
      }
      const threshold = between(ratio(measure, all[low]!.values), ratio(measure, all[high]!.values))
      if (threshold === null) continue
      const condition = { measure, above: threshold }
      const gain = loss - Math.min(...below) - Math.min(...above)
      // Differences within rounding errors are not gains.
      if (gain <= (best?.gain ?? 0) + 1e-9) continue
      const [otherwise, then] = [order.slice(0, at), order.slice(at)]
      if (groupsOf(otherwise, all) < groups || groupsOf(then, all) < groups) continue
      const tells = (c: number): boolean => holds(condition, all[c]!.values)
      if (then.every(tells) && !otherwise.some(tells)) best = { condition, gain, then, otherwise }
    }
  }
  return best
}

const groupsOf = (cases: readonly number[], all: Evidence['cases']): number =>
  new Set(cases.map((c) => all[c]!.group)).size

const isKnown = ({ of, per }: Measure, values: ReadonlyMap<string, number>): boolean =>
  values.has(of) && (per === null || values.has(per))

/** Digits that distinguish any two numbers. */
const MAX_DIGITS = 17

/** A number with few digits near the middle, on a logarithmic scale, of those that are `low` or more and below `high`. */
export function between(low: number, high: number): number | null {
  if (!(low < high)) return null
  const middle = low > 0 ? Math.sqrt(low * high) : (low + high) / 2
  for (let digits = 1; digits <= MAX_DIGITS; digits++) {
    const short = Number(middle.toPrecision(digits))
    if (short >= low && short < high) return short
  }
  return low
}
