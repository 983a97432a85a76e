/** Statements and arrays of the loop nests that build formats at run time. */
import type { Buffer1, Iter, Iteration, IterKind, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { assign1, iteration, reduce1 } from '../../../ir/coordinates/stage1-tree.ts'
import { type Expr, type Load, variable } from '../../../ir/expressions/expr.ts'
import { builtinMonoid, type Monoid } from '../../../ir/values/monoid.ts'
import type { StepSpan } from '../as/tensor-split.ts'

export const v = (name: string): Expr => variable(name)

export const iter = (name: string, kind: IterKind, axis = name): Iter => ({ name, axis, kind })

/** Returns an array of i32 over these axes. */
export const array = (name: string, axes: readonly string[]): Buffer1 => ({
  name,
  dtype: 'i32',
  axes,
  role: 'local',
  filledAtRunTime: true,
  fill: 0,
  accumulate: 'i32',
})

/** Returns constructors of statements with the location of the step. */
export const statementsAt = (at: StepSpan) => ({
  nest: (
    name: string,
    iters: readonly Iter[],
    body: readonly Stmt1[],
    where: readonly Expr[] = [],
  ): Iteration => iteration({ name, iters, where, body, ...at }),
  sum: (target: Load, value: Expr, reducer: Monoid = builtinMonoid('+', 'index')): Stmt1 =>
    reduce1({ reducer, targets: [target], values: [value], ...at }),
  set: (target: Load, value: Expr): Stmt1 => assign1([target], [value], at.span),
})
