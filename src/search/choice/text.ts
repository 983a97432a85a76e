/** Rules as a choice of the language, with the schedules that it chooses among. */

import { factText } from '../../analysis/integers/facts.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { appliedName } from '../../ast/print/applied-name.ts'
import { scheduleText } from '../text.ts'
import type { ScheduleCall } from '../types.ts'
import { conditionText } from './conditions.ts'
import type { EvidenceCandidate } from './evidence.ts'
import type { Rule } from './rules.ts'

/** A schedule that can be chosen. */
export interface Choosable extends Pick<EvidenceCandidate, 'requires'> {
  readonly kernel: Kernel
  /** Schedule call of the candidate in the program; `null` if it has no name there. */
  readonly call: ScheduleCall | null
}

/**
 * Text that reads back in the program of the kernel: schedules that it has no name for, written out, and the choice
 * `kernel.name`. One rule without conditions is a schedule alone.
 */
export function choiceText(
  kernel: Kernel,
  rules: readonly Rule[],
  candidates: readonly Choosable[],
): { readonly name: string; readonly text: string } {
  const taken = new Set([...kernel.schedules, ...kernel.dispatches, ...kernel.spaces])
  const fresh = (base: string): string => {
    let name = base
    for (let n = 2; taken.has(name); n++) name = `${base}_${n}`
    taken.add(name)
    return name
  }
  const name = fresh('tuned')
  if (rules.length === 1) return { name, text: scheduleText(candidates[rules[0]!.candidate]!.kernel, name) }
  const called = new Map<number, string>()
  const written: string[] = []
  for (const { candidate } of rules) {
    if (called.has(candidate)) continue
    const { call, kernel: own } = candidates[candidate]!
    if (call) called.set(candidate, appliedName(call.name, call.args))
    else {
      const of = fresh(`${name}_${written.length + 1}`)
      written.push(scheduleText(own, of))
      called.set(candidate, of)
    }
  }
  const branches = rules.map(({ conditions, candidate }, k) => {
    const all = [
      ...conditions.map(conditionText),
      ...candidates[candidate]!.requires.map(factText).filter((t, n, list) => list.indexOf(t) === n),
    ]
    const isLast = k === rules.length - 1 && all.length === 0
    return `  ${isLast ? 'otherwise' : `when (${all.join(' and ')})`} ${called.get(candidate)}\n`
  })
  return {
    name,
    text: `${written.join('\n')}${written.length > 0 ? '\n' : ''}schedule ${kernel.name}.${name} choose {\n${branches.join('')}}\n`,
  }
}
