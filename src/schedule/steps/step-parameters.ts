/** Parameters in the errors of steps: callers who set the parameters of a schedule may not know its text. */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
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

/** Returns the result of `work`, and adds the parameters to the messages of its errors. */
export function withParameters<T>(where: (() => readonly string[]) | undefined, work: () => T): T {
  try {
    return work()
  } catch (e) {
    const told = e instanceof SptError && where ? where() : []
    if (!(e instanceof SptError) || told.length === 0) throw e
    const made = new SptError(
      e.diagnostics.map((d) => ({ ...d, message: `${d.message}, where ${told.join(', ')}` })),
    )
    made.sources = e.sources
    throw made
  }
}
