/** Relaxation rules: bounds of terms, by which a proof eliminates the terms. */
import { type Expr, int, sub } from '../../ir/expressions/expr.ts'
import { type Bindings, matcher, type Pattern } from '../../ir/expressions/patterns.ts'

export interface Relaxation {
  readonly name: string
  readonly of: Pattern
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
    of: ['div', 'x', 'c'],
    times: ({ c }) => c.value,
    low: ({ x, c }) => [sub(x!, int(c.value - 1))],
    high: ({ x }) => [x!],
  },
  { name: 'least', of: ['min', 'x', 'y'], high: both, oneOf: both },
  { name: 'most', of: ['max', 'x', 'y'], low: both, oneOf: both },
  { name: 'product', of: ['mul', 'x', 'y'], low: () => [int(0)], where: both },
]

const matchers = RELAXATIONS.map((rule) => ({ rule, match: matcher(rule.of) }))

/** Returns the rule for a term, with the values of its letters; undefined if there is no rule. */
export function relaxationOf(e: Expr): { readonly rule: Relaxation; readonly found: Bindings } | undefined {
  for (const { rule, match } of matchers) {
    const found = match(e)
    if (found) return { rule, found }
  }
  return undefined
}
