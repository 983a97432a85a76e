/** Where launches come from in the user's text: for messages of devices. */
import { position, Text } from '../ast/source-frame.ts'
import { type Source, type Span, sourceOf } from '../ast/span.ts'
import type { ModuleText } from '../backends/emit.ts'
import type { Launch, Plan } from '../ir/loops.ts'
import { walkStmts } from '../ir/tree.ts'

/** Texts by name. */
export type Sources = ReadonlyMap<string, Source>

/** The texts with the place of the first statement of each launch, as far as it is known: `program.spt:15`. */
export function withPlaces(texts: readonly ModuleText[], plan: Plan, sources: Sources): ModuleText[] {
  const launches = plan.steps.filter((s) => s.kind === 'launch')
  let next = 0
  return texts.map((text) => ({
    ...text,
    entries: text.entries.map((entry) => {
      const launch = launches[next++]
      const span = launch && firstSpan(launch)
      const source = span && sourceOf(span, sources)
      if (!source) return entry
      return { ...entry, place: `${source.name}:${position(new Text(source.text), span.start).line}` }
    }),
  }))
}

function firstSpan(launch: Launch): Span | undefined {
  let found: Span | undefined
  walkStmts(launch.body, (s) => {
    // Loops may be gone, their threads being the hardware's: what they do is there on every device.
    if (s.kind === 'store' || s.kind === 'reduce') found ??= s.span
  })
  return found
}
