/**
 * What is known about coordinates while a nest is lowered, so that range checks appear only where they must:
 * bounds of iterators, and the `where` conditions in force. All proofs are syntactic and one-sided: "not
 * proved" only costs a check at run time.
 */
import { ceildiv, type Expr } from '../../ir/expr.ts'
import { keyOf, sameExpr } from '../../ir/keys.ts'

export class Facts {
  /** Key of a non-negative expression → expressions it is known to be less than. */
  readonly #below = new Map<string, Expr[]>()
  readonly #nonNegative = new Set<string>()

  /** A copy to extend in an inner scope. */
  child(): Facts {
    const c = new Facts()
    for (const [k, v] of this.#below) c.#below.set(k, [...v])
    for (const k of this.#nonNegative) c.#nonNegative.add(k)
    return c
  }

  /** Records `0 <= e < bound`. */
  coordinate(e: Expr, bound: Expr): void {
    this.#nonNegative.add(keyOf(e))
    const list = this.#below.get(keyOf(e)) ?? []
    list.push(bound)
    this.#below.set(keyOf(e), list)
  }

  /** Records a condition that holds in this scope. */
  holds(cond: Expr): void {
    if (cond.kind !== 'binary') return
    if (cond.op === 'and') {
      this.holds(cond.a)
      this.holds(cond.b)
    } else if (cond.op === 'lt') {
      const list = this.#below.get(keyOf(cond.a)) ?? []
      list.push(cond.b)
      this.#below.set(keyOf(cond.a), list)
    } else if (cond.op === 'ge' && cond.b.kind === 'const' && cond.b.value >= 0)
      this.#nonNegative.add(keyOf(cond.a))
  }

  nonNegative(e: Expr): boolean {
    if (this.#nonNegative.has(keyOf(e))) return true
    switch (e.kind) {
      case 'const':
        return e.value >= 0
      case 'binary':
        switch (e.op) {
          case 'add':
          case 'mul':
          case 'min':
            return this.nonNegative(e.a) && this.nonNegative(e.b)
          case 'max':
            return this.nonNegative(e.a) || this.nonNegative(e.b)
          case 'div':
            return this.nonNegative(e.a) && this.nonNegative(e.b)
          case 'mod':
            return this.nonNegative(e.b)
          default:
            return false
        }
      case 'select':
        return this.nonNegative(e.then) && this.nonNegative(e.else)
      case 'search':
        return this.nonNegative(e.lo)
      case 'call':
        return e.fn === 'popcount'
      default:
        return false
    }
  }

  below(e: Expr, bound: Expr): boolean {
    if (e.kind === 'const' && bound.kind === 'const') return e.value < bound.value
    for (const b of this.#below.get(keyOf(e)) ?? []) {
      if (sameExpr(b, bound)) return true
      if (b.kind === 'const' && bound.kind === 'const' && b.value <= bound.value) return true
      // c < b <= ceildiv(...)·… is not tried: one step of transitivity has been enough.
    }
    if (e.kind !== 'binary') return false
    const positive = e.b.kind === 'const' && e.b.value > 0
    switch (e.op) {
      case 'mod': // x mod c < c, and 0 <= x < bound  =>  x mod c < bound
        return positive && (sameExpr(e.b, bound) || this.inRange(e.a, bound))
      case 'div': // x < X  =>  x / c < ceildiv(X, c)
        return (
          positive &&
          (this.#below.get(keyOf(e.a)) ?? []).some(
            (x) => sameExpr(ceildiv(x, e.b), bound) || sameExpr(x, bound),
          )
        )
      case 'add': {
        // x < ceildiv(X, c), y < c, constant X·c: x·c + y < X
        const { a, b } = e
        if (a.kind === 'binary' && a.op === 'mul' && a.b.kind === 'const' && bound.kind === 'const') {
          const c = a.b.value
          return (
            this.below(b, a.b) &&
            (this.#below.get(keyOf(a.a)) ?? []).some((x) => x.kind === 'const' && x.value * c <= bound.value)
          )
        }
        return false
      }
      case 'min':
        return this.below(e.a, bound) || this.below(e.b, bound)
      default:
        return false
    }
  }

  /** `0 <= e < bound` is certain. */
  inRange(e: Expr, bound: Expr): boolean {
    return this.nonNegative(e) && this.below(e, bound)
  }
}
