/** Structural equality of expressions and of other plain data. */

import { memoize } from '../memoize.ts'
import type { Expr } from './expr-nodes.ts'

/**
 * A key that is equal exactly for structurally equal expressions (spans aside). Long keys are digests: operands are
 * shared, so a complete key could be exponentially longer than the expression.
 */
export const keyOf: (e: Expr) => string = memoize((e: Expr): string => {
  const text = structureText(e, keyOf)
  return text.length <= MAX_KEY_LENGTH ? text : digest(text)
})

/** The structure of one node as text; `operandText` returns the text of an operand, `rename` that of a name. */
export function structureText(
  e: Expr,
  operandText: (operand: Expr) => string,
  rename: (name: string) => string = (name) => name,
): string {
  switch (e.kind) {
    case 'const':
      return `${Object.is(e.value, -0) ? '-0' : e.value}:${e.dtype}`
    case 'var':
      return `${rename(e.name)}:${e.dtype}`
    case 'builtin':
      return `@${e.axis}`
    case 'unary':
      return `(${e.op} ${operandText(e.x)})`
    case 'cast':
      return `(${e.dtype} ${operandText(e.x)})`
    case 'binary':
      return `(${e.op} ${operandText(e.a)} ${operandText(e.b)})`
    case 'call':
      return `(${e.fn} ${e.args.map(operandText).join(' ')})`
    case 'select':
      return `(? ${operandText(e.cond)} ${operandText(e.then)} ${operandText(e.else)})`
    case 'load':
      return `${rename(e.buffer)}[${e.index.map(operandText).join(',')}]`
    case 'search':
      return `(${e.method} ${rename(e.buffer)} ${operandText(e.lo)} ${operandText(e.hi)} ${operandText(e.value)})`
  }
}

/** Longest key, in characters, that is not replaced by its digest. */
const MAX_KEY_LENGTH = 1024

/**
 * 128 bits by four multiplicative hashes (FNV-1a with the finaliser of MurmurHash3). Two of a million different texts
 * agree with a probability below 2⁻⁸⁸.
 */
function digest(text: string): string {
  const lanes = [0x811c9dc5, 0x9e3779b9, 0x85ebca6b, 0xc2b2ae35].map((seed, k) => {
    let h = seed
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ (text.charCodeAt(i) + k), 0x01000193 + 2 * k)
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
    return ((h ^ (h >>> 16)) >>> 0).toString(36)
  })
  return `#${text.length}.${lanes.join('.')}`
}

export const sameExpr = (a: Expr, b: Expr): boolean => a === b || keyOf(a) === keyOf(b)

/** True if plain data is structurally equal; `spans`: source spans must be equal too. */
export function sameData(a: unknown, b: unknown, spans = false): boolean {
  // Pairs already compared, or in progress, are assumed equal: operands may be shared.
  const pairs = new Map<object, object>()
  const isSame = (x: unknown, y: unknown): boolean => {
    if (Object.is(x, y)) return true
    if (typeof x !== 'object' || typeof y !== 'object' || !x || !y) return false
    if (Array.isArray(x) !== Array.isArray(y)) return false
    if (pairs.get(x) === y) return true
    pairs.set(x, y)
    const [p, q] = [x, y] as Readonly<Record<string, unknown>>[]
    return [...new Set([...Object.keys(x), ...Object.keys(y)])].every(
      (k) => (k === 'span' && !spans) || isSame(p![k], q![k]),
    )
  }
  return isSame(a, b)
}
