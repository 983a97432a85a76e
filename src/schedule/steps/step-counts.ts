/**
 * The number of steps of a schedule, counted before any step is applied: nested schedules may have too many to expand.
 */
import { fail, type Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { printStep } from '../../ast/print/print.ts'
import type { Schedule } from '../../elaborate/index.ts'
import { countText, MAX_STEPS } from '../../ir/code-size-budgets.ts'

const counts = new WeakMap<Schedule, number>()
/**
 * Returns the number of steps of a schedule; steps for each part count once. A `use` counts as a step, too, because the
 * used schedule may be empty.
 */
export function countOf(schedule: Schedule): number {
  const known = counts.get(schedule)
  if (known !== undefined) return known
  const all = (steps: readonly Ast.Step[]): number => steps.reduce((n, s) => n + one(s), 0)
  const one = (s: Ast.Step): number =>
    s.kind === 'use' ? 1 + countOf(usedBy(s, schedule)) : s.kind === 'each' ? all(s.steps) : 1
  const count = all(schedule.steps)
  counts.set(schedule, count)
  return count
}

export const usedBy = (step: Ast.UseStep, schedule: Schedule): Schedule =>
  schedule.uses.get(step.schedule.name)!

export function checkCount(schedule: Schedule): void {
  const count = countOf(schedule)
  if (count <= MAX_STEPS) return
  const uses = schedule.steps.filter((s) => s.kind === 'use')
  const [most] = [...uses].sort((a, b) => countOf(usedBy(b, schedule)) - countOf(usedBy(a, schedule)))
  tooManySteps(
    `schedule ${schedule.name} makes ${countText(count)} steps${most ? `, ${countText(countOf(usedBy(most, schedule)))} of them by \`${printStep(most)}\`` : ''}`,
    most?.span ?? schedule.span,
    'use a schedule once',
  )
}

export function tooManySteps(message: string, span: Span, hint: string): never {
  fail({
    code: 'schedule/too-many-steps',
    message,
    span,
    expected: `at most ${countText(MAX_STEPS)} steps`,
    hint,
  })
}
