/** Elaboration of monoids: AST → typed. Component `m` of operand `a` is the variable `a.m`. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type Expr, type Var, variable } from '../../ir/expressions/expr.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import { isBuiltinReducer, type Monoid } from '../../ir/values/monoid.ts'
import { monoidLaws } from '../../ir/values/monoid-laws.ts'
import { errorCount, repeatedIn, report } from '../diagnostics.ts'
import { converted, type Names, noNames } from '../expressions/expressions.ts'
import { plain } from '../expressions/type-conversion.ts'

export function elaborateMonoid(m: Ast.Monoid): Monoid | null {
  const before = errorCount()
  if (isBuiltinReducer(m.name.name))
    report('check/duplicate', m.name.span, {
      message: `${m.name.name} is a built-in reducer`,
      hint: 'choose another name',
    })
  for (const { name, first } of repeatedIn(m.fields.map((f) => f.name)))
    report('check/duplicate', name.span, {
      message: `monoid ${m.name.name} has two components ${name.name}`,
      labels: [{ span: m.fields.find((f) => f.name === first)!.span, text: 'the first one' }],
      hint: `rename a component ${name.name}`,
    })
  if (m.left.name === m.right.name)
    report('check/duplicate', m.right.span, {
      message: `both parameters of combine are called ${m.left.name}`,
      hint: 'rename the second parameter',
    })
  const vars = (side: Ast.Ident): Var[] =>
    m.fields.map((f) => variable(`${side.name}.${f.name.name}`, f.type.name) as Var)
  const values = (exprs: readonly Ast.Expr[], names: Names): (Expr | null)[] =>
    exprs.map((e, k) => {
      const field = m.fields[k]
      return field ? converted(e, names, field.type.name, `component ${field.name.name}`) : null
    })
  const identity = values(m.identity, CONSTANTS)
  const result = values(m.result, operands(m, [m.left, m.right]))
  const rule = m.derivative
  const sides = rule ? [rule.operand, rule.result, rule.adjoint] : []
  const adjoint = rule ? values(rule.values, operands(m, sides)) : []
  if (errorCount() > before || [...identity, ...result, ...adjoint].some((e) => e === null)) return null
  const monoid: Monoid = {
    name: m.name.name,
    fields: m.fields.map((f) => ({ name: f.name.name, dtype: f.type.name })),
    identity: identity as Expr[],
    left: vars(m.left),
    right: vars(m.right),
    result: result as Expr[],
    ...(rule && {
      derivative: {
        operand: vars(rule.operand),
        result: vars(rule.result),
        adjoint: vars(rule.adjoint),
        values: adjoint as Expr[],
      },
    }),
    span: m.name.span,
  }
  const wrong = violation(monoid)
  if (wrong)
    report('check/monoid-law', m.name.span, {
      message: `${monoid.name} is not a reducer: ${wrong}`,
      expected: 'an associative and commutative combine, and an identity that changes nothing',
      hint: 'schedules combine values in any order and grouping',
    })
  return monoid
}

const CONSTANTS: Names = noNames((e) =>
  report('check/monoid-identity', e.span, {
    message: 'an identity is constant',
    expected: 'literals, such as 0 or -inf',
  }),
)

function operands(m: Ast.Monoid, of: readonly Ast.Ident[]): Names {
  const sides = of.map((s) => s.name)
  const fields = m.fields.map((f) => f.name.name)
  const refuse = (e: Ast.Expr): null =>
    report('check/monoid-name', e.span, {
      message: 'combine mentions only the components of operands',
      expected: `${sides[0]}.${fields[0]} or ${sides[1]}.${fields[0]}`,
    })
  return {
    ...noNames(refuse),
    field(e) {
      if (!sides.includes(e.object.name))
        return report('check/unknown-name', e.object.span, {
          message: `${e.object.name} is not an operand of combine`,
          lookup: { name: e.object.name, candidates: sides },
        })
      const field = m.fields.find((f) => f.name.name === e.field.name)
      if (!field)
        return report('check/unknown-field', e.field.span, {
          message: `monoid ${m.name.name} has no component ${e.field.name}`,
          lookup: { name: e.field.name, candidates: fields },
        })
      return plain(variable(`${e.object.name}.${e.field.name}`, field.type.name, e.span))
    },
  }
}

// Checks of a reducer's properties (associativity, commutativity, identity) on samples. The samples are
// positive, because a reducer may be meant for a part of the numbers (weights, counts). Values in bound data
// are checked if results differ (`run/verify/compare-outputs.ts`).

const SAMPLES = 24

/** Describes a violated property, with numbers; null if every sample satisfies all properties. */
function violation(m: Monoid): string | null {
  const laws = monoidLaws(m)
  let state = 12345
  const next = (): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state / 0x80000000
  }
  const sample = (k: number): number[] =>
    m.fields.map((f) =>
      isFloat(f.dtype)
        ? 0.1 + 4 * next()
        : f.dtype === 'bool'
          ? Math.floor(2 * next())
          : 1 + ((k * 7 + Math.floor(next() * 6)) % 19),
    )
  for (let k = 0; k < SAMPLES; k++) {
    const wrong = laws.violation(sample(3 * k), sample(3 * k + 1), sample(3 * k + 2))
    if (wrong) return wrong
  }
  return null
}
