/**
 * Times of schedules as sums over sizes and statistics, fitted to predicted times (non-negative least squares of relative errors). Unlike
 * the cost model, the conditions of a plan can evaluate these sums.
 */
import { chainTo, hasIndptr } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { binary, constant, type Expr, isOne, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { Values } from './conditions.ts'

/** Digits of coefficients. */
const DIGITS = 3
const SWEEPS = 300

/**
 * Sums for schedules with these times on some data; `null` if the data do not determine the terms. `times`: for each schedule and data
 * set, `null` if it cannot run.
 */
export function fitTimes(
  kernel: Kernel1,
  data: readonly Values[],
  times: readonly (readonly (number | null)[])[],
): readonly Expr[] | null {
  const terms = termsOf(kernel)
  const names = new Set(terms.flatMap((t) => [...freeVars(t)]))
  if (!data.every((values) => [...names].every((name) => values.has(name)))) return null
  const rows = data.map((values) => terms.map((t) => evaluate(t, values)))
  return times.map((own) => {
    // Relative errors: each row is divided by its time.
    const known = rows.flatMap((row, k) => {
      const time = own[k] ?? null
      return time === null ? [] : [row.map((x) => x / time)]
    })
    const coefficients = nonNegativeFit(known)
    const summands = terms.flatMap((t, k) =>
      coefficients[k]! > 0
        ? [binary('mul', constant(Number(coefficients[k]!.toPrecision(DIGITS)), 'f64'), t)]
        : [],
    )
    return summands.reduce<Expr>((sum, s) => binary('add', sum, s), constant(0, 'f64'))
  })
}

/**
 * Terms on which times depend: numbers of rows, columns and elements, the length of the longest segment and its excess over the mean, each
 * alone and for each combination of the other coordinates.
 */
function termsOf({ axes, params }: Kernel1): readonly Expr[] {
  const value = (name: string): Expr => variable(name, 'f64')
  const byName = new Map(axes.map((a) => [a.name, a]))
  const ragged = axes.filter(hasIndptr)
  const extentSizes = (name: string): string[] => {
    const axis = byName.get(name)!
    return 'extent' in axis ? [...freeVars(axis.extent)] : []
  }
  const own = new Set(ragged.flatMap((a) => chainTo(byName, a.name).flatMap(extentSizes)))
  const sizes = params.flatMap((p) => (p.kind === 'size' && !p.measured ? [p.name] : []))
  const counts = [
    constant(1, 'f64'),
    ...sizes.filter((s) => own.has(s)).map(value),
    ...ragged.flatMap(({ name }) => {
      const longest = value(`longest(${name})`)
      return [value(`count(${name})`), longest, binary('sub', longest, value(`mean(${name})`))]
    }),
  ]
  const others = sizes.filter((s) => !own.has(s)).map(value)
  if (others.length === 0) return counts
  const all = others.reduce((product, s) => binary('mul', product, s))
  return [...counts, ...counts.map((c) => (isOne(c) ? all : binary('mul', c, all)))]
}

/** Coefficients x ≥ 0 that minimise Σ (rows · x - 1)², by coordinate descent. */
function nonNegativeFit(rows: readonly (readonly number[])[]): readonly number[] {
  const n = rows[0]?.length ?? 0
  const columns = Array.from({ length: n }, (_, k) => rows.map((row) => row[k]!))
  const scales = columns.map((c) => Math.hypot(...c) || 1)
  const dot = (a: readonly number[], b: readonly number[]): number =>
    a.reduce((sum, x, k) => sum + x * b[k]!, 0)
  const products = columns.map((a, i) => columns.map((b, j) => dot(a, b) / (scales[i]! * scales[j]!)))
  const target = columns.map((c, k) => c.reduce((sum, x) => sum + x, 0) / scales[k]!)
  const x = new Array<number>(n).fill(0)
  for (let sweep = 0; sweep < SWEEPS; sweep++)
    for (let k = 0; k < n; k++)
      if (products[k]![k]! > 0)
        x[k] = Math.max(0, x[k]! + (target[k]! - dot(products[k]!, x)) / products[k]![k]!)
  return x.map((value, k) => value / scales[k]!)
}
