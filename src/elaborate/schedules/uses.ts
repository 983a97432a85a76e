/** Uses of schedules and schedule functions: their declarations, and the kinds of their arguments. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { SCALAR_TYPES } from '../../ast/nodes/nodes.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { report } from '../diagnostics.ts'
import { checkArguments, checkNamed, declarationIn } from '../formats/format-uses.ts'
import type { OfSteps, Resolve } from './resolve.ts'
import type { ScheduleParam } from './schedule-params.ts'
import type { Schedule } from './schedule-types.ts'

const FORMS: Readonly<Record<Ast.ParamKind, string>> = {
  size: 'an integer',
  loop: 'a loop: NAME or NEST.NAME',
  nest: 'the name of a loop nest',
  buffer: 'the name of a buffer',
  memory: '`shared`, `register` or a declared memory with its arguments',
  instr: 'an instruction with its arguments',
  type: SCALAR_TYPES.join(', '),
}

/** An argument as a value of the parameter's kind; null for a type and after a reported error. */
export function argumentValue(
  e: Ast.UseArgument,
  { name, kind }: Pick<ScheduleParam, 'name' | 'kind'>,
  schedule: string,
  kinds: ReadonlyMap<string, Ast.ParamKind>,
): Ast.StepValue | null {
  const value = valueIn(e, kind)
  if (value) return value
  const isType = e.kind === 'name' && (SCALAR_TYPES.some((t) => t === e.name) || kinds.get(e.name) === 'type')
  if (kind === 'type' && isType) return null
  return report('check/argument-type', e.span, {
    message: `parameter ${name} of schedule ${schedule} is of kind ${kind}`,
    expected: FORMS[kind],
  })
}

/** An argument as a value of a kind; null for another kind of expression, and for types. */
export function valueIn(e: Ast.UseArgument, kind: Ast.ParamKind): Ast.StepValue | null {
  if (e.kind === 'group') return null
  if (kind === 'size') return { kind: 'integer', value: e, operand: false }
  if (kind === 'type') return null
  if (kind === 'loop') {
    const loop = loopIn(e)
    return loop && { kind: 'loop', loop }
  }
  if (kind === 'nest' || kind === 'buffer')
    return e.kind === 'name' ? { kind: 'name', of: kind, name: { name: e.name, span: e.span } } : null
  const use = instanceIn(e)
  return use && { kind: 'instance', of: kind, use }
}

function loopIn(e: Ast.Expr): Ast.LoopRef | null {
  if (e.kind === 'name') return { nest: null, name: { name: e.name, span: e.span }, span: e.span }
  return e.kind === 'field' ? { nest: e.object, name: e.field, span: e.span } : null
}

function instanceIn(e: Ast.Expr): Ast.Instance | null {
  if (e.kind === 'name') return { name: { name: e.name, span: e.span }, args: [], span: e.span }
  return e.kind === 'call' ? { name: e.fn, args: e.args, span: e.span } : null
}

/** True if the arguments of a used schedule or space are valid. */
export const checkUse = (what: string, step: Ast.UseStep, params: readonly Ast.ScheduleParam[]): boolean =>
  step.args.some((a) => a.name)
    ? checkNamed(what, step, params)
    : checkArguments(what, step.args.length, params, step.span)

/** The schedule of the kernel with this name, otherwise the function. */
export function findSchedule(
  s: OfSteps,
  step: Ast.UseStep,
  r: Resolve,
  path: readonly OfSteps[],
): Schedule | null {
  const { name, span } = step.schedule
  const known = r.schedules
  const decls = new Map<string, Ast.KernelSchedule | Ast.ScheduleFunction>([...r.functions, ...(known ?? [])])
  const decl = declarationIn(decls, step.schedule, r, () => ({
    code: 'check/unknown-schedule',
    message:
      s.kind === 'function'
        ? `there is no schedule function ${name}`
        : `kernel ${(step.kernel ?? s.kernel).name} has no schedule ${name}`,
    span,
    lookup: { name, candidates: [...(known?.keys() ?? []), ...r.functions.keys()] },
  }))
  if (!decl) return null
  if (decl.kind === 'choice' && decl.by === 'rules')
    return report('check/choice-used', span, {
      message: `${name} is chosen when data are bound, and has no steps before`,
      expected: 'a schedule with steps',
      hint: `use a schedule of the dispatch: ${[...new Set((decl.table ? r.tables(decl).flatMap((t) => t.items) : decl.branches).flatMap((b) => ('calls' in b ? b.calls.map((c) => c.schedule.name) : [])))].join(', ')}`,
    })
  if (decl.kind === 'choice')
    return report('check/space-used', span, {
      message: `${name} is a space, whose steps are not decided`,
      expected: 'a schedule with steps',
      ...(!step.kernel && { hint: `move \`use ${name}\` into a space` }),
    })
  if (path.includes(decl))
    return report('check/schedule-cycle', span, {
      message: `schedule ${s.name.name} uses itself${decl === s ? '' : ` through ${name}`}`,
      hint: 'remove this `use`, or another `use` of the cycle',
    })
  if (!checkUse(`schedule ${name}`, step, decl.params)) return null
  const results = decl.kind === 'function' ? decl.results : []
  if (step.results.length > 0 && step.results.length !== results.length)
    return report('check/arguments', step.span, {
      message: `schedule ${name} has ${quantity(results.length, 'result')}, and ${step.results.length} are named`,
      expected: results.length === 0 ? 'no `->`' : `-> (${results.map((n) => n.name).join(', ')})`,
    })
  return r.schedule(decl, path)
}
