/** Declared memories and instructions by name, for steps that TypeScript takes. */
import { fail } from '../ast/diagnostic.ts'
import type { Instr, Memory } from '../ir/instr.ts'
import type { CacheScope } from '../schedule/steps.ts'

/** What a program declares or imports. */
export interface Declarations {
  readonly memories: ReadonlyMap<string, Memory>
  readonly instrs: ReadonlyMap<string, Instr>
}

/** Where a copy lives: `shared`, `register`, or a declared memory. */
export function placeOf(
  place: CacheScope | string | Memory,
  { memories }: Declarations,
): { readonly scope: CacheScope; readonly memory?: Memory } {
  // What is no place at all is refused with the step.
  if (place === 'shared' || place === 'register' || place === undefined) return { scope: place }
  const memory = typeof place === 'string' ? memories.get(place) : place
  return memory
    ? { scope: memory.scope, memory }
    : unknown('memory', String(place), ['shared', 'register', ...memories.keys()])
}

export function instrOf(name: string | Instr, { instrs }: Declarations): Instr {
  if (typeof name !== 'string') return name
  return instrs.get(name) ?? unknown('instruction', name, [...instrs.keys()])
}

const unknown = (what: string, name: string, candidates: readonly string[]): never =>
  fail({
    code: `api/unknown-${what}`,
    message: `the program has no ${what} ${name}`,
    expected: candidates.length > 0 ? `one of ${candidates.join(', ')}` : `a program that declares one`,
    lookup: { name, candidates },
  })
