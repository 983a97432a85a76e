/**
 * Proofs that a sum is never negative, to which other questions about integers come down: terms are replaced one by one by
 * what makes the sum smaller, until a constant is left that decides.
 */
import type { Expr } from '../../ir/expr.ts'
import {
  GivesUp,
  handy,
  keepTerms,
  type Linear,
  linear,
  mapNumbers,
  minus,
  plus,
  shift,
  type Term,
} from './linear.ts'
import { relaxationOf } from './relaxations.ts'

/** What proofs follow from. */
export interface Premises {
  /** Sums that are 0 or more. */
  readonly assumptions: readonly Linear[]
  /** Sums that a term is not less than, and not greater than; of a name, over names that are known before it. */
  low(term: Expr): readonly Linear[]
  high(term: Expr): readonly Linear[]
}

/** Steps of all proofs of one question; beyond them nothing is proved. */
interface Budget {
  left: number
}

/** Whether `f >= 0` wherever the premises hold. Up to two assumptions are taken off first. `false`: not proved. */
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
  // An integer is 0 or more exactly if so many times it is greater than -times.
  const through = (bound: Linear, times = 1): boolean => {
    const scaled = mapNumbers(rest, (n) => n * times)
    return descend(shift(plus(scaled, bound, coefficient), times - 1), premises, budget)
  }
  const side = coefficient > 0 ? 'low' : 'high'
  if (premises[side](term).some((bound) => through(bound))) return true
  const relaxed = relaxationOf(term)
  if (!relaxed) return false
  const { rule, found } = relaxed
  if (!rule[side]) return rule.oneOf?.(found).every((e) => through(linear(e))) ?? false
  const holds = rule.where?.(found).every((e) => descend(linear(e), premises, budget)) ?? true
  return holds && rule[side](found).some((e) => through(linear(e), rule.times?.(found)))
}

/** Sizes last, and names after what is made of them. */
function nextTerm(f: Linear, premises: Premises): Term | undefined {
  const terms = [...f.terms.values()]
  return (
    terms.find((t) => t.term.kind !== 'var') ??
    terms.find((t) => premises.high(t.term).length > 0) ??
    terms[0]
  )
}
