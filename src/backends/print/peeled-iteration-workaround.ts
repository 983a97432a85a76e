/**
 * Detects conditions that distinguish the first iteration of a loop. Compilers peel that iteration. LLVM of CUDA 13.0 then
 * crashes, and the process with it, if the iteration contains branches whose values merge.
 */

import { linear, minus } from '../../analysis/integers/linear.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import type { Launch } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, exprsOf, walkStmts } from '../../ir/statements/tree.ts'
import { isWord } from '../../ir/values/dtype.ts'
import { isCompare } from '../../ir/values/math.ts'
import { foldCompare } from '../../ir/values/numeric.ts'

export class FirstIterations {
  readonly #loops = new Set<string>()
  readonly #values = new Map<string, Expr>()

  constructor(launch: Launch) {
    walkStmts(launch.body, (s) => {
      if (s.kind === 'for' && s.mode.kind !== 'bind') this.#loops.add(s.var)
      if (s.kind === 'let') this.#values.set(s.name, s.value)
    })
  }

  /** True if the condition has different values in the first and the second iteration. */
  isFirstIterationTest(cond: Expr): boolean {
    if (cond.kind === 'var') {
      const value = this.#values.get(cond.name)
      return value !== undefined && this.isFirstIterationTest(value)
    }
    if (cond.kind === 'unary') return cond.op === 'not' && this.isFirstIterationTest(cond.x)
    if (cond.kind !== 'binary' || !isCompare(cond.op) || !isWord(cond.a.dtype)) return false
    const { terms, constant } = minus(linear(cond.a), linear(cond.b))
    const [left, ...furtherTerms] = terms.values()
    if (left?.term.kind !== 'var' || furtherTerms.length > 0 || !this.#loops.has(left.term.name)) return false
    const [first, second] = [0, left.coefficient].map((x) => foldCompare(cond.op, x + constant, 0))
    return first !== second
  }
}

const hasSelect = (e: Expr): boolean =>
  someExpr(e, (x) => x.kind === 'select' || (x.kind === 'binary' && (x.op === 'and' || x.op === 'or')))

/** True if a body or an expression contains further branches. */
export const hasBranch = (code: Body | Expr): boolean =>
  'kind' in code
    ? hasSelect(code)
    : code.some((s) => s.kind === 'if' || exprsOf(s).some(hasSelect) || bodiesOf(s).some(hasBranch))
