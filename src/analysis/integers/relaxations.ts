/** Rules of what terms lie between, by which a proof does without them. */
import { type Expr, int, sub } from '../../ir/expr.ts'
import { type Found, matcher, type Pattern } from '../../ir/patterns.ts'

export interface Relaxation {
  readonly name: string
  readonly of: Pattern
  /** What is bounded is so many times the term. */
  readonly times?: (found: Found) => number
  /** None is greater than the term, and none of `high` less. */
  readonly low?: (found: Found) => readonly Expr[]
  readonly high?: (found: Found) => readonly Expr[]
  /** The term is one of these. */
  readonly oneOf?: (found: Found) => readonly Expr[]
  /** What must not be negative for `low` to hold. */
  readonly where?: (found: Found) => readonly Expr[]
}

const both = ({ x, y }: Found): readonly Expr[] => [x!, y!]

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

/** The rule for a term, and what its letters are. */
export function relaxationOf(e: Expr): { readonly rule: Relaxation; readonly found: Found } | undefined {
  for (const { rule, match } of matchers) {
    const found = match(e)
    if (found) return { rule, found }
  }
  return undefined
}
