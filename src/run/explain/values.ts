/** Values of expressions on the host, as far as they are known: what is not is NaN, and so is all that depends on it. */
import { computeType } from '../../ir/dtype.ts'
import type { Expr } from '../../ir/expr.ts'
import { arithmetic, COMPARE, convert, mathOf, wrap } from '../../ir/numeric.ts'
import { isCompare } from '../../ir/ops.ts'

export type Numbers = ArrayLike<number>

/** What one thread knows. */
export interface Frame {
  readonly vars: Map<string, number>
  /** Its own registers, as far as control flow depends on them. */
  readonly registers: Map<string, Float64Array>
  /** Arrays that no launch writes. */
  readonly arrays: ReadonlyMap<string, Numbers>
  /** Iterations followed. */
  steps: number
  /** Whether something that was not known has been assumed. */
  assumed: boolean
}

export type Value = (f: Frame) => number

export const isUnknown = Number.isNaN

/** Whether it holds; what is not known is assumed to. */
export function holds(value: number, f: Frame): boolean {
  if (!isUnknown(value)) return value !== 0
  f.assumed = true
  return true
}

/** Hardware indices are variables here, under their names. */
export function compileValue(e: Expr): Value {
  switch (e.kind) {
    case 'const': {
      const { value } = e
      return () => value
    }
    case 'var':
    case 'builtin': {
      const name = e.kind === 'var' ? e.name : e.axis
      return (f) => f.vars.get(name) ?? Number.NaN
    }
    case 'load': {
      const at = compileValue(e.index[0]!)
      const { buffer } = e
      return (f) => (f.registers.get(buffer) ?? f.arrays.get(buffer))?.[at(f)] ?? Number.NaN
    }
    case 'unary': {
      const x = compileValue(e.x)
      const of =
        e.op === 'not' ? (v: number) => (v === 0 ? 1 : 0) : (v: number) => wrap(computeType(e.dtype))(-v)
      return (f) => known(x(f), of)
    }
    case 'cast': {
      const x = compileValue(e.x)
      const of = convert(e.x.dtype, e.dtype)
      return (f) => known(x(f), of)
    }
    case 'binary':
      return binaryOf(e)
    case 'call': {
      const [x, y] = e.args.map(compileValue)
      const fn = mathOf(e.fn)
      return (f) => known(x!(f), (a) => (y ? known(y(f), (b) => fn(a, b)) : fn(a, 0)))
    }
    case 'select': {
      const [cond, then, otherwise] = [compileValue(e.cond), compileValue(e.then), compileValue(e.else)]
      return (f) => known(cond(f), (c) => (c !== 0 ? then(f) : otherwise(f)))
    }
    case 'search':
      return () => Number.NaN
  }
}

const known = (x: number, then: (x: number) => number): number => (isUnknown(x) ? x : then(x))

function binaryOf(e: Extract<Expr, { kind: 'binary' }>): Value {
  const [a, b] = [compileValue(e.a), compileValue(e.b)]
  if (e.op === 'and' || e.op === 'or') {
    // One side may decide alone.
    const decides = e.op === 'or'
    return (f) => {
      const x = a(f)
      if (!isUnknown(x) && (x !== 0) === decides) return Number(decides)
      const y = b(f)
      if (!isUnknown(y) && (y !== 0) === decides) return Number(decides)
      return isUnknown(x) || isUnknown(y) ? Number.NaN : Number(!decides)
    }
  }
  const of = isCompare(e.op) ? COMPARE[e.op] : arithmetic(e.op, computeType(e.dtype))
  return (f) => {
    const x = a(f)
    const y = b(f)
    return isUnknown(x) || isUnknown(y) ? Number.NaN : of(x, y)
  }
}
