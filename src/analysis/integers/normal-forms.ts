/**
 * Normal forms of integer expressions, in exact integers: sums over terms that consist of normal forms, so that equal
 * forms have equal values. 32-bit overflow is checked elsewhere.
 */

import { binary, div, type Expr, int, load, variable } from '../../ir/expressions/expr.ts'
import { perExpr } from '../../ir/expressions/expr-tree.ts'
import { matcher } from '../../ir/expressions/patterns.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { isWord } from '../../ir/values/dtype.ts'
import { gcd } from './divisors.ts'
import {
  constantSum,
  GivesUp,
  handy,
  keepTerms,
  type Linear,
  linear,
  linearKey,
  mapNumbers,
  minus,
  plus,
  shift,
  sumExpr,
} from './linear.ts'
import { neverNegative, type Premises } from './non-negative.ts'

export interface Table {
  /** An upper bound (inclusive) of all elements. */
  readonly fill: Expr
  /** The element at each known place, by the key of the place (sorts: the coordinate that has this place). */
  readonly places: ReadonlyMap<string, Expr>
  /** A value within `table[k] … table[k + 1] - 1`, by the key of the place k (ascending lists). */
  readonly found: ReadonlyMap<string, Expr>
}

/** Returns the key of a place in a table, from the normal forms of its indices. */
export const placeKey = (index: readonly Linear[]): string => index.map(linearKey).join('; ')

export interface FormPremises extends Premises {
  readonly tables: ReadonlyMap<string, Table>
}

/** Returns a function to normal forms under the facts; an expression without a normal form becomes an unknown. */
export const normalForms = (facts: FormPremises): ((e: Expr) => Linear) =>
  perExpr<Linear>((e, of) => {
    try {
      return handy(formOf(e, of, facts))
    } catch (error) {
      if (error instanceof GivesUp) return unknown(keyOf(e))
      throw error
    }
  })

const unknown = (key: string): Linear => linear(variable(`?${key}`))

function formOf(e: Expr, of: (e: Expr) => Linear, facts: FormPremises): Linear {
  if (!isWord(e.dtype)) return unknown(keyOf(e))
  switch (e.kind) {
    case 'const':
    case 'var':
      return linear(e)
    case 'unary':
      return e.op === 'neg' ? mapNumbers(of(e.x), (n) => -n) : unknown(keyOf(e))
    case 'binary':
      return binaryForm(e, of(e.a), of(e.b), facts)
    case 'cast':
      return isWord(e.x.dtype) ? of(e.x) : unknown(keyOf(e))
    case 'load': {
      const table = facts.tables.get(e.buffer)
      if (!table) return unknown(keyOf(e))
      const at = e.index.map(of)
      const placed = table.places.get(placeKey(at))
      return placed ? of(placed) : linear(load(e.buffer, at.map(exprOf), e.dtype))
    }
    default:
      return unknown(keyOf(e))
  }
}

function binaryForm(e: Extract<Expr, { kind: 'binary' }>, a: Linear, b: Linear, facts: FormPremises): Linear {
  const term = (): Linear => {
    const [x, y] = [a, b].map(exprOf).sort(bySize)
    return linear(binary(e.op, x!, y!))
  }
  switch (e.op) {
    case 'add':
      return plus(a, b)
    case 'sub':
      return minus(a, b)
    case 'mul':
      if (isConstant(b)) return mapNumbers(a, (n) => n * b.constant)
      return isConstant(a) ? mapNumbers(b, (n) => n * a.constant) : term()
    case 'div':
    case 'mod': {
      const by = b.constant
      if (!isConstant(b) || by <= 0) break
      const whole = quotient(a, by, facts)
      return e.op === 'div' ? whole : plus(a, whole, -by)
    }
    case 'min':
    case 'max': {
      const [low, high] = e.op === 'min' ? [a, b] : [b, a]
      if (neverNegative(minus(high, low), facts)) return a
      return neverNegative(minus(low, high), facts) ? b : term()
    }
    default:
      break
  }
  return unknown(`${e.op}(${linearKey(a)},${linearKey(b)})`)
}

/** Orders operands uniquely. Constants come first, because they decide at once. */
const bySize = (x: Expr, y: Expr): number =>
  linear(x).terms.size - linear(y).terms.size || (keyOf(x) <= keyOf(y) ? -1 : 1)

const isConstant = (f: Linear): boolean => f.terms.size === 0

/** Returns an expression of the sum that is identical for equal sums. */
const exprOf = ({ terms, constant }: Linear): Expr =>
  sumExpr({ terms: new Map([...terms].sort(([a], [b]) => (a < b ? -1 : 1))), constant })

export const isWithin = (f: Linear, end: Linear, facts: FormPremises): boolean =>
  neverNegative(f, facts) && neverNegative(shift(minus(end, f), -1), facts)

const inner = matcher(['div', 'x', 'c'])

/** Returns `floor(f / by)`, simplified by known ranges. */
function quotient(f: Linear, by: number, facts: FormPremises): Linear {
  if (by === 1) return f
  // Multiples of the divisor are taken out; the rest keeps its coefficients, or has their remainders.
  const split = (part: (n: number) => number): readonly [whole: Linear, rest: Linear] => {
    const rest = mapNumbers(f, part)
    return [mapNumbers(minus(f, rest), (n) => n / by), rest]
  }
  const remainder = (n: number): number => n - by * Math.floor(n / by)
  for (const [whole, rest] of [split((n) => (remainder(n) === 0 ? 0 : n)), split(remainder)]) {
    if (isConstant(rest)) return shift(whole, Math.floor(rest.constant / by))
    if (isWithin(rest, constantSum(by), facts)) return whole
  }
  const [whole, rest] = split(remainder)
  const common = [...rest.terms.values()].reduce((g, t) => gcd(g, t.coefficient), by)
  if (common > 1) {
    const less = mapNumbers(rest, (n) => Math.floor(n / common))
    return plus(whole, quotient(less, by / common, facts))
  }
  // floor((floor(x / a) + s) / c) = floor((x + a s) / (a c)) for integers s.
  for (const t of rest.terms.values()) {
    const nested = t.coefficient === 1 ? inner(t.term) : undefined
    if (!nested) continue
    const { value } = nested.c
    const sum = plus(
      linear(nested.x!),
      keepTerms(rest, (o) => o !== t),
      value,
    )
    return plus(whole, quotient(handy(sum), value * by, facts))
  }
  return plus(whole, linear(div(exprOf(rest), int(by))))
}
