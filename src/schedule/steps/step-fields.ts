/** Conversion of steps from text to data: current names of loops, loop nests and buffers, and values of arguments. */
import { fail, type Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Argument, Family, Schedule } from '../../elaborate/index.ts'
import type { Instr, Memory } from '../../ir/instructions/instr.ts'
import type { Names } from '../names/part-names.ts'
import { integer, type Known } from './step-arguments.ts'

/** The environment of a step. */
export interface Env extends Known {
  readonly schedule: Schedule
  readonly names: Names
  /** The memories, instructions and types that a call passes to a function. */
  readonly passed: ReadonlyMap<string, Passed>
  /** Identifies the call of a function, and its callers; empty outside of functions. */
  readonly path: string
  /** The places of the calls, the innermost first. */
  readonly calls: readonly Span[]
  /** Returns the parameters that the calls mention, such as `t = 2`, the innermost first. */
  readonly callParameters: () => readonly string[]
}

export type Passed =
  | { readonly kind: 'memory'; readonly fields: object }
  | { readonly kind: 'instr'; readonly instr: Instr }
  | { readonly kind: 'type'; readonly name: string }

/** Returns the type that a name in a function stands for; other names themselves. */
export function typeNamed(name: string, { passed }: Env): string {
  const type = passed.get(name)
  return type?.kind === 'type' ? type.name : name
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
      return instructionOf(v.use, env)
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

/** Returns the instruction of a step or an argument. */
export function instructionOf(use: Ast.Instance, env: Env): Instr {
  const given = env.passed.get(use.name.name)
  return given?.kind === 'instr' ? given.instr : instanceOf(env.schedule.instrs.get(use.name.name)!, use, env)
}

/** Returns the fields of a step for its memory. */
export function memoryOf(use: Ast.Instance, env: Env): object {
  const { name } = use.name
  const given = env.passed.get(name)
  if (given?.kind === 'memory') return given.fields
  if (name === 'shared' || name === 'register') return { scope: name }
  const declared: Memory = instanceOf(env.schedule.memories.get(name)!, use, env)
  return { scope: declared.scope, memory: declared }
}

/** Returns the memory or instruction that a step names. Its arguments have been checked, except for integer values. */
function instanceOf<T>(family: Family<T>, use: Ast.Instance, env: Env): T {
  const args = use.args.map((e, k): Argument => {
    const { name, types } = family.params[k]!
    if (!types) return integer(e, env)
    const given = e.kind === 'name' ? typeNamed(e.name, env) : ''
    const type = types.find((t) => t === given)
    if (type) return type
    return fail({
      code: 'schedule/argument',
      message: `${name} of ${family.name} is a type, and cannot be ${given}`,
      span: e.span,
      expected: types.join(' or '),
    })
  })
  return family.instantiate(args, use.span)
}
