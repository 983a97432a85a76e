/** Steps of schedules of called kernels in TypeScript: `schedule('layer.gpu at encoder[3]', 8)`. */
import { withSources } from '../../ast/diagnostics/diagnostic.ts'
import { parseSteps } from '../../schedule/steps/language.ts'
import { type Step, stepsOf } from '../../schedule/steps/resolve.ts'
import type { Surroundings } from './instruction-lookup.ts'

/** @throws SptError `schedule/unknown-call`, `schedule/callee`, `check/…`, `parse/…` */
export function calleeSteps(
  name: string,
  args: readonly (number | undefined)[],
  { sources, scheduleWith }: Surroundings,
): readonly Step[] {
  const [schedule, at] = name.split(' at ')
  const source = {
    name: 'schedule',
    text: `use ${schedule}(${args.join()})${at === undefined ? '' : ` at ${at}`}`,
  }
  return withSources({ sources: new Map([...sources, [source.name, source]]) }, () =>
    stepsOf(scheduleWith(parseSteps(source))),
  )
}
