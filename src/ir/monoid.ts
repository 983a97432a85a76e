/** Reducers: an associative, commutative combine with an identity, over one value or a tuple. */
import { InternalError, type Span } from '../ast/diagnostic.ts'
import { type Dtype, INT_RANGE, isFloat } from './dtype.ts'
import { binary, bool, constant, type Expr, type Var, variable } from './expr.ts'

export interface Monoid {
  readonly name: string
  /** Component types; a built-in takes the type of its target. */
  readonly fields: readonly { readonly name: string; readonly dtype: Dtype }[]
  readonly identity: readonly Expr[]
  /** `result[k]` is component k of `left ∘ right`, over the variables of `left` and `right`. */
  readonly left: readonly Var[]
  readonly right: readonly Var[]
  readonly result: readonly Expr[]
  readonly span?: Span | undefined
}

export const BUILTIN_REDUCERS = ['+', '*', 'min', 'max', 'and', 'or'] as const
export type BuiltinReducer = (typeof BUILTIN_REDUCERS)[number]
export const isBuiltinReducer = (s: string): s is BuiltinReducer =>
  (BUILTIN_REDUCERS as readonly string[]).includes(s)

const OP = { '+': 'add', '*': 'mul', min: 'min', max: 'max', and: 'and', or: 'or' } as const

/** What a reduction into elements of a type starts from. */
export const startOf = (identity: Expr, dtype: Dtype): Expr =>
  identity.kind === 'const' ? constant(identity.value, dtype) : identity

/** The identity of a built-in reducer for an element type. */
export function identityOf(reducer: BuiltinReducer, dtype: Dtype): Expr {
  const range =
    dtype === 'i32' || dtype === 'u32' || dtype === 'i8' || dtype === 'u8' ? INT_RANGE[dtype] : undefined
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
export function builtinMonoid(reducer: BuiltinReducer, dtype: Dtype): Monoid {
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

/** A built-in reducer combining in a wider type; what nothing was reduced into is still the narrow identity. */
export function widened(narrow: Monoid, dtype: Dtype): Monoid {
  const { name } = narrow
  if (!isBuiltinReducer(name)) throw new InternalError(`${name} has types of its own`)
  return {
    ...builtinMonoid(name, dtype),
    identity: narrow.identity.map((e) => (e.kind === 'const' ? constant(e.value, dtype) : e)),
  }
}
