/** Lists and sets that formats of schedules, choices and spaces take from the data. */
import { type Choice, isNested, type Schedule, type Space, type SpaceStep } from '../elaborate/index.ts'
import type { AnyFormat } from '../ir/format.ts'
import { remembered } from '../ir/remembered.ts'

export interface UsedData {
  readonly kind: 'list' | 'set'
  /** The tensor that the format stores; `null`: a part, or any. */
  readonly tensor: string | null
}

type Texts = Pick<Schedule, 'formats' | 'uses'>
/** A format, and for a list or set the name that is passed. */
type Use = { readonly format: AnyFormat; readonly args: readonly unknown[] }

/** By the names under which they are bound: those that `as` passes, else those of the format's parameters. */
export function usedData(
  schedules: Iterable<Schedule>,
  spaces: Iterable<Space> = [],
  choices: Iterable<Choice> = [],
): ReadonlyMap<string, UsedData> {
  const found = new Map<string, UsedData>()
  const seen = new Set<Texts>()
  const take = (tensor: string, { format, args }: Use): void =>
    format.params.forEach(({ name, kind }, k) => {
      const given = args[k]
      if (kind === 'list' || kind === 'set')
        found.set(typeof given === 'string' ? given : name, { kind, tensor })
    })
  const ask = ({ statistics }: Pick<Choice, 'statistics'>): void => {
    for (const s of statistics.values()) if (s.kind === 'covered') take(s.tensor, s)
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

/** Of the schedules that a choice is among, and of what it asks. */
export const usedByChoice = remembered((c: Choice) => usedData([], [], [c]))

/** A space, and those that it uses. */
function withNested(space: Space): readonly Space[] {
  const inside = (steps: readonly SpaceStep[]): readonly Space[] =>
    steps.flatMap((s) =>
      s.kind === 'options'
        ? s.options.flatMap(({ body }) => (isNested(body) ? withNested(body.space) : inside(body)))
        : [],
    )
  return [space, ...inside(space.body)]
}

/** The same of formats that somebody may store tensors in, by the names of their parameters. */
export const dataOfFormats = (formats: Iterable<AnyFormat>): ReadonlyMap<string, UsedData> =>
  new Map(
    [...formats].flatMap(({ params }) =>
      params.flatMap(({ name, kind }): [string, UsedData][] =>
        kind === 'list' || kind === 'set' ? [[name, { kind, tensor: null }]] : [],
      ),
    ),
  )
