/** Reducers: an associative, commutative combine with an identity, over one value or a tuple. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { binary, bool, cast, constant, type Expr, type Var, variable } from '../expressions/expr.ts'
import { children, perExpr, withChildren } from '../expressions/expr-tree.ts'
import { type ExprType, INT_RANGE, isFloat, isHalf, isInt, join, scalarType } from './dtype.ts'

export interface Monoid {
  readonly name: string
  /** Component types; a built-in reducer takes the type of its target. */
  readonly fields: readonly { readonly name: string; readonly dtype: ExprType }[]
  readonly identity: readonly Expr[]
  /** `result[k]` is component k of `left ∘ right`, over the variables of `left` and `right`. */
  readonly left: readonly Var[]
  readonly right: readonly Var[]
  readonly result: readonly Expr[]
  /** The adjoint of an operand of a reduction, over the operand, the result and its adjoint. */
  readonly derivative?: MonoidDerivative | undefined
  readonly span?: Span | undefined
}

export interface MonoidDerivative {
  readonly operand: readonly Var[]
  readonly result: readonly Var[]
  readonly adjoint: readonly Var[]
  readonly values: readonly Expr[]
}

export const BUILTIN_REDUCERS = ['+', '*', 'min', 'max', 'and', 'or'] as const
export type BuiltinReducer = (typeof BUILTIN_REDUCERS)[number]
export const isBuiltinReducer = (s: string): s is BuiltinReducer =>
  (BUILTIN_REDUCERS as readonly string[]).includes(s)

const OP = { '+': 'add', '*': 'mul', min: 'min', max: 'max', and: 'and', or: 'or' } as const

/** The initial value of a reduction into elements of a type. */
export const initialValue = (identity: Expr, dtype: ExprType): Expr =>
  identity.kind === 'const' ? constant(identity.value, dtype) : identity

function identityOf(reducer: BuiltinReducer, dtype: ExprType): Expr {
  const range = isInt(dtype) ? INT_RANGE[scalarType(dtype) as keyof typeof INT_RANGE] : undefined
  switch (reducer) {
    case '+':
      return constant(0, dtype)
    case '*':
      return constant(1, dtype)
    case 'min':
      return range
        ? constant(range[1], dtype)
        : dtype === 'bool'
          ? bool(true)
          : constant(Number.POSITIVE_INFINITY, dtype)
    case 'max':
      return range
        ? constant(range[0], dtype)
        : dtype === 'bool'
          ? bool(false)
          : constant(Number.NEGATIVE_INFINITY, dtype)
    case 'and':
      return isFloat(dtype) ? constant(1, dtype) : bool(true)
    case 'or':
      return isFloat(dtype) ? constant(0, dtype) : bool(false)
  }
}

/** The built-in reducer as a monoid over one value of `dtype`. */
export function builtinMonoid(reducer: BuiltinReducer, dtype: ExprType): Monoid {
  const a = variable('a', dtype)
  const b = variable('b', dtype)
  return {
    name: reducer,
    fields: [{ name: 'value', dtype }],
    identity: [identityOf(reducer, dtype)],
    left: [a],
    right: [b],
    result: [binary(OP[reducer], a, b)],
  }
}

/**
 * The reducer with wider component types. Elements without contributions keep the narrow identity. Half-precision
 * constants in the combine of a declared monoid become f32; explicit casts to half are kept.
 */
export function widen(narrow: Monoid, dtypes: readonly ExprType[]): Monoid {
  const { name } = narrow
  const identity = narrow.identity.map((e, k) =>
    e.kind === 'const' ? constant(e.value, dtypes[k]!) : cast(e, dtypes[k]!),
  )
  if (isBuiltinReducer(name)) return { ...builtinMonoid(name, dtypes[0]!), identity }
  const [left, right] = [narrow.left, narrow.right].map((vars) =>
    vars.map((v, k) => variable(v.name, dtypes[k]!)),
  ) as [Var[], Var[]]
  const operands = new Map([...left, ...right].map((v) => [v.name, v]))
  const widenExpr = perExpr<Expr>((e, widenOperand) => {
    if (e.kind === 'var') return operands.get(e.name) ?? e
    if (e.kind === 'const') return isHalf(e.dtype) ? constant(e.value, 'f32') : e
    if (e.kind === 'cast') return cast(widenOperand(e.x), e.dtype)
    const newOperands = children(e).map(widenOperand)
    const values = e.kind === 'select' ? newOperands.slice(1) : newOperands
    const dtype = values.map((x) => x.dtype).reduce((a, b) => (a === b ? a : join(a, b)))
    return withChildren(
      e,
      newOperands.map((x) => (values.includes(x) ? cast(x, dtype) : x)),
    )
  })
  return {
    ...narrow,
    fields: narrow.fields.map((f, k) => ({ ...f, dtype: dtypes[k]! })),
    identity,
    left,
    right,
    result: narrow.result.map((e, k) => cast(widenExpr(e), dtypes[k]!)),
  }
}

/** True if the component's combine always returns one of its operands, as for an argmax: exact in any type. */
export function isSelection(m: Monoid, component: number): boolean {
  const isSelecting = (e: Expr): boolean => {
    if (e.kind === 'select') return isSelecting(e.then) && isSelecting(e.else)
    if (e.kind === 'binary') return (e.op === 'min' || e.op === 'max') && isSelecting(e.a) && isSelecting(e.b)
    return e.kind === 'var' || e.kind === 'const'
  }
  return isSelecting(m.result[component]!)
}
