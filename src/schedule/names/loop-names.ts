/** Names of loops in the language. */
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { Body } from '../../ir/statements/tree.ts'

/** Returns the name of each loop by its variable; `nest.name` if several loops have the name. */
export function loopNames(body: Body): ReadonlyMap<string, string> {
  const loops = loopsOf(body)
  const counts = new Map<string, number>()
  for (const { name } of loops) counts.set(name, (counts.get(name) ?? 0) + 1)
  return new Map(loops.map((l) => [l.var, counts.get(l.name)! > 1 ? `${l.nest}.${l.name}` : l.name]))
}
