/**
 * A reducer's laws, sampled: schedules regroup and reorder combines, so one that is not associative and
 * commutative, or whose identity is none, would change results. Samples are positive, where a reducer that is
 * meant for a part of the numbers (weights, counts) still has to hold.
 */
import { isFloat } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import type { Monoid } from '../ir/monoid.ts'
import type { Cell } from '../reference/cells.ts'
import { compileExpr } from '../reference/compile-expressions.ts'

const SAMPLES = 24
const TOLERANCE = 1e-6

/** What is violated, with numbers; `null` where every sample holds. */
export function violation(m: Monoid): string | null {
  const combine = evaluator(m)
  const identity = m.identity.map(numberOf)
  let state = 12345
  const next = (): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state / 0x80000000
  }
  const sample = (k: number): number[] =>
    m.fields.map((f) =>
      isFloat(f.dtype)
        ? 0.1 + 4 * next()
        : f.dtype === 'bool'
          ? Math.floor(2 * next())
          : 1 + ((k * 7 + Math.floor(next() * 6)) % 19),
    )
  for (let k = 0; k < SAMPLES; k++) {
    const [a, b, c] = [sample(3 * k), sample(3 * k + 1), sample(3 * k + 2)]
    const show = (x: readonly number[]): string => `(${x.map((v) => Number(v.toPrecision(4))).join(', ')})`
    const differ = (law: string, x: readonly number[], y: readonly number[]): string | null =>
      same(x, y) ? null : `${law}: ${show(x)} is not ${show(y)}`
    const wrong =
      differ(`the identity changes ${show(a)}`, combine(identity, a), a) ??
      differ(`the identity changes ${show(a)}`, combine(a, identity), a) ??
      differ(
        `combine(a, b) and combine(b, a) differ for a = ${show(a)}, b = ${show(b)}`,
        combine(a, b),
        combine(b, a),
      ) ??
      differ(
        `combine(combine(a, b), c) and combine(a, combine(b, c)) differ for a = ${show(a)}, b = ${show(b)}, c = ${show(c)}`,
        combine(combine(a, b), c),
        combine(a, combine(b, c)),
      )
    if (wrong) return wrong
  }
  return null
}

const same = (x: readonly number[], y: readonly number[]): boolean =>
  x.every((v, k) => {
    const w = y[k]!
    return (
      v === w ||
      (Number.isNaN(v) && Number.isNaN(w)) ||
      Math.abs(v - w) <= TOLERANCE * Math.max(1, Math.abs(v), Math.abs(w))
    )
  })

function evaluator(m: Monoid): (a: readonly number[], b: readonly number[]) => number[] {
  const cells = new Map<string, Cell>([...m.left, ...m.right].map((v) => [v.name, { v: 0 }]))
  const results = m.result.map((e) => compileExpr(e, { cells, open: [] }, NOTHING))
  return (a, b) => {
    m.left.forEach((v, k) => {
      cells.get(v.name)!.v = a[k]!
    })
    m.right.forEach((v, k) => {
      cells.get(v.name)!.v = b[k]!
    })
    return results.map((r) => r())
  }
}

const NOTHING = { axes: new Map(), levels: new Map(), tensors: new Map(), doubt: { v: 0 } }

const numberOf = (e: Expr): number => compileExpr(e, { cells: new Map(), open: [] }, NOTHING)()
