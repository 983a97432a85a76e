/** Values of the parameters of schedules and spaces. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { nameText } from '../../ast/diagnostics/expect-argument.ts'
import { quantity } from '../../ast/print/quantity.ts'
import type { Schedule } from '../../elaborate/index.ts'
import { evaluate } from '../../ir/values/evaluate.ts'

/** Returns the value of each size among the parameters, in order. Throws `schedule/arguments` or `schedule/argument`. */
export function valuesOf(
  schedule: Pick<Schedule, 'name' | 'params'>,
  args: readonly (number | undefined)[],
  what: 'schedule' | 'space' = 'schedule',
): ReadonlyMap<string, number> {
  const values = new Map<string, number>()
  if (args.length > schedule.params.length)
    failWith('schedule/arguments', `${what} ${schedule.name} is given ${quantity(args.length, 'argument')}`, {
      expected: `at most ${schedule.params.length}: (${schedule.params.map((p) => p.name).join(', ')})`,
      hint: 'leave out the other arguments',
    })
  schedule.params.forEach((p, k) => {
    if (p.kind !== 'size') return
    const given = args[k]
    if (given !== undefined) {
      if (!Number.isSafeInteger(given))
        failWith(
          'schedule/argument',
          `an argument is not an integer: ${p.name} of ${what} ${schedule.name} is ${nameText(given)}`,
          { expected: 'an integer' },
        )
      values.set(p.name, given)
    } else if (p.default) values.set(p.name, evaluate(p.default, values))
    else
      failWith('schedule/arguments', `${what} ${schedule.name} needs a value for ${p.name}`, {
        expected: `(${schedule.params.map((q) => q.name).join(', ')})`,
        hint: `give ${p.name} a value`,
      })
  })
  return values
}
