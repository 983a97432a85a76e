/** A tree as the rules of a `choose` block: the first rule that holds selects the candidate. */

import { factText } from '../../analysis/integers/facts.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { scheduleText } from '../text.ts'
import type { ScheduleCall } from '../types.ts'
import {
  type Condition,
  conditionText,
  type Evidence,
  type EvidenceCandidate,
  holds,
  isMet,
  type Part,
  type Values,
} from './conditions.ts'
import type { StoredRule } from './table-text.ts'
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

// Rules as a choice of the language, with the schedules that it chooses among.

/** A schedule that can be chosen. */
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
