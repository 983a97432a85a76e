/**
 * Facts about integers in a scope, and conclusions from them: bounds, signs, divisors, and conditions that hold.
 * Conclusions are one-sided: a statement without a proof may hold as well. Sums and products of sizes and coordinates
 * are assumed not to wrap; sums and products of data may wrap (`ranges.ts`).
 */

import { conjuncts, type Expr, int } from '../../ir/expressions/expr.ts'
import { perExpr, readsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../ir/expressions/structural-equality.ts'
import { buffersByName } from '../../ir/statements/definitions.ts'
import type { Buffer, Fact, For, Kernel2 } from '../../ir/statements/loops.ts'
import { isWord } from '../../ir/values/dtype.ts'
import { type Bounds, endsBy } from './bound-rules.ts'
import { divisorsBy, gcd } from './divisors.ts'
import { HIGHEST, type Interval, isNonNegative, LOWEST } from './interval.ts'
import { constantSum, type Linear, linear, linearKey, minus, shift } from './linear.ts'
import { neverNegative } from './non-negative.ts'
import { type FormPremises, isWithin, normalForms, type Table } from './normal-forms.ts'
import { type Register, registersBy } from './ranges.ts'
import { tileSize, tilings } from './tiles.ts'

export interface Known {
  readonly sizes?: readonly Fact[] | undefined
  /** Returns the expression that a name stands for; undefined for other names. */
  readonly defined?: (name: string) => Expr | undefined
  /**
   * Returns the upper bound (exclusive) of a variable or array element, which is then not negative; undefined if
   * unknown.
   */
  readonly end?: (leaf: Expr) => Expr | undefined
  /** Returns whether an expression may wrap like data, because no check of sizes covers it. */
  readonly ofData?: (e: Expr) => boolean
}

/** The maximum number of derived upper bounds of an expression, which otherwise multiply with its depth. */
const MOST_ENDS = 16

export class Facts implements Bounds, FormPremises {
  readonly #factors: ReadonlyMap<string, number>
  /** Upper bounds (exclusive), by the key of the expression. */
  readonly #ends: Map<string, readonly Expr[]>
  /** Lower bounds, by the key of the expression. */
  readonly #least: Map<string, number>
  /** Keys of coordinates, which are not data even if they are loaded. */
  readonly #coordinates: Set<string>
  /** Sums that are known to be non-negative. */
  readonly assumptions: readonly Linear[]
  readonly #tables: Map<string, Table>
  /** Values of conditions, by their keys. */
  readonly #decided: Map<string, boolean>
  // Caches, which each new fact clears.
  #forms: ((e: Expr) => Linear) | undefined
  #registers: ((e: Expr) => Register) | undefined
  #allEnds: ((e: Expr) => readonly Expr[]) | undefined

  constructor(
    private readonly known: Known = {},
    around?: Facts,
    assumptions: readonly Linear[] = [],
  ) {
    this.#factors = factorsOf(this.ofSizes)
    this.#ends = new Map(around ? around.#ends : [])
    this.#least = new Map(around ? around.#least : [])
    this.#coordinates = new Set(around ? around.#coordinates : [])
    this.assumptions = [...(around?.assumptions ?? []), ...assumptions]
    this.#tables = new Map(around?.tables)
    this.#decided = new Map(around ? around.#decided : [])
  }

  get ofSizes(): readonly Fact[] {
    return this.known.sizes ?? []
  }

  get tables(): ReadonlyMap<string, Table> {
    return this.#tables
  }

  child(): Facts {
    return new Facts(this.known, this)
  }

  with(sizes: readonly Fact[]): Facts {
    if (sizes.length === 0) return this
    return new Facts({ ...this.known, sizes: [...this.ofSizes, ...sizes] }, this)
  }

  assuming(sums: readonly Linear[]): Facts {
    return new Facts(this.known, this, sums)
  }

  /** Returns the facts about sizes where a condition holds. */
  where(cond: Expr): Facts {
    return this.with(this.multiples(cond))
  }

  // --- adding facts ---

  /** Adds `0 <= e < end`. */
  coordinate(e: Expr, end: Expr): void {
    this.#coordinates.add(keyOf(e))
    this.atLeast(e, 0)
    this.isBelow(e, end)
  }

  /**
   * Adds a condition that holds in this scope, without conjuncts that read `written` buffers: these hold only until the
   * write.
   */
  holds(cond: Expr, written: ReadonlySet<string> = new Set()): void {
    for (const c of conjuncts(cond)) {
      if (readsSome(c, written)) continue
      this.#decided.set(keyOf(c), true)
      if (c.kind !== 'binary' || !isWord(c.a.dtype)) continue
      if (c.op === 'lt') this.isBelow(c.a, c.b)
      if (c.op === 'ge' && c.b.kind === 'const' && c.b.value >= 0) this.atLeast(c.a, c.b.value)
    }
  }

  /** Adds a condition that does not hold in this scope. */
  refuted(cond: Expr): void {
    this.#decided.set(keyOf(cond), false)
    if (cond.kind === 'binary' && cond.op === 'lt' && cond.a.kind === 'const' && isWord(cond.a.dtype))
      this.isBelow(cond.b, int(cond.a.value + 1))
  }

  /** Adds `e < end`. */
  isBelow(e: Expr, end: Expr): void {
    this.#ends.set(keyOf(e), [...(this.#ends.get(keyOf(e)) ?? []), end])
    this.#forget()
  }

  /** Adds `e >= least`. */
  atLeast(e: Expr, least: number): void {
    this.#least.set(keyOf(e), Math.max(least, this.#least.get(keyOf(e)) ?? least))
    this.#forget()
  }

  table(name: string, holds: Table): void {
    this.#tables.set(name, holds)
    this.#forget()
  }

  #forget(): void {
    this.#forms = undefined
    this.#registers = undefined
    this.#allEnds = undefined
  }

  /** Returns the facts about sizes that a condition implies: sizes that are multiples of a constant. */
  multiples(cond: Expr): readonly Fact[] {
    const named = (e: Expr): Expr => (e.kind === 'var' && this.known.defined?.(e.name)) || e
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

  // --- conclusions ---

  /** Returns a divisor of an expression; 0 if it is always 0. */
  readonly divisor: (e: Expr) => number = divisorsBy((leaf): number => {
    const value = leaf.kind === 'var' ? this.known.defined?.(leaf.name) : undefined
    if (value) return this.divisor(value)
    return leaf.kind === 'var' ? (this.#factors.get(leaf.name) ?? 1) : 1
  })

  /** Returns a divisor of the terms of a sum, without its constant; 0 if it has no terms. */
  divisorOfTerms({ terms }: Linear): number {
    return [...terms.values()].reduce((n, t) => gcd(n, Math.abs(t.coefficient) * this.divisor(t.term)), 0)
  }

  isMultiple(e: Expr, by: number): boolean {
    return this.divisor(e) % by === 0
  }

  /** Returns the range of an expression's value in its type. */
  readonly range = (e: Expr): Interval => this.#register(e).range

  /** Returns whether an expression may have wrapped, so that it may differ from its exact value. */
  readonly wraps = (e: Expr): boolean => this.#register(e).wraps

  #register(e: Expr): Register {
    this.#registers ??= registersBy((x) => {
      const ends = this.#knownEnds(x).flatMap((n) => (n.kind === 'const' ? [n.value - 1] : []))
      const least = this.#leastOf(x)
      if (ends.length === 0 && least === undefined)
        return this.known.ofData?.(x) ? { ofData: true } : undefined
      const within = [least ?? LOWEST, Math.min(HIGHEST, ...ends)] as const
      const isCoordinate = this.#coordinates.has(keyOf(x)) || this.known.end?.(x) !== undefined
      return isCoordinate ? { within, ofData: false } : { within }
    })
    return this.#registers(e)
  }

  #leastOf(e: Expr): number | undefined {
    return this.#least.get(keyOf(e)) ?? (this.known.end?.(e) ? 0 : undefined)
  }

  #knownEnds(e: Expr): readonly Expr[] {
    const known = this.#ends.get(keyOf(e)) ?? []
    const end = this.known.end?.(e)
    return end ? [...known, end] : known
  }

  readonly form = (e: Expr): Linear => {
    this.#forms ??= normalForms(this)
    return this.#forms(e)
  }

  /** Returns whether `a <= b` is proved. */
  provesOrder(a: Expr, b: Expr): boolean {
    return neverNegative(minus(this.form(b), this.form(a)), this)
  }

  /** Returns whether `0 <= e < end` is proved. */
  provesWithin(e: Expr, end: Expr): boolean {
    return isWithin(this.form(e), this.form(end), this)
  }

  low(term: Expr): readonly Linear[] {
    const least = this.#leastOf(term)
    return [...(least === undefined ? [] : [constantSum(least)]), ...this.#near(term, 1)]
  }

  high(term: Expr): readonly Linear[] {
    return [...this.#near(term, 0), ...this.#knownEnds(term).map((end) => shift(this.form(end), -1))]
  }

  /**
   * Returns bounds of an element of a list, from values that are in the segment which begins or ends at this element.
   */
  #near(e: Expr, distance: 0 | 1): readonly Linear[] {
    const table = e.kind === 'load' ? this.tables.get(e.buffer) : undefined
    if (e.kind !== 'load' || !table) return []
    const of = table.found.get(linearKey(shift(linear(e.index[0]!), -distance)))
    const value = of ? [shift(this.form(of), distance)] : []
    return [...value, distance === 0 ? this.form(table.fill) : constantSum(0)]
  }

  nonNegative(e: Expr): boolean {
    return isNonNegative(this.range(e))
  }

  readonly ends = (e: Expr): readonly Expr[] => {
    this.#allEnds ??= perExpr<readonly Expr[]>((x) => [
      ...this.#knownEnds(x),
      ...endsBy(x, this).slice(0, MOST_ENDS),
    ])
    return this.#allEnds(e)
  }

  /** Returns whether `e < end` is known. */
  below(e: Expr, end: Expr): boolean {
    const [mine, its] = [this.range(e), this.range(end)]
    if (mine.knownHi && its.knownLo && mine.hi < its.lo) return true
    return this.ends(e).some((x) => {
      if (sameExpr(x, end)) return true
      if (x.kind === 'binary' && x.op === 'min') return sameExpr(x.a, end) || sameExpr(x.b, end)
      // 0 <= e < ceildiv(X, c) implies that X is positive, so ceildiv(X, c) <= X.
      return tilings(x).length > 0 && tileSize(x, end) !== undefined && this.nonNegative(e)
    })
  }

  /** Returns the value of a condition that was added; undefined for other conditions. */
  decided(cond: Expr): boolean | undefined {
    return this.#decided.get(keyOf(cond))
  }

  implies(cond: Expr): boolean {
    if (cond.kind === 'const') return cond.value !== 0
    if (cond.kind !== 'binary') return false
    if (cond.op === 'and') return this.implies(cond.a) && this.implies(cond.b)
    // Rules are about integers: a float may be NaN, and a remainder of floats may be rounded up to the divisor.
    if (!isWord(cond.a.dtype) || !isWord(cond.b.dtype)) return false
    if (cond.op === 'lt') return this.below(cond.a, cond.b)
    return cond.op === 'ge' && cond.b.kind === 'const' && cond.b.value <= 0 && this.nonNegative(cond.a)
  }
}

/** Returns the facts inside of loops of a kernel: requirements, extents of the loops, and bounds of index arrays. */
export function factsInside(
  path: readonly For[],
  kernel: Pick<Kernel2, 'buffers' | 'body' | 'facts'>,
): Facts {
  const { buffers, body, facts: sizes } = kernel
  let named: ReadonlyMap<string, Buffer> | undefined
  const end = (leaf: Expr): Expr | undefined => {
    if (leaf.kind === 'var') return path.findLast((l) => l.var === leaf.name)?.extent
    if (leaf.kind !== 'load') return undefined
    named ??= buffersByName(buffers, body)
    return named.get(leaf.buffer)?.below
  }
  return new Facts({ sizes, end })
}

function factorsOf(facts: readonly Fact[]): ReadonlyMap<string, number> {
  const known = new Map<string, number>()
  for (const f of facts) {
    const before = known.get(f.size) ?? 1
    known.set(f.size, (before * f.by) / Math.max(1, gcd(before, f.by)))
  }
  return known
}
