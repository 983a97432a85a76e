/**
 * Rewrite rules as data. A pattern is a term of the operators of expressions. A letter matches any expression, the same at
 * each occurrence; `c` and `d` match constants.
 */

import type { BinaryOp } from '../values/math.ts'
import type { Const, Expr } from './expr-nodes.ts'
import { sameExpr } from './structural-equality.ts'

export type Operator = BinaryOp | 'neg' | 'not' | 'select'
type Term<Op = Operator> = readonly [op: Op, ...operands: (string | number | Term<Op>)[]]
export type Pattern = string | number | Term
/** A pattern that is only matched: conversions to any type are terms, too. */
type Matched = string | number | Term<Operator | 'cast'>

export interface Bindings {
  readonly [letter: string]: Expr
  readonly c: Const
  readonly d: Const
}

type Letters = Record<string, Expr>
type Matcher = (e: Expr, bindings: Letters) => boolean

function compilePattern(p: Matched, usedLetters: Set<string>): Matcher {
  if (typeof p === 'number') return (e) => e.kind === 'const' && e.value === p
  if (typeof p === 'string') {
    if (usedLetters.has(p)) return (e, bindings) => sameExpr(e, bindings[p]!)
    usedLetters.add(p)
    const isConstantLetter = p === 'c' || p === 'd'
    return (e, bindings) => {
      if (isConstantLetter && e.kind !== 'const') return false
      bindings[p] = e
      return true
    }
  }
  const [op, ...operands] = p
  const [x, y, z] = operands.map((o) => compilePattern(o, usedLetters))
  if (op === 'select')
    return (e, found) => e.kind === op && x!(e.cond, found) && y!(e.then, found) && z!(e.else, found)
  if (op === 'cast') return (e, found) => e.kind === op && x!(e.x, found)
  if (!y) return (e, found) => e.kind === 'unary' && e.op === op && x!(e.x, found)
  return (e, found) => e.kind === 'binary' && e.op === op && x!(e.a, found) && y(e.b, found)
}

/** Returns a function to the letters' values; undefined if the expression does not match. */
export function matcher(pattern: Matched): (e: Expr) => Bindings | undefined {
  const matches = compilePattern(pattern, new Set())
  return (e) => {
    const bindings: Letters = {}
    return matches(e, bindings) ? (bindings as unknown as Bindings) : undefined
  }
}

/** Returns a function to the rules of a table that match an expression, each with the letters' values. */
export function rulesOf<R extends { readonly match: Pattern }>(table: readonly R[]) {
  const compiled = table.map((rule) => ({ rule, match: matcher(rule.match) }))
  return (e: Expr): readonly { readonly rule: R; readonly found: Bindings }[] =>
    compiled.flatMap(({ rule, match }) => {
      const found = match(e)
      return found ? [{ rule, found }] : []
    })
}

/** A rewrite rule: an expression that matches is equal to `to` if `when` holds. Numbers in `to` have the type of the expression. */
export interface Rule<C = void> {
  readonly name: string
  readonly match: Term
  /** The operands of `match` may be swapped. */
  readonly commutes?: true
  readonly when?: (found: Bindings, context: C, e: Expr) => boolean
  readonly to: Pattern | ((found: Bindings, context: C, e: Expr) => Expr | undefined)
}

/** Returns the patterns of a rule: its operands in both orders if it commutes. */
export const orders = <C>({ match, commutes }: Rule<C>): readonly Term[] =>
  commutes ? [match, [match[0], match[2]!, match[1]!]] : [match]
