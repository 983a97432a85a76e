/** Conversion of steps from text to data: current names of loops, loop nests and buffers, and values of arguments. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Argument, Family, Schedule } from '../../elaborate/index.ts'
import type { Memory } from '../../ir/instructions/instr.ts'
import type { Names } from '../names/part-names.ts'
import { integer, type Known } from './step-arguments.ts'

/** The environment of a step. */
export interface Env extends Known {
  readonly schedule: Schedule
  readonly names: Names
}

/** Returns the fields of a step, in the order of its text. */
export const fieldsOf = (args: readonly Ast.StepArgument[], env: Env): Readonly<Record<string, unknown>> =>
  Object.assign({}, ...args.map((a) => (typeof a === 'string' ? {} : fieldOf(a.field, a.value, env))))

const fieldOf = (field: string, v: Ast.StepValue, env: Env): object =>
  v.kind === 'instance' && v.of === 'memory' ? memoryOf(v.use, env) : { [field]: dataOf(v, env) }

function dataOf(v: Ast.StepValue, env: Env): unknown {
  switch (v.kind) {
    case 'loop':
      return env.names.loop(v.loop)
    case 'name':
      return nameOf(v.of, v.name, env.names)
    case 'integer':
      return integer(v.value, env)
    case 'word':
      return v.means
    case 'instance':
      return instanceOf(env.schedule.instrs.get(v.use.name.name)!, v.use, env)
    case 'list':
      return v.items.flatMap((x): readonly unknown[] =>
        x.kind === 'loop' ? env.names.loops(x.loop) : [dataOf(x, env)],
      )
    case 'binding':
      return { loop: env.names.loop(v.loop), to: v.to }
  }
}

function nameOf(of: Ast.StepName, name: Ast.Ident, names: Names): string {
  switch (of) {
    case 'buffer':
      return names.buffer(name)
    case 'nest':
      return names.nest(name)
    case 'size':
      return name.name
    case 'new loop':
    case 'new buffer':
      return names.fresh(name, of)
  }
}

function memoryOf(use: Ast.Instance, env: Env): object {
  const { name } = use.name
  if (name === 'shared' || name === 'register') return { scope: name }
  const declared: Memory = instanceOf(env.schedule.memories.get(name)!, use, env)
  return { scope: declared.scope, memory: declared }
}

/** Returns the memory or instruction that a step names. Its arguments have been checked, except for integer values. */
function instanceOf<T>(family: Family<T>, use: Ast.Instance, env: Env): T {
  const args = use.args.map((e, k): Argument => {
    const types = family.params[k]!.types
    const type = types?.find((t) => e.kind === 'name' && e.name === t)
    return type ?? integer(e, env)
  })
  return family.instantiate(args, use.span)
}
