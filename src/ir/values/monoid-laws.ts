/**
 * Laws of reducers: schedules regroup and reorder combines, so a reducer that is not associative and commutative with
 * an identity would change results.
 */
import { unrounded } from './evaluate.ts'
import type { Monoid } from './monoid.ts'

/** Values of the components of an operand. */
type Operand = readonly number[]

const TOLERANCE = 1e-6

export interface MonoidLaws {
  combine(a: Operand, b: Operand): Operand
  /** The law that three values violate, with numbers; `null` if none. */
  violation(a: Operand, b: Operand, c: Operand): string | null
}

export function monoidLaws(m: Monoid): MonoidLaws {
  const combine = evaluator(m)
  const identity = m.identity.map((e) => unrounded(e)(new Map()))
  return {
    combine,
    violation(a, b, c) {
      const compareSides = (law: string, x: Operand, y: Operand): string | null =>
        isClose(x, y, [a, b, c]) ? null : `${law}: ${show(x)} is not ${show(y)}`
      return (
        compareSides(`the identity changes ${show(a)}`, combine(identity, a), a) ??
        compareSides(`the identity changes ${show(a)}`, combine(a, identity), a) ??
        compareSides(
          `combine(a, b) and combine(b, a) differ for a = ${show(a)}, b = ${show(b)}`,
          combine(a, b),
          combine(b, a),
        ) ??
        compareSides(
          `combine(combine(a, b), c) and combine(a, combine(b, c)) differ for a = ${show(a)}, b = ${show(b)}, c = ${show(c)}`,
          combine(combine(a, b), c),
          combine(a, combine(b, c)),
        )
      )
    },
  }
}

const show = (x: Operand): string => `(${x.map((v) => Number(v.toPrecision(4))).join(', ')})`

/** Equality up to rounding, relative to the results and their operands. */
const isClose = (x: Operand, y: Operand, operands: readonly Operand[]): boolean =>
  x.every((v, k) => {
    const w = y[k]!
    const sizes = [1, v, w, ...operands.map((o) => o[k]!)].map(Math.abs).filter(Number.isFinite)
    return (
      v === w ||
      (Number.isNaN(v) && Number.isNaN(w)) ||
      (Number.isFinite(v) && Number.isFinite(w) && Math.abs(v - w) <= TOLERANCE * Math.max(...sizes))
    )
  })

function evaluator(m: Monoid): (a: Operand, b: Operand) => Operand {
  const results = m.result.map(unrounded)
  const names = [...m.left, ...m.right].map((v) => v.name)
  return (a, b) => {
    const values = new Map([...a, ...b].map((v, k) => [names[k]!, v]))
    return results.map((r) => r(values))
  }
}
