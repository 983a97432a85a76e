/**
 * Schedules, as far as names go: the kernel, buffers, formats, other schedules and parameters exist. Loops are
 * found when the steps run, since steps make them.
 */
import type { Span } from '../../ast/diagnostic.ts'
import type * as Ast from '../../ast/nodes.ts'
import type { Scope as FileScope } from '../../ast/program.ts'
import type { Expr } from '../expr.ts'
import type { Format } from '../format.ts'
import type { Kernel1 } from '../stage1.ts'
import { settled } from './expressions.ts'
import { coordinates } from './formats.ts'
import type { Report } from './report.ts'

/** A schedule whose names are resolved; its steps stay AST. */
export interface Schedule {
  readonly kernel: string
  readonly name: string
  readonly params: readonly ScheduleParam[]
  readonly steps: readonly Ast.Step[]
  /** The formats and schedules that the steps name, under the names of the schedule's file. */
  readonly formats: ReadonlyMap<string, Format>
  readonly uses: ReadonlyMap<string, Schedule>
  readonly span: Span
}

export interface ScheduleParam {
  readonly name: string
  /** An integer expression over the parameters before it; `null` where an argument must be given. */
  readonly default: Expr | null
}

export interface Resolve {
  readonly report: Report
  readonly scope: FileScope
  /** `null` where the kernel has errors of its own. */
  readonly kernel: Kernel1 | null
  readonly format: (f: Ast.Format) => Format | null
  /** A schedule of the same kernel; `null` where it has errors or is being resolved. */
  readonly schedule: (s: Ast.Schedule, path: readonly Ast.Schedule[]) => Schedule | null
}

export function elaborateSchedule(
  s: Ast.Schedule,
  r: Resolve,
  path: readonly Ast.Schedule[],
): Schedule | null {
  const { report } = r
  const before = report.count
  const params: ScheduleParam[] = []
  for (const p of s.params) {
    const known = params.map((q) => q.name)
    if (known.includes(p.name.name))
      report.error({
        code: 'check/duplicate',
        message: `schedule ${s.name.name} has two parameters ${p.name.name}`,
        span: p.name.span,
      })
    const fallback =
      p.default && settled(p.default, coordinates(new Set(known), 'parameters before it', report), report)
    params.push({ name: p.name.name, default: fallback })
  }
  const names = coordinates(new Set(params.map((p) => p.name)), 'the parameters of the schedule', report)
  const integer = (e: Ast.Expr): void => {
    const x = settled(e, names, report)
    if (x && x.dtype !== 'i32')
      report.error({
        code: 'check/argument-type',
        message: `an argument is an integer, and this is ${x.dtype}`,
        span: e.span,
      })
  }
  const formats = new Map<string, Format>()
  const uses = new Map<string, Schedule>()
  // Buffers that earlier steps made can be named too.
  const made = new Set<string>()
  for (const step of s.steps) {
    for (const e of argumentsOf(step)) integer(e)
    if ('buffer' in step) checkBuffer(step.buffer, r, made)
    if ((step.kind === 'cache_read' || step.kind === 'cache_write' || step.kind === 'rfactor') && step.into)
      made.add(step.into.name)
    if (step.kind === 'as') {
      for (const part of step.parts) {
        const format = findFormat(part, r)
        if (format) formats.set(part.format.name, format)
      }
    }
    if (step.kind === 'use') {
      const used = findSchedule(s, step, r, [...path, s])
      if (used) uses.set(step.schedule.name, used)
    }
  }
  if (report.count > before) return null
  return { kernel: s.kernel.name, name: s.name.name, params, steps: s.steps, formats, uses, span: s.span }
}

function argumentsOf(step: Ast.Step): readonly Ast.Expr[] {
  switch (step.kind) {
    case 'as':
      return step.parts.flatMap((p) => p.args)
    case 'use':
      return step.args
    case 'split':
      return [step.by]
    case 'tile':
      return step.by
    case 'unroll':
      return step.by ? [step.by] : []
    default:
      return []
  }
}

function checkBuffer(name: Ast.Ident, r: Resolve, made: ReadonlySet<string>): void {
  if (!r.kernel || made.has(name.name)) return
  const candidates = [...r.kernel.buffers.map((b) => b.name), ...made]
  if (candidates.includes(name.name)) return
  r.report.error({
    code: 'check/unknown-buffer',
    message: `kernel ${r.kernel.name} has no buffer ${name.name}`,
    span: name.span,
    lookup: { name: name.name, candidates },
  })
}

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`

/** As many arguments as there are parameters without default at least, and as there are parameters at most. */
function checkArguments(
  what: string,
  given: number,
  params: readonly { readonly default: unknown; readonly measured?: boolean }[],
  span: Span,
  report: Report,
): boolean {
  const least = params.findLastIndex((p) => p.default === null && !p.measured) + 1
  if (given >= least && given <= params.length) return true
  report.error({
    code: 'check/arguments',
    message: `${what} is given ${count(given, 'argument')}`,
    span,
    expected: least === params.length ? `${least}` : `${least} to ${params.length}`,
  })
  return false
}

function ambiguous(name: Ast.Ident, r: Resolve): boolean {
  const decls = r.scope.ambiguous.get(name.name)
  if (!decls) return false
  r.report.error(ambiguity(name, decls))
  return true
}

export const ambiguity = (name: Ast.Ident, decls: readonly Ast.Decl[]) => ({
  code: 'check/ambiguous',
  message: `${name.name} is declared by ${decls.length} of the files imported here`,
  span: name.span,
  labels: decls.map((d) => ({ span: d.name.span, text: 'declared here' })),
  hint: 'import it by name, and rename one: import { name as other } from "…"',
})

function findFormat(step: Ast.AsPart, r: Resolve): Format | null {
  const { name } = step.format
  const decl = r.scope.formats.get(name)
  if (!decl) {
    if (!ambiguous(step.format, r))
      r.report.error({
        code: 'check/unknown-format',
        message: `there is no format ${name}`,
        span: step.format.span,
        lookup: { name, candidates: [...r.scope.formats.keys()] },
      })
    return null
  }
  const params = decl.params.map((p) => ({ default: p.default, measured: p.type === 'size' }))
  const fits = checkArguments(`format ${name}`, step.args.length, params, step.span, r.report)
  return fits ? r.format(decl) : null
}

function findSchedule(
  s: Ast.Schedule,
  step: Ast.UseStep,
  r: Resolve,
  path: readonly Ast.Schedule[],
): Schedule | null {
  const { name, span } = step.schedule
  const known = r.scope.schedules.get(s.kernel.name)
  const decl = known?.get(name)
  if (!decl)
    return r.report.error({
      code: 'check/unknown-schedule',
      message: `kernel ${s.kernel.name} has no schedule ${name}`,
      span,
      lookup: { name, candidates: [...(known?.keys() ?? [])] },
    })
  if (path.includes(decl))
    return r.report.error({
      code: 'check/schedule-cycle',
      message: `schedule ${s.name.name} uses itself${decl === s ? '' : ` through ${name}`}`,
      span,
    })
  if (!checkArguments(`schedule ${name}`, step.args.length, decl.params, step.span, r.report)) return null
  return r.schedule(decl, path)
}
