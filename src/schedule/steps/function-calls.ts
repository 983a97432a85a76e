/** Calls of schedule functions: the environment of the function's steps. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Schedule } from '../../elaborate/index.ts'
import { valueIn } from '../../elaborate/schedules/uses.ts'
import { memoize } from '../../ir/memoize.ts'
import { type CallNames, FunctionNames, type NewNames } from '../names/function-names.ts'
import { valuesOf } from './schedule-values.ts'
import { integer } from './step-arguments.ts'
import {
  type Env,
  instructionOf,
  memoryOf,
  type Passed,
  parametersOf,
  typeNamed,
  usedBy,
} from './step-fields.ts'

/** Returns the environment of a function's steps. Arguments are evaluated in the environment of the caller. */
export function callEnv(step: Ast.UseStep, used: Schedule, env: Env, names: NewNames): Env {
  const passed = new Map<string, Passed>()
  const loops = new Map<string, Ast.LoopRef>()
  const others = new Map<string, Ast.Ident>()
  const numbers = used.params.map(({ name, kind }, k): number | undefined => {
    const e = step.args[k]
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
    names: new FunctionNames(call, env.names),
    constant: (e) => env.names.constant(e),
    path,
    calls: [step.span, ...env.calls],
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
