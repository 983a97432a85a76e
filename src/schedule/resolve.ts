/** Schedules of `.spt` files as steps: parameters evaluated, other schedules' steps in place, stages told apart. */
import { fail, type Span } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import type { Schedule } from '../ir/elaborate/index.ts'
import { evaluate } from '../ir/evaluate.ts'
import { foldInt, type ThreadAxis } from '../ir/expr.ts'
import type { CoordStep } from './coords/steps.ts'
import type { CacheScope, LoopStep } from './steps.ts'

export type Step =
  | { readonly stage: 1; readonly step: CoordStep }
  | { readonly stage: 2; readonly step: LoopStep }

/** Steps of a schedule with the given arguments; the rest take their defaults. */
export function stepsOf(schedule: Schedule, args: readonly (number | undefined)[] = []): Step[] {
  const out: Step[] = []
  expand(schedule, args, out)
  return out
}

type Values = ReadonlyMap<string, number>

function expand(schedule: Schedule, args: readonly (number | undefined)[], out: Step[]): void {
  const values = new Map<string, number>()
  if (args.length > schedule.params.length)
    fail({
      code: 'schedule/arguments',
      message: `schedule ${schedule.name} is given ${args.length} arguments`,
      expected: `at most ${schedule.params.length}: (${schedule.params.map((p) => p.name).join(', ')})`,
      hint: 'leave out what it does not take',
    })
  schedule.params.forEach((p, k) => {
    const given = args[k]
    if (given !== undefined) values.set(p.name, given)
    else if (p.default) values.set(p.name, evaluate(p.default, values))
    else
      fail({
        code: 'schedule/arguments',
        message: `schedule ${schedule.name} needs a value for ${p.name}`,
        expected: `(${schedule.params.map((q) => q.name).join(', ')})`,
        hint: `give ${p.name} a value`,
      })
  })
  for (const step of schedule.steps) {
    if (step.kind === 'use') {
      expand(
        schedule.uses.get(step.schedule.name)!,
        step.args.map((a) => integer(a, values)),
        out,
      )
      continue
    }
    out.push(...convert(step, values, schedule.formats, out))
  }
}

const ref = (r: Ast.LoopRef): string => (r.nest ? `${r.nest.name}.${r.name.name}` : r.name.name)

function convert(
  step: Exclude<Ast.Step, Ast.UseStep>,
  values: Values,
  formats: Schedule['formats'],
  before: readonly Step[],
): Step[] {
  const { span } = step
  // The first step on loops ends what acts on coordinates.
  const onLoops = before.some((s) => s.stage === 2)
  const coord = (s: CoordStep): Step[] => [{ stage: 1, step: s }]
  const loop = (s: LoopStep): Step[] => [{ stage: 2, step: s }]
  const early = (what: string): void => {
    if (onLoops)
      fail({
        code: 'schedule/too-late',
        message: `${what} acts on coordinates and comes after a step on loops`,
        span,
        expected: `${what} before the first step on loops`,
        hint: 'move it to the top of the schedule',
      })
  }
  switch (step.kind) {
    case 'as': {
      early('as')
      const { format, args } = formats.get(step)!
      return coord({
        kind: 'as',
        buffer: step.buffer.name,
        format,
        args: args.map((a, k) =>
          typeof a === 'string'
            ? a
            : format.params[k]!.kind === 'real'
              ? arithmetic(a, values, true)
              : integer(a, values),
        ),
        span,
      })
    }
    case 'each':
    case 'merge':
    case 'merge_parts':
      return fail({ code: 'schedule/unsupported', message: `${step.kind} is not expanded`, span })
    case 'attach':
      early('attach')
      return coord({ kind: 'attach', loop: ref(step.loop), to: ref(step.to), span })
    case 'reorder':
      return onLoops
        ? loop({ kind: 'reorder', loops: step.loops.map(ref), span })
        : coord({ kind: 'reorder', loops: step.loops.map(ref), span })
    case 'fuse': {
      const into = step.into ? { into: step.into.name } : {}
      return onLoops
        ? loop({ kind: 'fuse', loops: step.loops.map(ref), ...into, span })
        : coord({ kind: 'fuse', loops: step.loops.map(ref), ...into, span })
    }
    case 'split':
      return loop({
        kind: 'split',
        loop: ref(step.loop),
        by: integer(step.by, values),
        ...(step.into ? { into: [step.into[0].name, step.into[1].name] as const } : {}),
        span,
      })
    case 'tile':
      return loop({
        kind: 'tile',
        loops: step.loops.map(ref),
        by: step.by.map((e) => integer(e, values)),
        ...(step.into ? { into: step.into.map((i) => i.name) } : {}),
        span,
      })
    case 'bind':
      return loop({
        kind: 'bind',
        bindings: step.binds.map((b) => ({ loop: ref(b.loop), to: b.to.name as ThreadAxis })),
        span,
      })
    case 'unroll':
      return loop({
        kind: 'unroll',
        loop: ref(step.loop),
        ...(step.by ? { by: integer(step.by, values) } : {}),
        span,
      })
    case 'vectorize':
      return loop({ kind: 'vectorize', loop: ref(step.loop), span })
    case 'cache_read':
    case 'cache_write':
      return loop({
        kind: step.kind,
        buffer: step.buffer.name,
        at: ref(step.at),
        scope: memory(step.memory),
        ...(step.into ? { into: step.into.name } : {}),
        span,
      })
    case 'compute_at':
      return loop({ kind: 'compute_at', nest: step.iteration.name, at: ref(step.at), span })
    case 'fission':
      return loop({ kind: 'fission', loop: ref(step.loop), after: step.after.name, span })
    case 'rfactor':
      return loop({
        kind: 'rfactor',
        loop: ref(step.loop),
        ...(step.into ? { into: step.into.name } : {}),
        span,
      })
    case 'atomic':
      return loop({ kind: 'atomic', buffer: step.buffer.name, span })
  }
}

function memory(m: Ast.Ident): CacheScope {
  if (m.name === 'shared' || m.name === 'register') return m.name
  return fail({
    code: 'schedule/unknown-memory',
    message: `there is no memory ${m.name}`,
    span: m.span,
    lookup: { name: m.name, candidates: ['shared', 'register'] },
    expected: 'shared or register',
    hint: 'cache in the memory of a block or of a thread',
  })
}

/** The value of an integer expression over schedule parameters. */
function integer(e: Ast.Expr, values: Values): number {
  const value = arithmetic(e, values)
  if (!Number.isSafeInteger(value)) bad(e, `it is ${value}`)
  return value
}

/** `real`: quotients of numbers that are not both integers as written are not rounded down. */
function arithmetic(e: Ast.Expr, values: Values, real = false): number {
  switch (e.kind) {
    case 'number':
      return e.value
    case 'name': {
      const v = values.get(e.name)
      return v === undefined ? bad(e, `${e.name} is no parameter of the schedule`) : v
    }
    case 'unary':
      return e.op === 'neg' ? -arithmetic(e.x, values, real) : bad(e, 'it is a condition')
    case 'binary': {
      const a = arithmetic(e.a, values, real)
      const b = arithmetic(e.b, values, real)
      if ((e.op === 'div' || e.op === 'mod') && b === 0) return bad(e, 'it divides by 0')
      if (real && e.op === 'div' && (isFraction(e.a) || isFraction(e.b))) return a / b
      return foldInt(e.op, a, b) ?? bad(e, 'it is a condition')
    }
    case 'call': {
      const xs = e.args.map((x) => arithmetic(x, values, real))
      if (e.fn.name === 'min') return Math.min(...xs)
      if (e.fn.name === 'max') return Math.max(...xs)
      if (e.fn.name === 'ceildiv' && xs.length === 2 && xs[1] !== 0) return Math.ceil(xs[0]! / xs[1]!)
      return bad(e, `${e.fn.name} is not for arguments of steps`)
    }
    default:
      return bad(e, 'it is no integer arithmetic')
  }
}

/** Whether an expression is a floating-point number as written. */
function isFraction(e: Ast.Expr): boolean {
  switch (e.kind) {
    case 'number':
      return e.float
    case 'unary':
      return isFraction(e.x)
    case 'binary':
      return isFraction(e.a) || isFraction(e.b)
    case 'call':
      return e.args.some(isFraction)
    default:
      return false
  }
}

function bad(e: { readonly span: Span }, why: string): never {
  return fail({
    code: 'schedule/argument',
    message: `an argument of a step is no integer: ${why}`,
    span: e.span,
    expected: 'integers, parameters of the schedule, + - * / %, min, max, ceildiv',
    hint: 'write a number',
  })
}
