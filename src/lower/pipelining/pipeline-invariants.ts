/**
 * Loop-invariant code motion for pipelines across outer iterations. Quotients and loads in copies that depend only on the outer iteration
 * are computed once per outer iteration, and kept in registers.
 */

import type { Facts } from '../../analysis/integers/facts.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { type Expr, int, load } from '../../ir/expressions/expr.ts'
import {
  children,
  evaluationGuard,
  freeVars,
  mentions,
  mentionsSome,
  readsMemory,
  rewriteExpr,
  someExpr,
} from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { AXES_OF_BLOCK } from '../../ir/instructions/hardware-axes.ts'
import { allocatedNames, boundVarsOf } from '../../ir/statements/bindings.ts'
import type { Buffer, For } from '../../ir/statements/loops.ts'
import { local, store } from '../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, exprsOf, rewriteStmts } from '../../ir/statements/tree.ts'
import { isWord } from '../../ir/values/dtype.ts'
import type { Hoisted } from './address-prefetch.ts'

/** Maximum number of values that a thread keeps in registers. */
const MOST = 16

/**
 * Hoists values from `copies` in `loop` that depend on the iteration of `over` only. Loads are hoisted only if all iterations evaluate
 * them.
 */
export function pipelineInvariants(copies: Body, loop: For, over: For, known: Facts, names: Names): Hoisted {
  const copyVars = new Set([loop.var, ...boundVarsOf(copies)])
  const memory = allocatedNames(copies)
  const isOne = (e: Expr): boolean =>
    isWord(e.dtype) &&
    mentions(e, over.var) &&
    !mentionsSome(e, copyVars) &&
    !someExpr(e, (x) => x.kind === 'builtin' || (x.kind === 'load' && memory.has(x.buffer))) &&
    isCostly(e) &&
    // Values with a known divisor stay in place, because divisibility of registers is unknown.
    known.divisor(e) === 1
  const hoisted = new Map<string, Expr>()
  // Expressions without loads may be hoisted even if copies evaluate them conditionally.
  const visit = (e: Expr, always: boolean): void => {
    if (!isOne(e) || (!always && readsMemory(e))) {
      for (const [k, x] of children(e).entries()) visit(x, always && !evaluationGuard(e, k))
    } else hoisted.set(keyOf(e), e)
  }
  // A condition on threads or on loops of the copy selects the copying thread, but some thread copies always.
  const byThreads = (e: Expr): boolean =>
    !readsMemory(e) && [...freeVars(e)].every((v) => copyVars.has(v) || THREADS.has(v))
  const visitAll = (body: Body, always: boolean): void => {
    for (const s of body) {
      const conditions = s.kind === 'for' ? s.guards : s.kind === 'if' ? [s.cond] : []
      const evaluated = s.kind === 'for' ? [s.extent] : exprsOf(s)
      for (const e of evaluated) visit(e, always)
      if (s.kind === 'for') for (const e of s.guards) visit(e, false)
      const some = s.kind !== 'for' || (s.extent.kind === 'const' && s.extent.value > 0)
      const runs = always && some && conditions.every(byThreads)
      bodiesOf(s).forEach((b, k) => {
        visitAll(b, runs && k === 0)
      })
    }
  }
  visitAll(copies, true)
  // Values may contain each other, so smaller ones come first.
  const registers = new Map<string, Buffer>()
  const fromRegisters = (e: Expr): Expr | undefined => {
    const register = isCostly(e) ? registers.get(keyOf(e)) : undefined
    return register && load(register.name, [int(0)])
  }
  const inside = (e: Expr): number => 1 + Math.max(0, ...children(e).map(inside))
  const values = [...hoisted.values()].slice(0, MOST).toSorted((a, b) => inside(a) - inside(b))
  const fill = values.map((e) => {
    const register = local(names.fresh(`${over.var}_value`), 'i32')
    const value = rewriteExpr(e, fromRegisters)
    registers.set(keyOf(value), register)
    return store(register.name, [int(0)], value)
  })
  return {
    copies: rewriteStmts(copies, { expr: fromRegisters }),
    registers: [...registers.values()],
    fill: () => fill,
  }
}

const THREADS: ReadonlySet<string> = new Set(AXES_OF_BLOCK)

const isCostly = (e: Expr): boolean =>
  e.kind === 'load' ||
  e.kind === 'search' ||
  (e.kind === 'binary' && (e.op === 'div' || e.op === 'mod') && e.b.kind !== 'const')
