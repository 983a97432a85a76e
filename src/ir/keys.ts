/** Structural equality of expressions. */
import type { Expr } from './expr.ts'

const keyCache = new WeakMap<Expr, string>()
/** A text that is equal exactly for structurally equal expressions (spans aside). */
export function keyOf(e: Expr): string {
  const known = keyCache.get(e)
  if (known) return known
  let key: string
  switch (e.kind) {
    case 'const':
      key = `${Object.is(e.value, -0) ? '-0' : e.value}:${e.dtype}`
      break
    case 'var':
      key = `${e.name}:${e.dtype}`
      break
    case 'builtin':
      key = `@${e.axis}`
      break
    case 'unary':
      key = `(${e.op} ${keyOf(e.x)})`
      break
    case 'cast':
      key = `(${e.dtype} ${keyOf(e.x)})`
      break
    case 'binary':
      key = `(${e.op} ${keyOf(e.a)} ${keyOf(e.b)})`
      break
    case 'call':
      key = `(${e.fn} ${e.args.map(keyOf).join(' ')})`
      break
    case 'select':
      key = `(? ${keyOf(e.cond)} ${keyOf(e.then)} ${keyOf(e.else)})`
      break
    case 'load':
      key = `${e.buffer}[${e.index.map(keyOf).join(',')}]`
      break
    case 'search':
      key = `(${e.method} ${e.buffer} ${keyOf(e.lo)} ${keyOf(e.hi)} ${keyOf(e.value)})`
      break
  }
  keyCache.set(e, key)
  return key
}

export const sameExpr = (a: Expr, b: Expr): boolean => a === b || keyOf(a) === keyOf(b)
