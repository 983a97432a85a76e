/** Integer expressions as sums `Σ coefficient · term + constant`, and their ranges. */
import type { Expr } from './expr.ts'
import { keyOf } from './keys.ts'
import type { For } from './loops.ts'

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

/** Loops by variable: the ones whose ranges may be used. */
export type Loops = ReadonlyMap<string, For>
/** What variables run to, from 0. */
export type Extents = ReadonlyMap<string, { readonly extent: Expr }>

export const loopMap = (path: readonly For[]): Loops => new Map(path.map((l) => [l.var, l]))

/** Constant bounds `[low, high]` of an expression over loops with constant extents, where they are known. */
export function rangeOf(e: Expr, loops: Extents): readonly [number, number] | undefined {
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
