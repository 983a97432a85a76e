/** Constructors of Stage I's statements, the only ones. */
import { invariant, type Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../expressions/expr.ts'
import type { Access, Assign, If1, Iteration, Let1, Reduce1, Stmt1 } from './stage1.ts'

export const iteration = (fields: Omit<Iteration, 'kind'>): Iteration => ({ kind: 'iterate', ...fields })

export const define1 = (name: string, value: Expr, span?: Span): Let1 => ({ kind: 'let', name, value, span })

export function when1(
  cond: Expr,
  then: readonly Stmt1[],
  otherwise: readonly Stmt1[] = [],
  span?: Span,
): If1 {
  invariant(cond.dtype === 'bool', 'a condition of another type')
  return { kind: 'if', cond, then, else: otherwise, span }
}

export function assign1(targets: readonly Access[], values: readonly Expr[], span?: Span): Assign {
  invariant(targets.length === values.length, 'a value for each target')
  return { kind: 'assign', targets, values, span }
}

export function reduce1(fields: Omit<Reduce1, 'kind'>): Reduce1 {
  const { reducer, targets, values } = fields
  invariant(
    targets.length === values.length && targets.length === reducer.fields.length,
    'a target and a value for each component',
  )
  return { kind: 'reduce', ...fields }
}
