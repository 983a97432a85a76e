/** Lookup of declared memories and instructions by name, for steps in TypeScript. */

import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { parseExpression } from '../../ast/parse/parse.ts'
import { throwErrors } from '../../elaborate/diagnostics.ts'

import type { Choice, Family, Named, Schedule, Space } from '../../elaborate/index.ts'
import { constantArguments } from '../../elaborate/index.ts'
import { sameData } from '../../ir/expressions/structural-equality.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import type { Instr, Memory } from '../../ir/instructions/instr.ts'
import { memoize } from '../../ir/memoize.ts'
import type { StageObserver } from '../../run/compile/compile.ts'
import type { Sources } from '../../run/compile/program.ts'
import type { FormatInput } from '../../schedule/coordinates/as/format-inputs.ts'
import { formatInputs, inputsOfFormats } from '../../schedule/coordinates/as/format-inputs.ts'
import type { CacheScope, MemoryScope } from '../../schedule/steps/arguments.ts'
import type { LoopStep } from '../../schedule/steps/step-data.ts'

interface Declarations {
  readonly memories: ReadonlyMap<string, Family<Memory>>
  readonly instrs: ReadonlyMap<string, Family<Instr>>
}

/** The scope of a cached copy: `shared`, `register`, or a declared memory. */
export function placeOf(
  place: MemoryScope,
  { memories }: Declarations,
): { readonly scope: CacheScope; readonly memory?: Memory } {
  // An undefined scope is rejected by the step.
  if (place === 'shared' || place === 'register' || place === undefined) return { scope: place }
  const memory =
    typeof place === 'string' ? instanceOf('memory', place, memories, ['shared', 'register']) : place
  return memory
    ? { scope: memory.scope, memory }
    : unknown('memory', String(place), ['shared', 'register', ...memories.keys()])
}

export function instrOf(name: string | Instr, { instrs }: Declarations): Instr {
  return typeof name === 'string' ? instanceOf('instruction', name, instrs) : name
}

/** Parses an instance: `tile`, or `tile(f16, 64)`. */
function instanceOf<T>(
  what: string,
  text: string,
  families: ReadonlyMap<string, Family<T>>,
  more: readonly string[] = [],
): T {
  const use = families.has(text) ? { name: text, args: [] } : callOf(text)
  const family = use && families.get(use.name)
  if (!family) return unknown(what, use?.name ?? text, [...more, ...families.keys()])
  const span = { source: text, start: 0, end: text.length }
  const named = { name: { name: family.name, span }, args: use.args, span }
  const args = throwErrors(() => constantArguments(named, family))
  return family.instantiate(args!)
}

function callOf(text: string): { readonly name: string; readonly args: readonly Ast.Expr[] } | undefined {
  if (!text.includes('(')) return undefined
  const e = parseExpression({ name: text, text })
  return e.kind === 'call' ? { name: e.fn.name, args: e.args } : undefined
}

const unknown = (what: string, name: string, candidates: readonly string[]): never =>
  failWith(`api/unknown-${what}`, `the program has no ${what} ${name}`, {
    expected: candidates.length > 0 ? `one of ${candidates.join(', ')}` : `a program that declares one`,
    lookup: { name, candidates },
  })

/**
 * Rejects device code in steps from other programs or JSON: instructions and memories must equal those that the program names. Throws
 * SptError `check/instruction-text`.
 */
export function refuseTextsOf(steps: readonly LoopStep[], own: Named): void {
  for (const s of steps) {
    const brought =
      'instr' in s
        ? isOneOf(s.instr, own.instrs)
        : !('memory' in s) || s.memory?.opaque === undefined || isOneOf(s.memory, own.memories)
    if (brought) continue
    failWith('check/instruction-text', `${s.kind} contains device code, which is not allowed here`, {
      expected:
        'instructions and memories that the program itself names: it was loaded with instructions: false',
      hint: 'import the declaring file of the package',
    })
  }
}

/** Returns true if a family has an instance that is equal in all fields. */
function isOneOf<T extends Instr | Memory>(given: T, families: ReadonlySet<Family<T>>): boolean {
  const [name] = /^\w+/.exec(String(given?.name)) ?? []
  return [...families].some((f) => {
    if (f.name !== name) return false
    try {
      return sameData(instanceOf('instance', given.name, new Map([[f.name, f]])), given)
    } catch (e) {
      if (e instanceof SptError) return false
      throw e
    }
  })
}

/** Names in a kernel's scope: formats, schedules, memories and instructions of its program. */
export interface Surroundings extends Declarations {
  readonly formats: ReadonlyMap<string, AnyFormat>
  readonly schedules: ReadonlyMap<string, Schedule>
  /** Dispatches: schedules that are selected when data are bound. */
  readonly choices: ReadonlyMap<string, Choice>
  readonly spaces: ReadonlyMap<string, Space>
  /** A schedule of the kernel with these steps, over the names of the program. */
  readonly scheduleWith: (steps: readonly Ast.Step[]) => Schedule
  readonly sources: Sources
  /** The program does not declare the kernel: it was derived by a call. */
  readonly isDerived?: true
  /** Memories and instructions whose device code steps may contain; `null` for no restriction. */
  readonly own: Named | null
  /** Callback for the kernels after every step and pass; null if there is none. */
  readonly observer: StageObserver | null
}

/** List and set arguments of the formats of schedules, dispatches and spaces, by name. */
export const formatInputsIn = memoize((s: Surroundings) =>
  formatInputs(s.schedules.values(), s.spaces.values(), s.choices.values()),
)

export const allFormatInputsIn = memoize(
  (s: Surroundings): ReadonlyMap<string, FormatInput> =>
    new Map([...inputsOfFormats(s.formats.values()), ...formatInputsIn(s)]),
)
