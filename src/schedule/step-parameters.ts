/** Refusals of steps tell the parameters of their schedule: who gives these may not know its text. */
import { SptError } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import type { Env } from './step-fields.ts'

/** `t = 2`: the parameters that a step mentions, or else all of its schedule. */
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

/** What `work` refuses, with the parameters that led to it. */
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
