/** Divisibility and equality of sizes. What is known of sizes, and what follows for expressions over them. */
import { conjuncts, type Expr } from '../../ir/expr.ts'
import { perExpr } from '../../ir/expr-tree.ts'
import type { Fact } from '../../ir/loops.ts'
import type { Linear } from './linear.ts'

export const gcd = (a: number, b: number): number => (b === 0 ? Math.abs(a) : gcd(b, a % b))

/**
 * The largest known divisor of an integer expression; 0 where it is always 0. `factor` says what divides variables
 * and other leaves (1 where nothing is known).
 */
export const divisor = (e: Expr, factor: (leaf: Expr) => number): number =>
  perExpr<number>((x, of) => divisorFrom(x, of, factor))(e)

function divisorFrom(e: Expr, of: (e: Expr) => number, factor: (leaf: Expr) => number): number {
  if (e.kind === 'const') return Math.abs(e.value)
  if (e.kind === 'binary') {
    const a = (): number => of(e.a)
    const b = (): number => of(e.b)
    switch (e.op) {
      case 'mul':
        return a() * b()
      case 'add':
      case 'sub':
      case 'min':
      case 'max':
        return gcd(a(), b())
      case 'mod':
      case 'rem':
        return gcd(a(), b())
      case 'div':
      case 'quo': {
        const by = e.b.kind === 'const' ? e.b.value : 0
        if (by <= 0) return 1
        // What is short of a whole is cut off.
        const whole = of(withoutRest(e.a, by))
        return whole % by === 0 ? whole / by : 1
      }
      default:
        return 1
    }
  }
  if (e.kind === 'select') return gcd(of(e.then), of(e.else))
  return Math.max(1, factor(e))
}

/** `e`, or what a rest of less than `by` is added to: of multiples of `by`, division cuts that off. */
const withoutRest = (e: Expr, by: number): Expr =>
  e.kind === 'binary' && e.op === 'add' && e.b.kind === 'const' && e.b.value >= 0 && e.b.value < by ? e.a : e

/** What divides the terms of a sum, its constant aside; 0 where there are none. */
export const divisorOfTerms = ({ terms }: Pick<Linear, 'terms'>, factor: (leaf: Expr) => number): number =>
  [...terms.values()].reduce((n, t) => gcd(n, Math.abs(t.coefficient) * divisor(t.term, factor)), 0)

/** Divisors of sizes that the facts give. */
export function divisorsOf(facts: readonly Fact[] | undefined): (leaf: Expr) => number {
  const known = new Map<string, number>()
  for (const f of facts ?? []) {
    const before = known.get(f.size) ?? 1
    known.set(f.size, (before * f.by) / Math.max(1, gcd(before, f.by)))
  }
  return (leaf) => (leaf.kind === 'var' ? (known.get(leaf.name) ?? 1) : 1)
}

/**
 * What a condition says of sizes where it holds: that they are multiples. `defined` gives the values of names that stand
 * for expressions.
 */
export function factsOf(cond: Expr, defined?: (name: string) => Expr | undefined): readonly Fact[] {
  const named = (e: Expr): Expr => (e.kind === 'var' && defined?.(e.name)) || e
  const c = named(cond)
  if (c.kind !== 'binary') return []
  if (c.op === 'and') return conjuncts(c).flatMap((x) => factsOf(x, defined))
  const rest = named(c.a)
  if (c.op !== 'eq' || c.b.kind !== 'const' || c.b.value !== 0 || rest.kind !== 'binary') return []
  const size = named(rest.a)
  const divides = (rest.op === 'mod' || rest.op === 'rem') && rest.b.kind === 'const' && rest.b.value > 0
  return divides && size.kind === 'var' ? [{ size: size.name, relation: 'multiple', by: rest.b.value }] : []
}

/** Whether `e` is a multiple of `by` for all sizes that the facts allow. */
export const isMultiple = (e: Expr, by: number, facts: readonly Fact[] | undefined): boolean =>
  divisor(e, divisorsOf(facts)) % by === 0

/** The first fact that these sizes contradict. */
export const brokenFact = (
  facts: readonly Fact[] | undefined,
  sizes: ReadonlyMap<string, number>,
): Fact | undefined =>
  facts?.find((f) => {
    const value = sizes.get(f.size)
    return value !== undefined && (f.relation === 'equal' ? value !== f.by : value % f.by !== 0)
  })

export const factText = (f: Fact): string =>
  f.relation === 'equal' ? `${f.size} == ${f.by}` : `${f.size} % ${f.by} == 0`
