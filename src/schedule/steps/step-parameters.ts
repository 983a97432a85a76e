/** Parameters in the errors of steps: callers who set the parameters of a schedule may not know its text. */
import { type Span, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Env } from './step-fields.ts'

/**
 * Returns the parameters that a step mentions, such as `t = 2`; all parameters of its schedule if the step mentions no
 * parameter.
 */
export function parametersOf(step: Ast.Step, { values }: Pick<Env, 'values'>): readonly string[] {
  const mentioned = new Set<string>()
  const look = (x: unknown): void => {
    if (typeof x !== 'object' || x === null) return
    const { kind, name } = x as { readonly kind?: unknown; readonly name?: unknown }
    if (kind === 'name' && typeof name === 'string' && values.has(name)) mentioned.add(name)
    for (const y of Object.values(x)) look(y)
  }
  look(step)
  const told = [...values].filter(([name]) => mentioned.size === 0 || mentioned.has(name))
  return told.map(([name, value]) => `${name} = ${value}`)
}

/** The place of a step in schedules, for its errors. */
export interface Where {
  /** Returns the parameters of the step's schedule, such as `t = 2`. */
  readonly parameters: () => readonly string[]
  /** The places of the calls of functions, the innermost first. */
  readonly calls: readonly Span[]
}

/** Returns the result of `work`, and adds the parameters and the calls of functions to its errors. */
export function withParameters<T>(where: Where | undefined, work: () => T): T {
  try {
    return work()
  } catch (e) {
    if (!(e instanceof SptError) || !where) throw e
    const told = where.parameters()
    const suffix = told.length > 0 ? `, where ${told.join(', ')}` : ''
    const calls = where.calls.map((span) => ({ span, text: 'used here' }))
    const made = new SptError(
      e.diagnostics.map((d) => ({
        ...d,
        message: `${d.message}${suffix}`,
        ...(calls.length > 0 && { labels: [...(d.labels ?? []), ...calls] }),
      })),
    )
    made.sources = e.sources
    throw made
  }
}
