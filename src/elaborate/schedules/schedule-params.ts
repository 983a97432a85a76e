/** Parameters of schedules and dispatches (integers, whose defaults may name earlier parameters), and of functions. */
import type { Diagnostic, Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import { type Dtype, isWord, scalarType } from '../../ir/values/dtype.ts'
import { report, reportAll } from '../diagnostics.ts'
import { type Names, settled } from '../expressions/expressions.ts'
import { asIndex, integersOver, plain } from '../expressions/type-conversion.ts'

export interface ScheduleParam {
  readonly name: string
  readonly kind: Ast.ParamKind
  /** An integer expression over earlier parameters; null if an argument is required. */
  readonly default: Expr | null
}

export function scheduleParams(s: Ast.KernelSchedule | Ast.ScheduleFunction): readonly ScheduleParam[] {
  const params: ScheduleParam[] = []
  for (const p of s.params) {
    if (p.kind !== 'size') checkKind(s, p)
    const known = params.flatMap((q) => (q.kind === 'size' ? [q.name] : []))
    if (params.some((q) => q.name === p.name.name))
      report('check/duplicate', p.name.span, {
        message: `schedule ${s.name.name} has two parameters ${p.name.name}`,
        hint: `rename a parameter ${p.name.name}`,
      })
    const fallback = p.default && settled(p.default, parameters(new Set(known), 'parameters before it', []))
    params.push({ name: p.name.name, kind: p.kind, default: fallback })
  }
  return params
}

/** Reports a loop, buffer or memory as a parameter of a schedule that callers run, and a default of another kind. */
function checkKind(
  s: Ast.KernelSchedule | Ast.ScheduleFunction,
  { name, kind, default: value }: Ast.ScheduleParam,
): void {
  if (s.kind !== 'function')
    report('check/parameter-kind', name.span, {
      message: `${s.kernel.name}.${s.name.name} has a parameter of kind ${kind}`,
      expected: 'sizes; only schedule functions have parameters of other kinds',
      hint: `to declare a function, omit the kernel: schedule ${s.name.name}(…)`,
    })
  else if (value)
    report('check/parameter-kind', value.span, {
      message: `${name.name} of kind ${kind} has a default`,
      hint: `write ${name.name}: ${kind}`,
    })
}

export const wrongArgument = (what: string, dtype: Dtype, span: Span): Diagnostic => ({
  code: 'check/argument-type',
  message: `an argument is ${what}, and this is ${dtype}`,
  span,
  hint: dtype === 'bool' ? 'convert the argument: i32(…)' : 'round the argument down: i32(…)',
})

export function argumentOver(names: Names, e: Ast.Expr, kind: 'integer' | 'real'): Expr | null {
  const x = settled(e, names)
  if (!x || isWord(x.dtype) || (kind === 'real' && x.dtype !== 'bool'))
    return x && (isWord(x.dtype) ? asIndex(x) : x)
  return reportAll(wrongArgument(kind === 'real' ? 'a number' : 'an integer', scalarType(x.dtype), e.span))
}

/** A scope of names of type `index` and constants of parts only. */
export function parameters(known: ReadonlySet<string>, what: string, parts: readonly string[]): Names {
  const refuse = (e: Ast.Expr): null =>
    report('check/unknown-name', e.span, {
      message: `only ${what} can be used here`,
      expected: integersOver([...known, ...parts.map((p) => `${p}.NAME`)]),
    })
  return {
    name: (e) =>
      known.has(e.name)
        ? plain(variable(e.name, 'index', e.span))
        : report('check/unknown-name', e.span, {
            message: `there is no ${e.name} here`,
            expected: what,
            lookup: { name: e.name, candidates: [...known] },
          }),
    access: refuse,
    field: (e) =>
      parts.includes(e.object.name)
        ? plain(variable(`${e.object.name}.${e.field.name}`, 'index', e.span))
        : refuse(e),
    real: 'f64',
  }
}
