/** Lists and sets that formats of schedules and spaces take from the data. */
import { type Choice, isNested, type Schedule, type Space, type SpaceStep } from '../elaborate/index.ts'
import type { AnyFormat } from '../ir/format.ts'
import { remembered } from '../ir/remembered.ts'

export interface UsedData {
  readonly kind: 'list' | 'set'
  /** The tensor that the format stores; `null`: a part, or any. */
  readonly tensor: string | null
}

type Texts = Pick<Schedule, 'formats' | 'uses'>

/** By the names under which they are bound: those that `as` passes, else those of the format's parameters. */
export function usedData(
  schedules: Iterable<Schedule>,
  spaces: Iterable<Space> = [],
): ReadonlyMap<string, UsedData> {
  const found = new Map<string, UsedData>()
  const seen = new Set<Texts>()
  const look = (of: Texts): void => {
    if (seen.has(of)) return
    seen.add(of)
    for (const [{ buffer }, { format, args }] of of.formats)
      format.params.forEach(({ name, kind }, k) => {
        const given = args[k]
        if (kind === 'list' || kind === 'set')
          found.set(typeof given === 'string' ? given : name, { kind, tensor: buffer.name })
      })
    for (const used of of.uses.values()) look(used)
  }
  for (const s of schedules) look(s)
  for (const s of spaces) for (const { names } of withNested(s)) look(names)
  return found
}

/** Of the schedules that a choice is among. */
export const usedByChoice = remembered((c: Choice) =>
  usedData(c.branches.flatMap((b) => b.calls.map((call) => call.schedule))),
)

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
