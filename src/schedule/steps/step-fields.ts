/** Conversion of steps from text to data: current names of loops, loop nests and buffers, and values of arguments. */
import { type Diagnostic, failAt, type Label, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { withDiagnostics } from '../../ast/diagnostics/with-diagnostics.ts'
import type { ExpandedCall } from '../../ast/nodes/expanded-calls.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { namesIn } from '../../ast/nodes/walk.ts'
import { printStep } from '../../ast/print/print.ts'
import type { Argument, Family, Schedule } from '../../elaborate/index.ts'
import { countText, MAX_STEPS } from '../../ir/code-size-budgets.ts'
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
  /** The places of the calls of functions and kernels, the innermost first. */
  readonly calls: readonly Label[]
  /** The call of a kernel whose schedule has the steps. */
  readonly call?: ExpandedCall | undefined
  /** Returns the parameters that the calls mention, such as `t = 2`, the innermost first. */
  readonly callParameters: () => readonly string[]
}

export type Passed =
  | { readonly kind: 'memory'; readonly fields: object }
  | { readonly kind: 'instruction'; readonly instr: Instr }
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
      return names.size(name)
    case 'new loop':
    case 'new buffer':
      return names.fresh(name, of)
  }
}

/** Returns the instruction of a step or an argument. */
export function instructionOf(use: Ast.Instance, env: Env): Instr {
  const given = env.passed.get(use.name.name)
  return given?.kind === 'instruction'
    ? given.instr
    : instanceOf(env.schedule.instrs.get(use.name.name)!, use, env)
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
    return failAt('schedule/argument', e.span, {
      message: `${name} of ${family.name} is a type, and cannot be ${given}`,
      expected: types.join(' or '),
    })
  })
  return family.instantiate(args, use.span)
}

// The number of steps of a schedule, counted before any step is applied: nested schedules may have too many
// to expand.

const counts = new WeakMap<Schedule, number>()
/**
 * Returns the number of steps of a schedule; steps for each part count once. A `use` counts as a step, too, because the
 * used schedule may be empty.
 */
export function countOf(schedule: Schedule): number {
  const known = counts.get(schedule)
  if (known !== undefined) return known
  const all = (steps: readonly Ast.Step[]): number => steps.reduce((n, s) => n + one(s), 0)
  const one = (s: Ast.Step): number =>
    s.kind === 'use'
      ? 1 + usesOf(s, schedule).reduce((n, used) => n + countOf(used), 0)
      : s.kind === 'each'
        ? all(s.steps)
        : 1
  const count = all(schedule.steps)
  counts.set(schedule, count)
  return count
}

/** The schedules that a step uses: of each call, if it uses a schedule of a called kernel. */
export const usesOf = (step: Ast.UseStep, schedule: Schedule): readonly Schedule[] =>
  schedule.calls.get(step.schedule)?.map((c) => c.schedule) ?? [usedBy(step, schedule)]

export const usedBy = (step: Ast.UseStep, schedule: Schedule): Schedule =>
  schedule.uses.get(step.schedule.name)!

export function checkCount(schedule: Schedule): void {
  const count = countOf(schedule)
  if (count <= MAX_STEPS) return
  const uses = schedule.steps.filter((s) => s.kind === 'use')
  const total = (s: Ast.UseStep) => usesOf(s, schedule).reduce((n, used) => n + countOf(used), 0)
  const [most] = [...uses].sort((a, b) => total(b) - total(a))
  tooManySteps(
    `schedule ${schedule.name} makes ${countText(count)} steps${most ? `, ${countText(total(most))} of them by \`${printStep(most)}\`` : ''}`,
    most ?? schedule,
    'use a schedule once',
  )
}

export const tooManySteps = (message: string, at: { readonly span: Span }, hint: string): never =>
  failAt('schedule/too-many-steps', at.span, {
    message,
    expected: `at most ${countText(MAX_STEPS)} steps`,
    hint,
  })

// Parameters in the errors of steps: callers who set the parameters of a schedule may not know its text.

/**
 * Returns the parameters that a step mentions, such as `t = 2`; all parameters of its schedule if the step mentions no
 * parameter.
 */
export function parametersOf(step: Ast.Step, { values }: Pick<Env, 'values'>): readonly string[] {
  const mentioned = new Set(namesIn(step).flatMap(({ name }) => (values.has(name) ? [name] : [])))
  const parameters = [...values].filter(([name]) => mentioned.size === 0 || mentioned.has(name))
  return parameters.map(([name, value]) => `${name} = ${value}`)
}

/** The place of a step in schedules, for its errors. */
export interface Where {
  /** Returns the parameters of the step's schedule, such as `t = 2`. */
  readonly parameters: () => readonly string[]
  /** The places of the calls of functions and kernels, the innermost first. */
  readonly calls: readonly Label[]
}

/** Returns the result of `work`, and adds the parameters and the calls of functions to its errors. */
export function withParameters<T>(where: Where | undefined, work: () => T): T {
  if (!where) return work()
  const { calls } = where
  const located = (d: Diagnostic): Diagnostic => {
    const told = where.parameters()
    return {
      ...d,
      message: told.length > 0 ? `${d.message}, where ${told.join(', ')}` : d.message,
      ...(calls.length > 0 && { labels: [...(d.labels ?? []), ...calls] }),
    }
  }
  return withDiagnostics(located, work)
}
