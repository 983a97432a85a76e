/** Formats that schedules store tensors in, with the arguments that they pass: formats that are known to be useful. */
import { resultOrError, SptError } from '../../../ast/diagnostics/diagnostic.ts'
import type { Choice, Schedule } from '../../../elaborate/index.ts'
import type { AnyFormat } from '../../../ir/formats/format.ts'
import { stepsOf } from '../../steps/resolve.ts'

export interface UsedFormat {
  readonly format: AnyFormat
  readonly args: readonly number[]
}

/**
 * Returns the formats of schedules with default arguments, and as choices call them, without duplicates. An argument
 * that depends on data has its default value.
 */
export function usedFormats(schedules: Iterable<Schedule>, choices: Iterable<Choice>): readonly UsedFormat[] {
  const calls = [...choices].flatMap((c) => c.branches.flatMap((b) => b.calls))
  const all = [
    ...[...schedules].map((schedule) => ({ schedule, args: [] })),
    ...calls.map(({ schedule, args }) => ({
      schedule,
      args: args.map((a) => (a?.kind === 'const' ? a.value : undefined)),
    })),
  ]
  const used = new Map<AnyFormat, Map<string, UsedFormat>>()
  for (const { schedule, args } of all) {
    const steps = resultOrError(() => stepsOf(schedule, args))
    for (const s of steps instanceof SptError ? [] : steps) {
      if (s.stage !== 1 || s.step.kind !== 'as') continue
      const { format, args: given } = s.step
      const numbers = given.filter((a) => typeof a === 'number')
      if (numbers.length < given.length) continue
      const known = used.get(format) ?? new Map<string, UsedFormat>()
      used.set(format, known.set(numbers.join(), { format, args: numbers }))
    }
  }
  return [...used.values()].flatMap((of) => [...of.values()])
}
