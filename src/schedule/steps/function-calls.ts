/** Calls of schedule functions: the environment of the function's steps. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { inOrder } from '../../elaborate/formats/format-uses.ts'
import type { Schedule } from '../../elaborate/index.ts'
import { valueIn } from '../../elaborate/schedules/uses.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Names } from '../names/part-names.ts'
import { valuesOf } from './parameter-values.ts'
import { integer } from './step-arguments.ts'
import type { Env, Passed } from './step-fields.ts'
import { instructionOf, memoryOf, parametersOf, typeNamed, usedBy } from './step-fields.ts'

/** Returns the environment of a function's steps. Arguments are evaluated in the environment of the caller. */
export function callEnv(step: Ast.UseStep, used: Schedule, env: Env, names: NewNames): Env {
  const passed = new Map<string, Passed>()
  const loops = new Map<string, Ast.LoopRef>()
  const others = new Map<string, Ast.Ident>()
  const args = inOrder(step.args, used.params)
  const numbers = used.params.map(({ name, kind }, k): number | undefined => {
    const e = args[k]?.value
    if (!e) return undefined
    const value = valueIn(e, kind)
    if (value?.kind === 'integer') return integer(value.value, env)
    if (value?.kind === 'loop') loops.set(name, value.loop)
    else if (value?.kind === 'name') others.set(name, value.name)
    else if (value?.kind === 'instance' && value.of === 'memory')
      passed.set(name, { kind: 'memory', fields: memoryOf(value.use, env) })
    else if (value?.kind === 'instance')
      passed.set(name, { kind: 'instruction', instr: instructionOf(value.use, env) })
    else if (e.kind === 'name') passed.set(name, { kind: 'type', name: typeNamed(e.name, env) })
    return undefined
  })
  const path = `${env.path}/${step.span.source}:${step.span.start}`
  const given = new Map(step.results.map((r, k) => [used.results[k]!, r.name]))
  const call: CallNames = { loops, others, made: names.of(path, used.made, given) }
  return {
    schedule: used,
    values: valuesOf(used, numbers),
    passed,
    names: functionNames(call, env.names),
    constant: env.names.constant,
    path,
    calls: [{ span: step.span, text: 'used here' }, ...env.calls],
    callParameters: () => [...parametersOf(step, env), ...env.callParameters()],
  }
}

/** A step of a block or of a function that the block uses. */
export interface CalledStep {
  readonly step: Ast.Step
  readonly schedule: Schedule
  /** Returns the environment of the step from the environment of the block. */
  readonly inside: (block: Env) => Env
}

/** Returns the steps with the steps of functions in place of their uses. */
export const withoutCalls = (
  steps: readonly Ast.Step[],
  schedule: Schedule,
  names: NewNames,
): readonly CalledStep[] =>
  steps.flatMap((step): readonly CalledStep[] => {
    const used = step.kind === 'use' ? usedBy(step, schedule) : undefined
    if (step.kind !== 'use' || used?.kernel !== null) return [{ step, schedule, inside: (block) => block }]
    const called = memoize((block: Env) => callEnv(step, used, block, names))
    return withoutCalls(used.steps, used, names).map((s) => ({
      ...s,
      inside: (block) => s.inside(called(block)),
    }))
  })

// Names inside of a schedule function: parameters stand for the loops, loop nests and buffers of the call, and
// new names for names that are unique in the schedule.

/** The names that a call passes. */
interface CallNames {
  readonly loops: ReadonlyMap<string, Ast.LoopRef>
  /** Loop nests and buffers. */
  readonly others: ReadonlyMap<string, Ast.Ident>
  /** The new names of the function, as the caller has them. */
  readonly made: ReadonlyMap<string, string>
}

function functionNames({ loops, others, made }: CallNames, outer: Names): Names {
  /** The loop nest of each new loop, if the steps name it. */
  const nests = new Map<string, Ast.Ident>()
  /** The loop nest of the loop that was resolved last: new loops of a step follow its loops. */
  let nest: Ast.Ident | null = null
  const other = ({ name, span }: Ast.Ident): Ast.Ident => ({
    name: others.get(name)?.name ?? made.get(name) ?? name,
    span,
  })
  /** Returns the caller's name of a loop. `copy.i` with a loop parameter i is the loop of that name in the loop nest `copy`. */
  const resolved = (r: Ast.LoopRef): Ast.LoopRef => {
    const { name, span } = r.name
    const given = loops.get(name)
    const own = { name: given?.name.name ?? made.get(name) ?? name, span }
    if (r.nest) nest = other(r.nest)
    else nest = given ? given.nest : (nests.get(name) ?? null)
    return { nest, name: own, span: r.span }
  }
  return {
    ...outer,
    loop: (r) => outer.loop(resolved(r)),
    loops: (r) => outer.loops(resolved(r)),
    nest: (name) => outer.nest(other(name)),
    buffer: (name) => outer.buffer(other(name)),
    fresh({ name, span }, of) {
      if (of === 'new loop' && nest) nests.set(name, nest)
      return outer.fresh({ name: made.get(name) ?? name, span }, of)
    },
    constant: (e) => outer.constant({ ...e, object: other(e.object) }),
  }
}

/** The new names of function calls in a schedule: those of the function, numbered if the schedule has the same name. */
export class NewNames {
  readonly #taken: Set<string>
  /** The names of each call. Steps for each part resolve a call again. */
  readonly #calls = new Map<string, ReadonlyMap<string, string>>()

  constructor(taken: Iterable<string>) {
    this.#taken = new Set(taken)
  }

  /** Returns the caller's names for new names. `given` has the results that the call names. */
  of(call: string, made: Iterable<string>, given: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
    let names = this.#calls.get(call)
    if (!names) {
      names = new Map([...made].map((name) => [name, given.get(name) ?? this.#free(name)]))
      this.#calls.set(call, names)
      // Inside of the call, these words have another meaning.
      for (const name of names.keys()) this.#taken.add(name)
    }
    return names
  }

  #free(name: string): string {
    let free = name
    for (let k = 2; this.#taken.has(free); k++) free = `${name}${k}`
    this.#taken.add(free)
    return free
  }
}
