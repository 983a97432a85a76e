/** Steps of schedules of called kernels in TypeScript: `schedule('layer.gpu at encoder[3]', 8)`. */
import { failWith, withSources } from '../../ast/diagnostics/diagnostic.ts'
import { nameText } from '../../ast/diagnostics/expect-argument.ts'
import { parseSteps } from '../../schedule/steps/language.ts'
import { type Step, stepsOf } from '../../schedule/steps/resolve.ts'
import type { Surroundings } from './instruction-lookup.ts'

/** @throws SptError `schedule/argument`, `schedule/unknown-call`, `schedule/callee`, `check/…`, `parse/…` */
export function calleeSteps(
  name: string,
  args: readonly (number | undefined)[],
  { sources, scheduleWith }: Surroundings,
): readonly Step[] {
  const [schedule, at] = name.split(' at ') as [string, string?]
  const plain = schedule.replace(/\(.*/s, '')
  if (plain !== schedule)
    failWith('schedule/argument', `the name of a schedule contains arguments: ${schedule}`, {
      expected: 'integers after the name, in the order of the parameters',
      hint: `schedule('${plain}${at === undefined ? '' : ` at ${at}`}', 1)`,
    })
  for (const [k, a] of args.entries())
    if (!Number.isSafeInteger(a))
      failWith(
        'schedule/argument',
        `an argument is not an integer: argument ${k + 1} of schedule ${schedule} is ${nameText(a)}`,
        { expected: 'an integer' },
      )
  const source = {
    name: 'schedule',
    text: `use ${schedule}(${args.join()})${at === undefined ? '' : ` at ${at}`}`,
  }
  return withSources({ sources: new Map([...sources, [source.name, source]]) }, () =>
    stepsOf(scheduleWith(parseSteps(source))),
  )
}
