/**
 * What is known about coordinates while a nest is lowered, so that range checks appear only where they must:
 * bounds of iterators, and the `where` conditions in force. All proofs are syntactic and one-sided: "not
 * proved" only costs a check at run time.
 */
import { add, ceildiv, conjuncts, type Expr } from '../../ir/expr.ts'
import { perExpr, readsAny } from '../../ir/expr-tree.ts'
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

  /** Records a condition that holds in this scope, where `written` is: what reads that holds only until then. */
  holds(cond: Expr, written: ReadonlySet<string> = new Set()): void {
    if (cond.kind !== 'binary') return
    if (cond.op === 'and') for (const c of conjuncts(cond)) this.holds(c, written)
    else if (readsAny(cond, written)) return
    else if (cond.op === 'lt') {
      const list = this.#below.get(keyOf(cond.a)) ?? []
      list.push(cond.b)
      this.#below.set(keyOf(cond.a), list)
    } else if (cond.op === 'ge' && cond.b.kind === 'const' && cond.b.value >= 0)
      this.#nonNegative.add(keyOf(cond.a))
  }

  nonNegative(e: Expr): boolean {
    return perExpr<boolean>((x, of) => this.#nonNegativeFrom(x, of))(e)
  }

  #nonNegativeFrom(e: Expr, of: (e: Expr) => boolean): boolean {
    if (this.#nonNegative.has(keyOf(e))) return true
    switch (e.kind) {
      case 'const':
        return e.value >= 0
      case 'binary':
        switch (e.op) {
          case 'add':
          case 'mul':
          case 'min':
            return of(e.a) && of(e.b)
          case 'max':
            return of(e.a) || of(e.b)
          case 'div':
            return of(e.a) && of(e.b)
          case 'mod':
            return of(e.b)
          default:
            return false
        }
      case 'select':
        return of(e.then) && of(e.else)
      case 'search':
        return of(e.lo)
      case 'call':
        return e.fn === 'popcount'
      default:
        return false
    }
  }

  below(e: Expr, bound: Expr): boolean {
    const byBound = new Map<string, (e: Expr) => boolean>()
    const below = (x: Expr, limit: Expr): boolean => {
      const key = keyOf(limit)
      let of = byBound.get(key)
      if (!of) {
        of = perExpr<boolean>((y) => this.#belowFrom(y, limit, below))
        byBound.set(key, of)
      }
      return of(x)
    }
    return below(e, bound)
  }

  #belowFrom(e: Expr, bound: Expr, below: (e: Expr, bound: Expr) => boolean): boolean {
    if (e.kind === 'const' && bound.kind === 'const') return e.value < bound.value
    // c < b <= ceildiv(...)·… is not tried: one step of transitivity has been enough.
    for (const b of this.#below.get(keyOf(e)) ?? []) if (this.#reaches(e, b, bound)) return true
    if (e.kind !== 'binary') return false
    const positive = e.b.kind === 'const' && e.b.value > 0
    switch (e.op) {
      case 'mod': // x mod c < c, and 0 <= x < bound  =>  x mod c < bound
        return positive && (sameExpr(e.b, bound) || (this.nonNegative(e.a) && below(e.a, bound)))
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
        // x < X - s: x + s < X (the rows of a range, from its start on)
        for (const x of this.#below.get(keyOf(a)) ?? []) {
          if (x.kind === 'binary' && x.op === 'sub' && sameExpr(x.b, b) && this.#reaches(e, x.a, bound))
            return true
          if (x.kind === 'const' && b.kind === 'const' && this.#reaches(e, add(x, b), bound)) return true
        }
        if (a.kind === 'binary' && a.op === 'mul' && a.b.kind === 'const' && bound.kind === 'const') {
          const c = a.b.value
          return (
            below(b, a.b) &&
            (this.#below.get(keyOf(a.a)) ?? []).some((x) => x.kind === 'const' && x.value * c <= bound.value)
          )
        }
        return false
      }
      case 'min':
        return below(e.a, bound) || below(e.b, bound)
      default:
        return false
    }
  }

  /** `e < x` implies `e < bound`. */
  #reaches(e: Expr, x: Expr, bound: Expr): boolean {
    if (sameExpr(x, bound)) return true
    if (x.kind === 'const' && bound.kind === 'const') return x.value <= bound.value
    if (x.kind !== 'binary') return false
    if (x.op === 'min') return sameExpr(x.a, bound) || sameExpr(x.b, bound)
    // 0 <= e < ceildiv(X, c) says that X is positive, so that it is no less than its c-th part.
    const by = x.op === 'div' && x.b.kind === 'const' && x.b.value > 0 ? x.b : undefined
    return by !== undefined && sameExpr(x, ceildiv(bound, by)) && this.nonNegative(e)
  }

  /** `0 <= e < bound` is certain. */
  inRange(e: Expr, bound: Expr): boolean {
    return this.nonNegative(e) && this.below(e, bound)
  }
}
