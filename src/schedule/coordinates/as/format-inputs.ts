/** Lists and sets that the formats of schedules, choices and spaces take from the data. */

import { resultOrError, SptError } from '../../../ast/diagnostics/diagnostic.ts'
import { type Choice, isNested, type Schedule, type Space, type SpaceStep } from '../../../elaborate/index.ts'
import type { AnyFormat } from '../../../ir/formats/format.ts'
import { memoize } from '../../../ir/memoize.ts'
import { stepsOf } from '../../steps/resolve.ts'

export interface FormatInput {
  readonly kind: 'list' | 'set'
  /** The tensor that the format stores; null for a part, or for any tensor. */
  readonly tensor: string | null
}

type Texts = Pick<Schedule, 'formats' | 'uses'>
/** A format with its arguments; for a list or set, the argument is its name in the data. */
type Use = { readonly format: AnyFormat; readonly args: readonly unknown[] }

/** Returns lists and sets by the names under which they are bound: passed by `as`, otherwise of the parameters. */
export function formatInputs(
  schedules: Iterable<Schedule>,
  spaces: Iterable<Space> = [],
  choices: Iterable<Choice> = [],
): ReadonlyMap<string, FormatInput> {
  const found = new Map<string, FormatInput>()
  const seen = new Set<Texts>()
  const take = (tensor: string, { format, args }: Use): void =>
    format.params.forEach(({ name, kind }, k) => {
      const given = args[k]
      if (kind === 'list' || kind === 'set')
        found.set(typeof given === 'string' ? given : name, { kind, tensor })
    })
  const ask = ({ statistics }: Pick<Choice, 'statistics'>): void => {
    for (const s of statistics.values()) if (s.kind === 'fill_ratio') take(s.tensor, s)
  }
  const look = (of: Texts): void => {
    if (seen.has(of)) return
    seen.add(of)
    for (const [{ buffer }, use] of of.formats) take(buffer.name, use)
    for (const used of of.uses.values()) look(used)
  }
  for (const s of schedules) look(s)
  for (const s of spaces) {
    ask(s)
    for (const { names } of withNested(s)) look(names)
  }
  for (const c of choices) {
    ask(c)
    for (const b of c.branches) for (const call of b.calls) look(call.schedule)
  }
  return found
}

/** Returns the lists and sets of a choice's schedules and statistics. */
export const formatInputsOfChoice = memoize((c: Choice) => formatInputs([], [], [c]))

function withNested(space: Space): readonly Space[] {
  const inside = (steps: readonly SpaceStep[]): readonly Space[] =>
    steps.flatMap((s) =>
      s.kind === 'options'
        ? s.options.flatMap(({ body }) => (isNested(body) ? withNested(body.space) : inside(body)))
        : [],
    )
  return [space, ...inside(space.body)]
}

/** Returns the lists and sets of formats that tensors may be stored in, by the names of the formats' parameters. */
export const inputsOfFormats = (formats: Iterable<AnyFormat>): ReadonlyMap<string, FormatInput> =>
  new Map(
    [...formats].flatMap(({ params }) =>
      params.flatMap(({ name, kind }): [string, FormatInput][] =>
        kind === 'list' || kind === 'set' ? [[name, { kind, tensor: null }]] : [],
      ),
    ),
  )

/** Formats that schedules store tensors in, with the arguments that they pass: formats that are known to be useful. */
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
