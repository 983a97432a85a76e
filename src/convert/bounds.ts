/** Least and greatest values of integer expressions: how many bits a key needs. */
import type { Expr } from '../ir/expr.ts'
import { foldInt } from '../ir/fold.ts'

export type Bounds = readonly [lo: number, hi: number]

/** `undefined`: unknown. Divisors are taken for positive. */
export function boundsOf(e: Expr, range: (name: string) => Bounds | undefined): Bounds | undefined {
  switch (e.kind) {
    case 'const':
      return [e.value, e.value]
    case 'var':
      return range(e.name)
    case 'unary': {
      const x = boundsOf(e.x, range)
      return e.op === 'neg' ? x && [-x[1], -x[0]] : [0, 1]
    }
    case 'select': {
      const a = boundsOf(e.then, range)
      const b = boundsOf(e.else, range)
      return a && b && [Math.min(a[0], b[0]), Math.max(a[1], b[1])]
    }
    case 'binary': {
      if (e.dtype === 'bool') return [0, 1]
      const a = boundsOf(e.a, range)
      const b = boundsOf(e.b, range)
      if (e.op === 'mod' && b && b[0] > 0) return [0, a && a[0] >= 0 ? Math.min(a[1], b[1] - 1) : b[1] - 1]
      if (!a || !b || ((e.op === 'div' || e.op === 'mod') && b[0] <= 0)) return undefined
      if (e.op === 'sub') return [a[0] - b[1], a[1] - b[0]]
      const corners = a.flatMap((x) => b.map((y) => foldInt(e.op, x, y) ?? Number.NaN))
      return corners.some(Number.isNaN) ? undefined : [Math.min(...corners), Math.max(...corners)]
    }
    default:
      return undefined
  }
}
