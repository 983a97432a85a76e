/** Linear forms: `Σ coefficient · variable + rest`, for proofs about index expressions. */
import { add, type Expr, int, isZero, mul, neg } from '../../ir/expr.ts'
import { freeVars, perExpr } from '../../ir/expr-tree.ts'

export interface Linear {
  /** Coefficients do not mention the variables. Zero coefficients are left out. */
  readonly terms: ReadonlyMap<string, Expr>
  readonly rest: Expr
}

/** `e` as a linear form in `variables`; `null` where it is none. */
export const linearOf = (e: Expr, variables: ReadonlySet<string>): Linear | null =>
  perExpr<Linear | null>((x, of) => linearFrom(x, of, variables))(e)

function linearFrom(e: Expr, of: (e: Expr) => Linear | null, variables: ReadonlySet<string>): Linear | null {
  if (![...freeVars(e)].some((v) => variables.has(v))) return { terms: new Map(), rest: e }
  switch (e.kind) {
    case 'var':
      return { terms: new Map([[e.name, int(1)]]), rest: int(0) }
    case 'unary': {
      const x = e.op === 'neg' ? of(e.x) : null
      return x && scale(x, int(-1))
    }
    case 'binary': {
      if (e.op !== 'add' && e.op !== 'sub' && e.op !== 'mul') return null
      const a = of(e.a)
      const b = of(e.b)
      if (!a || !b) return null
      if (e.op === 'add') return plus(a, b)
      if (e.op === 'sub') return plus(a, scale(b, int(-1)))
      if (a.terms.size === 0) return scale(b, a.rest)
      return b.terms.size === 0 ? scale(a, b.rest) : null
    }
    default:
      return null
  }
}

function plus(a: Linear, b: Linear): Linear {
  const terms = new Map(a.terms)
  for (const [v, c] of b.terms) {
    const old = terms.get(v)
    const sum = old ? add(old, c) : c
    if (isZero(sum)) terms.delete(v)
    else terms.set(v, sum)
  }
  return { terms, rest: add(a.rest, b.rest) }
}

function scale(a: Linear, by: Expr): Linear {
  const times = (x: Expr): Expr =>
    by.kind === 'const' && by.value === -1 && x.kind !== 'const' ? neg(x) : mul(x, by)
  return {
    terms: new Map([...a.terms].flatMap(([v, c]) => (isZero(times(c)) ? [] : [[v, times(c)] as const]))),
    rest: times(a.rest),
  }
}
