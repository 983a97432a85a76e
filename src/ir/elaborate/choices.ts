/** Choices among schedules: conditions and arguments over sizes, the device and statistics of what is bound. */

import type { Span } from '../../ast/diagnostic.ts'
import type * as Ast from '../../ast/nodes.ts'
import { printExpr } from '../../ast/print.ts'
import { type Axis, hasIndptr, isDenseChain } from '../axis.ts'
import { type Expr, variable } from '../expr.ts'
import type { Kernel1 } from '../stage1.ts'
import { elaborateExpr, type Names, settled, truth } from './expressions.ts'
import { checkArguments } from './format-uses.ts'
import type { Report } from './report.ts'
import type { Resolve, Schedule } from './schedules.ts'
import { plain, type Typed } from './types.ts'

/** A schedule that is decided when data are bound: the first branch whose conditions all hold. */
export interface Choice {
  readonly kernel: string
  readonly name: string
  readonly branches: readonly Branch[]
  /** What the expressions of the branches ask of the data, by the names of the variables that stand for it. */
  readonly statistics: ReadonlyMap<string, Statistic>
  readonly span: Span
}

export interface Branch {
  /** What stands between its `and`s; none for `otherwise`. */
  readonly conditions: readonly Condition[]
  readonly schedule: Schedule
  /** An integer for each parameter; `null`: its default. */
  readonly args: readonly (Expr | null)[]
  readonly span: Span
}

export interface Condition {
  /** Over sizes, statistics, the names of devices (`DEVICES`), each a truth value, and `CAPABILITY`. */
  readonly expr: Expr
  /** As written. */
  readonly text: string
  readonly span: Span
}

export const DEVICES = ['cpu', 'webgpu', 'cuda'] as const

/** The compute capability of a CUDA device (f64): 9.0; 0 of others. */
export const CAPABILITY = 'capability'

/**
 * What is known of a sparse tensor once it is bound. Of an axis whose segments have lengths of their own (one segment
 * under each position of its parent): how many positions it has, those of its longest and its shortest segment, how many
 * it has in the mean (f64), how many segments are empty, and how many there are. Of a tensor: `nnz`, the elements it
 * stores.
 */
export const AXIS_STATISTICS = ['count', 'longest', 'shortest', 'mean', 'empty', 'segments'] as const
export type AxisStatistic = (typeof AXIS_STATISTICS)[number]
export type Statistic =
  | { readonly kind: AxisStatistic; readonly axis: string }
  | { readonly kind: 'nnz'; readonly tensor: string }

const STATISTICS: readonly string[] = [...AXIS_STATISTICS, 'nnz']
const FUNCTIONS: readonly string[] = ['min', 'max', 'ceildiv', 'select', 'abs', 'i32', 'f64', ...STATISTICS]

export function elaborateChoice(c: Ast.Choice, r: Resolve): Choice | null {
  const { report, kernel } = r
  if (!kernel) return null
  const before = report.count
  if (c.branches.length === 0)
    report.error({
      code: 'check/empty-choice',
      message: `${c.kernel.name}.${c.name.name} has nothing to choose from`,
      span: c.name.span,
      expected: '`when (…) schedule`, and `otherwise schedule` at the end',
    })
  const names = new ChoiceNames(kernel, report)
  const branches = c.branches.map((b) => branchOf(c, b, names, r))
  if (report.count > before || branches.some((b) => b === null)) return null
  return {
    kernel: c.kernel.name,
    name: c.name.name,
    branches: branches as Branch[],
    statistics: names.statistics,
    span: c.name.span,
  }
}

function branchOf(c: Ast.Choice, b: Ast.Branch, names: ChoiceNames, r: Resolve): Branch | null {
  const parts = b.cond ? conjuncts(b.cond) : []
  const conditions = parts.map((e): Condition | null => {
    const t = elaborateExpr(e, names, r.report)
    const expr = t && truth(t, e.span, r.report)
    return expr && { expr, text: printExpr(e), span: e.span }
  })
  const schedule = chosenSchedule(c, b, r)
  const args = schedule && argumentsOf(b, schedule, names, r.report)
  if (!schedule || !args || conditions.some((x) => x === null)) return null
  return { conditions: conditions as Condition[], schedule, args, span: b.span }
}

const conjuncts = (e: Ast.Expr): readonly Ast.Expr[] =>
  e.kind === 'binary' && e.op === 'and' ? [...conjuncts(e.a), ...conjuncts(e.b)] : [e]

function chosenSchedule(c: Ast.Choice, b: Ast.Branch, r: Resolve): Schedule | null {
  const { name, span } = b.schedule
  const known = r.scope.schedules.get(c.kernel.name)
  const decl = known?.get(name)
  if (decl?.kind === 'schedule') return r.schedule(decl, [])
  if (decl)
    return r.report.error({
      code: 'check/choice-of-choice',
      message: `${name} is a choice itself`,
      span,
      expected: 'a schedule with steps',
      hint: `list what ${name} chooses from here`,
    })
  return r.report.error({
    code: 'check/unknown-schedule',
    message: `kernel ${c.kernel.name} has no schedule ${name}`,
    span,
    lookup: {
      name,
      candidates: [...(known ?? [])].flatMap(([n, d]) => (d.kind === 'schedule' ? [n] : [])),
    },
  })
}

/** Values in the order of the parameters. */
function argumentsOf(
  b: Ast.Branch,
  schedule: Schedule,
  names: Names,
  report: Report,
): readonly (Expr | null)[] | null {
  const { params } = schedule
  const what = `schedule ${schedule.name}`
  const byPlace = b.args.filter((a) => a.name === null)
  if (byPlace.length > params.length) {
    checkArguments(what, b.args.length, params, b.span, report)
    return null
  }
  const before = report.count
  const given = params.map((_, k): Ast.NamedArg | undefined => byPlace[k])
  for (const a of b.args) {
    if (!a.name) continue
    const { name, span } = a.name
    const k = params.findIndex((p) => p.name === name)
    if (k < 0)
      report.error({
        code: 'check/unknown-parameter',
        message: `${what} has no parameter ${name}`,
        span,
        lookup: { name, candidates: params.map((p) => p.name) },
      })
    else if (given[k]) report.error({ code: 'check/duplicate', message: `${name} is given twice`, span })
    else given[k] = a
  }
  const isComplete = report.count === before
  params.forEach((p, k) => {
    if (isComplete && !given[k] && p.default === null)
      report.error({
        code: 'check/arguments',
        message: `${what} needs a value for ${p.name}`,
        span: b.span,
        expected: `(${params.map((q) => q.name).join(', ')})`,
      })
  })
  const values = given.map((a): Expr | null => {
    const x = a ? settled(a.value, names, report) : null
    if (a && x && x.dtype !== 'i32')
      report.error({
        code: 'check/argument-type',
        message: `an argument is an integer, and this is ${x.dtype}`,
        span: a.value.span,
        ...(x.dtype === 'bool' ? {} : { hint: 'round it down: i32(…)' }),
      })
    return x
  })
  return report.count > before ? null : values
}

/** Sizes, devices and statistics. */
class ChoiceNames implements Names {
  readonly functions = FUNCTIONS
  readonly statistics = new Map<string, Statistic>()
  readonly #kernel: Kernel1
  readonly #report: Report
  readonly #axes: ReadonlyMap<string, Axis>

  constructor(kernel: Kernel1, report: Report) {
    this.#kernel = kernel
    this.#report = report
    this.#axes = new Map(kernel.axes.map((a) => [a.name, a]))
  }

  name(e: Ast.Name): Typed | null {
    const param = this.#kernel.params.find((p) => p.name === e.name)
    if (param?.kind === 'size') return plain(variable(e.name, 'i32', e.span))
    if (param)
      return this.#report.error({
        code: 'check/unknown-name',
        message: `${e.name} is a scalar, and schedules are chosen by sizes`,
        span: e.span,
      })
    if ((DEVICES as readonly string[]).includes(e.name)) return plain(variable(e.name, 'bool', e.span))
    if (e.name === CAPABILITY) return plain(variable(e.name, 'f64', e.span))
    const sizes = this.#kernel.params.filter((p) => p.kind === 'size').map((p) => p.name)
    const isAxis = this.#axes.has(e.name)
    return this.#report.error({
      code: 'check/unknown-name',
      message: isAxis ? `${e.name} is an axis` : `there is no ${e.name} here`,
      span: e.span,
      expected: `a size (${sizes.join(', ')}), a device (${DEVICES.join(', ')}) or a statistic`,
      ...(isAxis
        ? { hint: `ask something of it: longest(${e.name})` }
        : { lookup: { name: e.name, candidates: [...sizes, ...DEVICES, CAPABILITY] } }),
    })
  }

  access(e: Ast.Access): null {
    return this.#report.error({
      code: 'check/unknown-name',
      message: 'values of tensors are not known where a schedule is chosen',
      span: e.span,
      expected: 'sizes, devices and statistics',
    })
  }

  field(e: Ast.Field): null {
    return this.#report.error({
      code: 'check/unknown-name',
      message: `there is no ${e.object.name} with parts here`,
      span: e.span,
      expected: 'sizes, devices and statistics',
    })
  }

  call(e: Ast.Call): Typed | null | undefined {
    const fn = e.fn.name
    if (!FUNCTIONS.includes(fn))
      return this.#report.error({
        code: 'check/unknown-function',
        message: `there is no function ${fn} here`,
        span: e.fn.span,
        lookup: { name: fn, candidates: FUNCTIONS },
      })
    if (!STATISTICS.includes(fn)) return undefined
    const [of] = e.args
    if (e.by || e.args.length !== 1 || of?.kind !== 'name')
      return this.#report.error({
        code: 'check/statistic',
        message: `${fn} is asked of ${fn === 'nnz' ? 'a tensor' : 'an axis'}`,
        span: e.span,
        expected: fn === 'nnz' ? 'the name of a sparse tensor' : this.#ragged(),
      })
    const found = fn === 'nnz' ? this.#nnz(of) : this.#ofAxis(fn as AxisStatistic, of)
    if (!found) return null
    const name = `${fn}(${of.name})`
    this.statistics.set(name, found)
    return plain(variable(name, fn === 'mean' ? 'f64' : 'i32', e.span))
  }

  #ofAxis(kind: AxisStatistic, { name, span }: Ast.Name): Statistic | null {
    const axis = this.#axes.get(name)
    if (axis && hasIndptr(axis)) return { kind, axis: name }
    const candidates = [...this.#axes.values()].filter(hasIndptr).map((a) => a.name)
    return this.#report.error({
      code: axis ? 'check/statistic' : 'check/unknown-axis',
      message: axis
        ? `axis ${name} has no segments of different lengths`
        : `kernel ${this.#kernel.name} has no axis ${name}`,
      span,
      ...(axis
        ? { expected: this.#ragged(), hint: 'its extent is a size' }
        : { lookup: { name, candidates } }),
    })
  }

  #nnz({ name, span }: Ast.Name): Statistic | null {
    const sparse = this.#kernel.buffers.filter((b) => b.axes.some((a) => !isDenseChain(this.#axes, a)))
    if (sparse.some((b) => b.name === name)) return { kind: 'nnz', tensor: name }
    const known = this.#kernel.buffers.some((b) => b.name === name)
    return this.#report.error({
      code: known ? 'check/statistic' : 'check/unknown-buffer',
      message: known ? `${name} is dense` : `kernel ${this.#kernel.name} has no buffer ${name}`,
      span,
      ...(known
        ? { expected: `a sparse tensor: ${sparse.map((b) => b.name).join(', ') || 'there is none'}` }
        : { lookup: { name, candidates: sparse.map((b) => b.name) } }),
    })
  }

  #ragged(): string {
    const names = [...this.#axes.values()].filter(hasIndptr).map((a) => a.name)
    return `an axis whose segments have lengths of their own: ${names.join(', ') || 'there is none'}`
  }
}
