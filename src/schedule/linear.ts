/**
 * Integer expressions as sums `Σ coefficient · term + constant`, their ranges, and the question every legality
 * check comes down to: do different values of a loop variable reach different elements?
 */
import { type Expr, freeVars, keyOf, mentions } from '../ir/expr.ts'
import type { For } from '../ir/loops.ts'

export interface Linear {
  /** By the key of the term, which is no sum, product by a constant, or constant itself. */
  readonly terms: ReadonlyMap<string, { readonly term: Expr; readonly coefficient: number }>
  readonly constant: number
}

export function linear(e: Expr): Linear {
  const terms = new Map<string, { term: Expr; coefficient: number }>()
  let constant = 0
  const go = (x: Expr, scale: number): void => {
    if (x.kind === 'const') constant += scale * x.value
    else if (x.kind === 'binary' && (x.op === 'add' || x.op === 'sub')) {
      go(x.a, scale)
      go(x.b, x.op === 'add' ? scale : -scale)
    } else if (x.kind === 'binary' && x.op === 'mul' && x.b.kind === 'const') go(x.a, scale * x.b.value)
    else if (x.kind === 'binary' && x.op === 'mul' && x.a.kind === 'const') go(x.b, scale * x.a.value)
    else if (x.kind === 'unary' && x.op === 'neg') go(x.x, -scale)
    else {
      const key = keyOf(x)
      const coefficient = (terms.get(key)?.coefficient ?? 0) + scale
      if (coefficient === 0) terms.delete(key)
      else terms.set(key, { term: x, coefficient })
    }
  }
  go(e, 1)
  return { terms, constant }
}

/** A text equal exactly for equal sums, whatever the order they were written in. */
export function linearKey(l: Linear): string {
  const parts = [...l.terms].map(([key, t]) => `${t.coefficient}·${key}`).sort()
  return [...parts, String(l.constant)].join(' + ')
}

export const sameSum = (a: Expr, b: Expr): boolean => linearKey(linear(a)) === linearKey(linear(b))

/** Loops by variable: the ones whose ranges may be used. */
export type Loops = ReadonlyMap<string, For>

export const loopMap = (path: readonly For[]): Loops => new Map(path.map((l) => [l.var, l]))

/** Constant bounds `[low, high]` of an expression over loops with constant extents, where they are known. */
export function rangeOf(e: Expr, loops: Loops): readonly [number, number] | undefined {
  if (e.kind === 'const') return [e.value, e.value]
  if (e.kind === 'var') {
    const extent = loops.get(e.name)?.extent
    return extent?.kind === 'const' ? [0, Math.max(0, extent.value - 1)] : undefined
  }
  if (e.kind !== 'binary') return undefined
  const b = rangeOf(e.b, loops)
  if (e.op === 'mod' && b && b[0] === b[1] && b[0] > 0) return [0, b[0] - 1]
  const a = rangeOf(e.a, loops)
  if (!a || !b) return undefined
  switch (e.op) {
    case 'add':
      return [a[0] + b[0], a[1] + b[1]]
    case 'sub':
      return [a[0] - b[1], a[1] - b[0]]
    case 'mul': {
      const corners = [a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]]
      return [Math.min(...corners), Math.max(...corners)]
    }
    case 'div':
      return b[0] === b[1] && b[0] > 0 ? [Math.floor(a[0] / b[0]), Math.floor(a[1] / b[0])] : undefined
    default:
      return undefined
  }
}

/** What is known inside of a loop. */
export interface Space {
  /** The loops inside. */
  readonly inner: Loops
  /** Buffers that are validated to be monotone. */
  readonly indptr: ReadonlySet<string>
}

/**
 * A text that names the block of values which `e` stays in for one value of `v`, given that blocks of
 * different values are disjoint; `undefined` where that is not evident. Two accesses with equal texts in one
 * dimension touch a common element only in the same iteration of `v`.
 *
 * Recognised, with `inner` the loops inside of `v`: sums `c·v + rest + outer` with `0 <= rest < c`, and
 * segments `indptr[x] + rest` with `0 <= rest < indptr[x + 1] - indptr[x]` whose `x` is such a sum.
 */
export function blockOf(e: Expr, v: string, { inner, indptr }: Space): string | undefined {
  const sum = linear(e)
  const own: { term: Expr; coefficient: number }[] = []
  const rest: { term: Expr; coefficient: number }[] = []
  const outer = new Map<string, { term: Expr; coefficient: number }>()
  for (const [key, t] of sum.terms) {
    if (mentions(t.term, v)) own.push(t)
    else if ([...freeVars(t.term)].some((x) => inner.has(x))) rest.push(t)
    else outer.set(key, t)
  }
  const mine = own[0]
  if (!mine || own.length !== 1 || mine.coefficient < 1) return undefined
  const base = (constant: number): string => linearKey({ terms: outer, constant })
  if (mine.term.kind === 'load') {
    const start = mine.term.index[0]
    if (
      mine.coefficient !== 1 ||
      mine.term.index.length !== 1 ||
      !start ||
      outer.size > 0 ||
      sum.constant !== 0
    )
      return undefined
    const block = blockOf(start, v, { inner, indptr })
    if (!block || !indptr.has(mine.term.buffer) || !withinSegment(rest, mine.term, inner)) return undefined
    return `${mine.term.buffer}[${block}]`
  }
  if (mine.term.kind !== 'var') return undefined
  if (mine.coefficient === 1 && rest.length === 0) return `1·${v} + ${base(sum.constant)}`
  let [low, high] = [sum.constant, sum.constant]
  for (const t of rest) {
    const r = rangeOf(t.term, inner)
    if (!r) return undefined
    low += t.coefficient * (t.coefficient > 0 ? r[0] : r[1])
    high += t.coefficient * (t.coefficient > 0 ? r[1] : r[0])
  }
  return low >= 0 && high < mine.coefficient ? `${mine.coefficient}·${v} + ${base(0)}` : undefined
}

/** The segment `indptr[start] <= e < indptr[start + 1]` that an index stays in, where that is evident. */
export function segmentOf(e: Expr, { inner, indptr }: Space): { buffer: string; start: Expr } | undefined {
  const sum = linear(e)
  if (sum.constant !== 0) return undefined
  for (const [key, t] of sum.terms) {
    if (t.term.kind !== 'load' || t.coefficient !== 1 || !indptr.has(t.term.buffer)) continue
    const rest = [...sum.terms].flatMap(([k, x]) => (k === key ? [] : [x]))
    const start = t.term.index[0]
    if (start && withinSegment(rest, t.term, inner)) return { buffer: t.term.buffer, start }
  }
  return undefined
}

/** Whether `0 <= rest < indptr[x + 1] - indptr[x]`, by the extent of one loop or by a guard. */
function withinSegment(
  rest: readonly { readonly term: Expr; readonly coefficient: number }[],
  start: Expr & { kind: 'load' },
  inner: Loops,
): boolean {
  if (rest.length === 0 || rest.some((t) => t.coefficient < 0 || !nonNegative(t.term, inner))) return false
  const isLength = (e: Expr): boolean => {
    if (e.kind !== 'binary' || e.op !== 'sub' || keyOf(e.b) !== keyOf(start) || e.a.kind !== 'load')
      return false
    if (e.a.buffer !== start.buffer || e.a.index.length !== 1) return false
    const next = linear(e.a.index[0]!)
    return linearKey({ ...next, constant: next.constant - 1 }) === linearKey(linear(start.index[0]!))
  }
  const position = linearKey({ terms: new Map(rest.map((t) => [keyOf(t.term), t])), constant: 0 })
  const only = rest[0]!
  if (rest.length === 1 && only.coefficient === 1 && only.term.kind === 'var') {
    const loop = inner.get(only.term.name)
    if (loop && isLength(loop.extent)) return true
  }
  for (const t of rest)
    for (const name of freeVars(t.term))
      for (const g of inner.get(name)?.guards ?? [])
        if (g.kind === 'binary' && g.op === 'lt' && isLength(g.b) && linearKey(linear(g.a)) === position)
          return true
  return false
}

/** Sums, products, quotients and remainders of loop variables: never negative. */
function nonNegative(e: Expr, inner: Loops): boolean {
  if (e.kind === 'var') return inner.has(e.name)
  if (e.kind === 'const') return e.value >= 0
  if (e.kind !== 'binary') return false
  return (
    ['add', 'mul', 'div', 'mod', 'min', 'max'].includes(e.op) &&
    nonNegative(e.a, inner) &&
    nonNegative(e.b, inner)
  )
}
