/** Source locations of launches, for device error messages. */
import { position, SourceText } from '../../ast/diagnostics/source-frame.ts'
import { type Source, type Span, sourceOf } from '../../ast/diagnostics/span.ts'
import type { ModuleText } from '../../backends/emit.ts'
import type { Launch, Plan } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'

/** Sources of the program by name, into which spans point. */
export type Sources = ReadonlyMap<string, Source>

/** Adds the source line of the first statement of each launch, if known: `program.spt:15`. */
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
      return { ...entry, place: `${source.name}:${position(new SourceText(source.text), span.start).line}` }
    }),
  }))
}

function firstSpan(launch: Launch): Span | undefined {
  let found: Span | undefined
  walkStmts(launch.body, (s) => {
    // Loops may have become hardware indices; stores and reductions exist on every device.
    if (s.kind === 'store' || s.kind === 'reduce') found ??= s.span
  })
  return found
}
