/** Linear (affine) forms: integer expressions as sums `Σ coefficient · term + constant`, and arithmetic on such sums. */

import { add, coordinateIn, type Expr, int, isZero, mul, variable } from '../../ir/expressions/expr.ts'
import { mentions, mentionsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { memoize } from '../../ir/memoize.ts'
import type { For } from '../../ir/statements/loops.ts'

export interface Term<T = Expr> {
  readonly term: T
  readonly coefficient: number
}

export interface Linear<T = Expr> {
  /** The terms by key: expressions that are not sums, products with a constant, or constants. No coefficient is 0. */
  readonly terms: ReadonlyMap<string, Term<T>>
  readonly constant: number
}

export const linear = memoize((e: Expr): Linear => {
  const terms = new Map<string, Term>()
  let constant = 0
  for (const [x, scale] of summands(e)) {
    if (x.kind === 'const') constant += scale * x.value
    else addTerm(terms, keyOf(x), x, scale)
  }
  return { terms, constant }
})

/** Returns NaN for a number beyond the exact integers, so that no conclusion follows from it. */
const exact = (n: number): number => (Number.isSafeInteger(n) ? n + 0 : Number.NaN)

function addTerm<T>(terms: Map<string, Term<T>>, key: string, term: T, by: number): void {
  const coefficient = exact((terms.get(key)?.coefficient ?? 0) + by)
  if (coefficient === 0) terms.delete(key)
  else terms.set(key, { term, coefficient })
}

/** Returns the summands with their constant factors, each node once, in the order of the text. */
function summands(e: Expr): readonly (readonly [x: Expr, scale: number])[] {
  if (!summandsOf(e)) return [[e, 1]]
  const order: Expr[] = []
  const seen = new Set<Expr>()
  const visit = (x: Expr): void => {
    if (seen.has(x)) return
    seen.add(x)
    for (const [c] of summandsOf(x) ?? []) visit(c)
    order.push(x)
  }
  visit(e)
  // Each node comes after all sums that contain it.
  const scales = new Map<Expr, number>([[e, 1]])
  for (const x of order.reverse())
    for (const [c, factor] of summandsOf(x) ?? [])
      scales.set(c, (scales.get(c) ?? 0) + factor * scales.get(x)!)
  // If a factor is beyond the exact integers, the expression is a single term.
  if (![...scales.values()].every(Number.isSafeInteger)) return [[e, 1]]
  return order.reverse().flatMap((x) => (summandsOf(x) ? [] : [[x, scales.get(x)!] as const]))
}

function summandsOf(x: Expr): readonly (readonly [x: Expr, factor: number])[] | undefined {
  if (x.kind === 'unary' && x.op === 'neg') return [[x.x, -1]]
  const coordinate = coordinateIn(x)
  if (coordinate) return [[coordinate, 1]]
  if (x.kind !== 'binary') return undefined
  if (x.op === 'add' || x.op === 'sub')
    return [
      [x.a, 1],
      [x.b, x.op === 'add' ? 1 : -1],
    ]
  if (x.op === 'mul' && x.b.kind === 'const') return [[x.a, x.b.value]]
  if (x.op === 'mul' && x.a.kind === 'const') return [[x.b, x.a.value]]
  return undefined
}

/** Returns `a + scale · b`. */
export function plus<T>(a: Linear<T>, b: Linear<T>, scale = 1): Linear<T> {
  const terms = new Map(a.terms)
  for (const [key, t] of b.terms) addTerm(terms, key, t.term, exact(scale * t.coefficient))
  return { terms, constant: exact(a.constant + exact(scale * b.constant)) }
}

export const minus = <T>(a: Linear<T>, b: Linear<T>): Linear<T> => plus(a, b, -1)

export const shift = <T>({ terms, constant }: Linear<T>, by: number): Linear<T> => ({
  terms,
  constant: exact(constant + by),
})

export const mapNumbers = <T>({ terms, constant }: Linear<T>, f: (n: number) => number): Linear<T> => ({
  terms: new Map(
    [...terms].flatMap(([key, { term, coefficient }]) => {
      const to = exact(f(coefficient))
      return to === 0 ? [] : [[key, { term, coefficient: to }]]
    }),
  ),
  constant: exact(f(constant)),
})

/** Returns the expression of a sum, in the order of its terms. */
export const sumExpr = ({ terms, constant }: Linear): Expr =>
  add(
    [...terms.values()].reduce((sum: Expr, t) => add(sum, mul(t.term, int(t.coefficient))), int(0)),
    int(constant),
  )

export const termsWith = ({ terms }: Linear, name: string): readonly Term[] =>
  [...terms.values()].filter((t) => mentions(t.term, name))

export const rises = (e: Expr, ...names: readonly string[]): boolean =>
  names.every((name) => termsWith(linear(e), name).every((t) => t.term.kind === 'var' && t.coefficient > 0))

/** Returns the coefficient of a variable; 0 if it is not a term. */
export const coefficientOf = (e: Expr, name: string): number =>
  linear(e).terms.get(keyOf(variable(name)))?.coefficient ?? 0

export const keepTerms = <T>(
  { terms, constant }: Linear<T>,
  keep: (t: Term<T>, key: string) => boolean,
): Linear<T> => ({ terms: new Map([...terms].filter(([key, t]) => keep(t, key))), constant })

/** Thrown by a proof whose numbers or sizes become too large. */
export class GivesUp extends Error {}

const MOST_TERMS = 40

/** Returns the sum if it has few terms and exact numbers. @throws GivesUp */
export function handy(sum: Linear): Linear {
  const isExact = [...sum.terms.values()].every((t) => Number.isSafeInteger(t.coefficient))
  if (sum.terms.size > MOST_TERMS || !isExact || !Number.isSafeInteger(sum.constant)) throw new GivesUp()
  return sum
}

export const constantSum = (constant: number): Linear => ({ terms: new Map(), constant })

/** Returns a text that is equal exactly for equal sums, regardless of the order of terms. */
export function linearKey<T>(l: Linear<T>): string {
  const parts = [...l.terms].map(([key, t]) => `${t.coefficient}·${key}`).sort()
  return [...parts, String(l.constant)].join(' + ')
}

export const sameSum = (a: Expr, b: Expr): boolean => a === b || linearKey(linear(a)) === linearKey(linear(b))

/** Returns a text that is equal for equivalent bounds `a < b`; for other conditions their key. */
export const boundKey = (cond: Expr): string =>
  cond.kind === 'binary' && cond.op === 'lt'
    ? `0 < ${linearKey(minus(linear(cond.b), linear(cond.a)))}`
    : keyOf(cond)

/**
 * Returns the coefficients of a sum in `variables`, by variable: expressions that do not mention `variables`. Returns
 * null if the expression is not such a sum.
 */
export function coefficientsOf(e: Expr, variables: ReadonlySet<string>): ReadonlyMap<string, Expr> | null {
  const out = new Map<string, Expr>()
  const isFree = (x: Expr): boolean => !mentionsSome(x, variables)
  const go = (part: Expr, scale: Expr): boolean =>
    summands(part).every(([x, by]): boolean => {
      const factor = mul(scale, int(by))
      if (isFree(x)) return true
      if (x.kind === 'var') {
        out.set(x.name, add(out.get(x.name) ?? int(0), factor))
        return true
      }
      if (x.kind !== 'binary' || x.op !== 'mul') return false
      if (isFree(x.b)) return go(x.a, mul(x.b, factor))
      return isFree(x.a) && go(x.b, mul(x.a, factor))
    })
  return go(e, int(1)) ? new Map([...out].filter(([, c]) => !isZero(c))) : null
}

export type Loops = ReadonlyMap<string, For>
/** The extents of variables that start at 0. */
export type Extents = ReadonlyMap<string, { readonly extent: Expr }>

export const loopMap = (path: readonly For[]): Loops => new Map(path.map((l) => [l.var, l]))
