/** Elaboration of monoids: AST → typed. Component `m` of operand `a` is the variable `a.m`. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type Expr, type Var, variable } from '../../ir/expressions/expr.ts'
import { isBuiltinReducer, type Monoid } from '../../ir/values/monoid.ts'
import type { Report } from '../diagnostics.ts'
import { elaborateExpr, type Names } from '../expressions/expressions.ts'
import { coerce, plain } from '../expressions/type-conversion.ts'
import { violation } from './monoid-samples.ts'

export function elaborateMonoid(m: Ast.Monoid, report: Report): Monoid | null {
  const before = report.count
  if (isBuiltinReducer(m.name.name))
    report.error({
      code: 'check/duplicate',
      message: `${m.name.name} is a built-in reducer`,
      span: m.name.span,
      hint: 'choose another name',
    })
  const seen = new Map<string, Ast.MonoidField>()
  for (const f of m.fields) {
    const first = seen.get(f.name.name)
    if (first)
      report.error({
        code: 'check/duplicate',
        message: `monoid ${m.name.name} has two components ${f.name.name}`,
        span: f.name.span,
        labels: [{ span: first.span, text: 'the first one' }],
        hint: `rename a component ${f.name.name}`,
      })
    seen.set(f.name.name, f)
  }
  if (m.left.name === m.right.name)
    report.error({
      code: 'check/duplicate',
      message: `both parameters of combine are called ${m.left.name}`,
      span: m.right.span,
      hint: 'rename the second parameter',
    })
  const vars = (side: Ast.Ident): Var[] =>
    m.fields.map((f) => variable(`${side.name}.${f.name.name}`, f.type.name) as Var)
  const values = (exprs: readonly Ast.Expr[], names: Names): (Expr | null)[] =>
    exprs.map((e, k) => {
      const t = elaborateExpr(e, names, report)
      const field = m.fields[k]
      return t && field ? coerce(t, field.type.name, `component ${field.name.name}`, e.span, report) : null
    })
  const identity = values(m.identity, constants(report))
  const result = values(m.result, operands(m, report))
  if (report.count > before || [...identity, ...result].some((e) => e === null)) return null
  const monoid: Monoid = {
    name: m.name.name,
    fields: m.fields.map((f) => ({ name: f.name.name, dtype: f.type.name })),
    identity: identity as Expr[],
    left: vars(m.left),
    right: vars(m.right),
    result: result as Expr[],
    span: m.name.span,
  }
  const wrong = violation(monoid)
  if (wrong)
    report.error({
      code: 'check/monoid-law',
      message: `${monoid.name} is not a reducer: ${wrong}`,
      span: m.name.span,
      expected: 'an associative and commutative combine, and an identity that changes nothing',
      hint: 'schedules combine values in any order and grouping',
    })
  return monoid
}

/** Returns the names in an identity: each name is reported. */
function constants(report: Report): Names {
  const refuse = (e: Ast.Expr): null =>
    report.error({
      code: 'check/monoid-identity',
      message: 'an identity is constant',
      span: e.span,
      expected: 'literals, such as 0 or -inf',
    })
  return { name: refuse, access: refuse, field: refuse }
}

function operands(m: Ast.Monoid, report: Report): Names {
  const sides = [m.left.name, m.right.name]
  const fields = m.fields.map((f) => f.name.name)
  const refuse = (e: Ast.Expr): null =>
    report.error({
      code: 'check/monoid-name',
      message: 'combine mentions only the components of operands',
      span: e.span,
      expected: `${sides[0]}.${fields[0]} or ${sides[1]}.${fields[0]}`,
    })
  return {
    name: refuse,
    access: refuse,
    field(e) {
      if (!sides.includes(e.object.name))
        return report.error({
          code: 'check/unknown-name',
          message: `${e.object.name} is not an operand of combine`,
          span: e.object.span,
          lookup: { name: e.object.name, candidates: sides },
        })
      const field = m.fields.find((f) => f.name.name === e.field.name)
      if (!field)
        return report.error({
          code: 'check/unknown-field',
          message: `monoid ${m.name.name} has no component ${e.field.name}`,
          span: e.field.span,
          lookup: { name: e.field.name, candidates: fields },
        })
      return plain(variable(`${e.object.name}.${e.field.name}`, field.type.name, e.span))
    },
  }
}
