/**
 * Proofs that a sum is never negative, to which other questions about integers are reduced. Terms are replaced one by
 * one by bounds that make the sum smaller, until only a constant remains.
 */
import { type Expr, int, sub } from '../../ir/expressions/expr.ts'
import { type Bindings, type Pattern, rulesOf } from '../../ir/expressions/patterns.ts'
import type { Linear, Term } from './linear.ts'
import { GivesUp, handy, keepTerms, linear, mapNumbers, minus, plus, shift } from './linear.ts'

export interface Premises {
  /** Sums that are known to be non-negative. */
  readonly assumptions: readonly Linear[]
  /**
   * Return lower bounds (`low`) and upper bounds (`high`) of a term. Bounds of a name are over names that are known
   * before that name.
   */
  low(term: Expr): readonly Linear[]
  high(term: Expr): readonly Linear[]
}

/** The number of steps left for all proofs of one question; without steps, nothing is proved. */
interface Budget {
  left: number
}

/** Returns whether `f >= 0` is proved under the premises. Up to two assumptions are subtracted first. */
export function neverNegative(f: Linear, premises: Premises): boolean {
  const budget = { left: 3000 }
  const { assumptions } = premises
  const holds = (sum: Linear): boolean => descend(sum, premises, budget)
  try {
    if (holds(f)) return true
    return assumptions.some((assumed, k) => {
      const less = minus(f, assumed)
      return holds(less) || assumptions.slice(k).some((more) => holds(minus(less, more)))
    })
  } catch (e) {
    if (e instanceof GivesUp) return false
    throw e
  }
}

function descend(f: Linear, premises: Premises, budget: Budget): boolean {
  if (--budget.left < 0) throw new GivesUp()
  const t = nextTerm(handy(f), premises)
  if (!t) return f.constant >= 0
  const { term, coefficient } = t
  const rest = keepTerms(f, (x) => x !== t)
  // An integer f is non-negative if and only if times · f > -times.
  const through = (bound: Linear, times = 1): boolean => {
    const scaled = mapNumbers(rest, (n) => n * times)
    return descend(shift(plus(scaled, bound, coefficient), times - 1), premises, budget)
  }
  const side = coefficient > 0 ? 'low' : 'high'
  if (premises[side](term).some((bound) => through(bound))) return true
  const [relaxed] = relaxationsOf(term)
  if (!relaxed) return false
  const { rule, found } = relaxed
  if (!rule[side]) return rule.oneOf?.(found).every((e) => through(linear(e))) ?? false
  const holds = rule.where?.(found).every((e) => descend(linear(e), premises, budget)) ?? true
  return holds && rule[side](found).some((e) => through(linear(e), rule.times?.(found)))
}

/** Returns the next term to replace: sizes come last, and names after terms that contain them. */
function nextTerm(f: Linear, premises: Premises): Term | undefined {
  const terms = [...f.terms.values()]
  return (
    terms.find((t) => t.term.kind !== 'var') ??
    terms.find((t) => premises.high(t.term).length > 0) ??
    terms[0]
  )
}

// Relaxation rules: bounds of terms, by which a proof eliminates the terms.

interface Relaxation {
  readonly name: string
  readonly match: Pattern
  /** The factor of the term in the bounded product; 1 by default. */
  readonly times?: (found: Bindings) => number
  /** Lower bounds (`low`) and upper bounds (`high`) of the product. */
  readonly low?: (found: Bindings) => readonly Expr[]
  readonly high?: (found: Bindings) => readonly Expr[]
  /** Expressions of which one equals the term. */
  readonly oneOf?: (found: Bindings) => readonly Expr[]
  /** Expressions that must not be negative for `low` to hold. */
  readonly where?: (found: Bindings) => readonly Expr[]
}

const both = ({ x, y }: Bindings): readonly Expr[] => [x!, y!]

export const RELAXATIONS: readonly Relaxation[] = [
  {
    name: 'quotient',
    match: ['div', 'x', 'c'],
    times: ({ c }) => c.value,
    low: ({ x, c }) => [sub(x!, int(c.value - 1))],
    high: ({ x }) => [x!],
  },
  { name: 'least', match: ['min', 'x', 'y'], high: both, oneOf: both },
  { name: 'most', match: ['max', 'x', 'y'], low: both, oneOf: both },
  { name: 'product', match: ['mul', 'x', 'y'], low: () => [int(0)], where: both },
]

const relaxationsOf = rulesOf(RELAXATIONS)
