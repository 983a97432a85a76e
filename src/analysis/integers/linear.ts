/** Linear (affine) forms: integer expressions as sums `Σ coefficient · term + constant`. */
import type { Expr } from '../../ir/expr.ts'
import { keyOf } from '../../ir/keys.ts'
import type { For } from '../../ir/loops.ts'

export interface Term {
  readonly term: Expr
  readonly coefficient: number
}

export interface Linear {
  /** By the key of the term, which is no sum, product by a constant, or constant itself. */
  readonly terms: ReadonlyMap<string, Term>
  readonly constant: number
}

export function linear(e: Expr): Linear {
  const terms = new Map<string, Term>()
  let constant = 0
  for (const [x, scale] of summands(e)) {
    if (x.kind === 'const') {
      constant += scale * x.value
      continue
    }
    const key = keyOf(x)
    const coefficient = (terms.get(key)?.coefficient ?? 0) + scale
    if (coefficient === 0) terms.delete(key)
    else terms.set(key, { term: x, coefficient })
  }
  return { terms, constant }
}

/** What is summed up with its constant factor, each node once, in the order of the text. */
export function summands(e: Expr): readonly (readonly [x: Expr, scale: number])[] {
  const order: Expr[] = []
  const seen = new Set<Expr>()
  const visit = (x: Expr): void => {
    if (seen.has(x)) return
    seen.add(x)
    for (const [c] of summandsOf(x) ?? []) visit(c)
    order.push(x)
  }
  visit(e)
  // Each after all sums that it is in.
  const scales = new Map<Expr, number>([[e, 1]])
  for (const x of order.reverse())
    for (const [c, factor] of summandsOf(x) ?? [])
      scales.set(c, (scales.get(c) ?? 0) + factor * scales.get(x)!)
  // Beyond exact numbers it is no sum of anything, but a term.
  if (![...scales.values()].every(Number.isSafeInteger)) return [[e, 1]]
  return order.reverse().flatMap((x) => (summandsOf(x) ? [] : [[x, scales.get(x)!] as const]))
}

function summandsOf(x: Expr): readonly (readonly [x: Expr, factor: number])[] | undefined {
  if (x.kind === 'unary' && x.op === 'neg') return [[x.x, -1]]
  if (x.kind !== 'binary') return undefined
  if (x.op === 'add')
    return [
      [x.a, 1],
      [x.b, 1],
    ]
  if (x.op === 'sub')
    return [
      [x.a, 1],
      [x.b, -1],
    ]
  if (x.op === 'mul' && x.b.kind === 'const') return [[x.a, x.b.value]]
  if (x.op === 'mul' && x.a.kind === 'const') return [[x.b, x.a.value]]
  return undefined
}

/** A text equal exactly for equal sums, whatever the order they were written in. */
export function linearKey(l: Linear): string {
  const parts = [...l.terms].map(([key, t]) => `${t.coefficient}·${key}`).sort()
  return [...parts, String(l.constant)].join(' + ')
}

/** Loops by variable: the ones whose ranges may be used. */
export type Loops = ReadonlyMap<string, For>
/** What variables run to, from 0. */
export type Extents = ReadonlyMap<string, { readonly extent: Expr }>

export const loopMap = (path: readonly For[]): Loops => new Map(path.map((l) => [l.var, l]))
