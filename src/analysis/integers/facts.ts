/**
 * What is known of integers where an expression stands, and what follows from it: bounds, signs, divisors, conditions that
 * hold. Conclusions are one-sided: what is not proved may hold as well. Sums and products are taken not to wrap.
 */
import { conjuncts, type Expr } from '../../ir/expr.ts'
import { children, perExpr, readsAny } from '../../ir/expr-tree.ts'
import { keyOf } from '../../ir/keys.ts'
import type { Fact } from '../../ir/loops.ts'
import { BOUND_RULES, type Bounds, isBelowBy } from './bound-rules.ts'
import { divisorsBy, gcd } from './divisors.ts'
import { HIGHEST, type Interval, intervalOf, isNonNegative, LOWEST, narrowed } from './interval.ts'
import type { Linear } from './linear.ts'
import type { KnownRange } from './ranges.ts'

/** What is known from the start, of names and arrays. */
export interface Known {
  readonly sizes?: readonly Fact[] | undefined
  /** Values of names that stand for expressions. */
  readonly defined?: (name: string) => Expr | undefined
  /** What a variable, or what an array holds, is below; neither is negative then. */
  readonly end?: (leaf: Expr) => Expr | undefined
  readonly range?: KnownRange
}

export class Facts implements Bounds {
  readonly #known: Known
  readonly #factors: ReadonlyMap<string, number>
  /** By key of an expression: what it is less than. */
  readonly #ends: Map<string, readonly Expr[]>
  /** Keys of expressions that are not negative. */
  readonly #natural: Set<string>
  // What has been asked since the last fact came.
  #ranges: ((e: Expr) => Interval) | undefined
  #below = new Map<string, (e: Expr) => boolean>()

  constructor(known: Known = {}, around?: Facts) {
    this.#known = known
    this.#factors = factorsOf(this.ofSizes)
    this.#ends = new Map(around ? around.#ends : [])
    this.#natural = new Set(around ? around.#natural : [])
  }

  /** What is known of sizes. */
  get ofSizes(): readonly Fact[] {
    return this.#known.sizes ?? []
  }

  /** A copy to extend in an inner scope. */
  child(): Facts {
    return new Facts(this.#known, this)
  }

  /** What is known where sizes are such, too. */
  with(sizes: readonly Fact[]): Facts {
    if (sizes.length === 0) return this
    return new Facts({ ...this.#known, sizes: [...this.ofSizes, ...sizes] }, this)
  }

  /** What is known of sizes where a condition holds. */
  where(cond: Expr): Facts {
    return this.with(this.multiples(cond))
  }

  // --- what comes to be known ---

  /** `0 <= e < end`. */
  coordinate(e: Expr, end: Expr): void {
    this.#isNatural(e)
    this.#isBelow(e, end)
  }

  /** A condition that holds in this scope, where `written` is: what reads that holds only until then. */
  holds(cond: Expr, written: ReadonlySet<string> = new Set()): void {
    for (const c of conjuncts(cond)) {
      if (c.kind !== 'binary' || c.a.dtype !== 'i32' || readsAny(c, written)) continue
      if (c.op === 'lt') this.#isBelow(c.a, c.b)
      if (c.op === 'ge' && c.b.kind === 'const' && c.b.value >= 0) this.#isNatural(c.a)
    }
  }

  #isBelow(e: Expr, end: Expr): void {
    this.#ends.set(keyOf(e), [...(this.#ends.get(keyOf(e)) ?? []), end])
    this.#forget()
  }

  #isNatural(e: Expr): void {
    this.#natural.add(keyOf(e))
    this.#forget()
  }

  #forget(): void {
    this.#ranges = undefined
    this.#below.clear()
  }

  /** What a condition says of sizes where it holds: that they are multiples. */
  multiples(cond: Expr): readonly Fact[] {
    const named = (e: Expr): Expr => (e.kind === 'var' && this.#known.defined?.(e.name)) || e
    return conjuncts(named(cond)).flatMap((term): readonly Fact[] => {
      const c = named(term)
      if (c.kind !== 'binary') return []
      if (c.op === 'and') return this.multiples(c)
      const rest = named(c.a)
      if (c.op !== 'eq' || c.b.kind !== 'const' || c.b.value !== 0 || rest.kind !== 'binary') return []
      const size = named(rest.a)
      const divides = (rest.op === 'mod' || rest.op === 'rem') && rest.b.kind === 'const' && rest.b.value > 0
      return divides && size.kind === 'var'
        ? [{ size: size.name, relation: 'multiple', by: rest.b.value }]
        : []
    })
  }

  // --- what follows ---

  /** What divides an expression; 0 where it is always 0. */
  readonly divisor: (e: Expr) => number = divisorsBy((leaf): number => {
    const value = leaf.kind === 'var' ? this.#known.defined?.(leaf.name) : undefined
    if (value) return this.divisor(value)
    return leaf.kind === 'var' ? (this.#factors.get(leaf.name) ?? 1) : 1
  })

  /** What divides the terms of a sum, its constant aside; 0 where there are none. */
  divisorOfTerms({ terms }: Linear): number {
    return [...terms.values()].reduce((n, t) => gcd(n, Math.abs(t.coefficient) * this.divisor(t.term)), 0)
  }

  isMultiple(e: Expr, by: number): boolean {
    return this.divisor(e) % by === 0
  }

  /** Bounds of an expression. */
  readonly range = (e: Expr): Interval => {
    this.#ranges ??= perExpr<Interval>((x, of) => {
      const own = this.#known.range?.(x, of) ?? intervalOf(x, children(x).map(of))
      const ends = this.ends(x).flatMap((n) => (n.kind === 'const' ? [n.value - 1] : []))
      const natural = this.#natural.has(keyOf(x)) || this.#known.end?.(x)
      return ends.length === 0 && !natural
        ? own
        : narrowed(own, natural ? 0 : LOWEST, Math.min(HIGHEST, ...ends))
    })
    return this.#ranges(e)
  }

  nonNegative(e: Expr): boolean {
    return isNonNegative(this.range(e))
  }

  ends(e: Expr): readonly Expr[] {
    const known = this.#ends.get(keyOf(e)) ?? []
    const end = this.#known.end?.(e)
    return end ? [...known, end] : known
  }

  /** Whether `e < end`. */
  below(e: Expr, end: Expr): boolean {
    const key = keyOf(end)
    let of = this.#below.get(key)
    if (!of) {
      of = perExpr<boolean>((x) => {
        const { knownHi, hi } = this.range(x)
        return (
          (end.kind === 'const' && knownHi && hi < end.value) ||
          BOUND_RULES.some((r) => isBelowBy(r, x, end, this))
        )
      })
      this.#below.set(key, of)
    }
    return of(e)
  }

  /** Whether a condition holds. */
  implies(cond: Expr): boolean {
    if (cond.kind === 'const') return cond.value !== 0
    if (cond.kind !== 'binary') return false
    if (cond.op === 'and') return this.implies(cond.a) && this.implies(cond.b)
    if (cond.op === 'lt') return this.below(cond.a, cond.b)
    return cond.op === 'ge' && cond.b.kind === 'const' && cond.b.value <= 0 && this.nonNegative(cond.a)
  }
}

/** Divisors of sizes. */
function factorsOf(facts: readonly Fact[]): ReadonlyMap<string, number> {
  const known = new Map<string, number>()
  for (const f of facts) {
    const before = known.get(f.size) ?? 1
    known.set(f.size, (before * f.by) / Math.max(1, gcd(before, f.by)))
  }
  return known
}

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
