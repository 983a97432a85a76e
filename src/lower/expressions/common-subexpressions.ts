/**
 * Common subexpression elimination and loop-invariant code motion in one pass. Invariant reached: an expression whose cost is worth a name
 * is computed once, in the outermost scope in which its operands are known and evaluation is safe.
 * Only expressions that do not read memory written by the launch move. They leave loops freely. They leave a condition only if the
 * condition cannot protect an access or a division in the expression:
 * - A load stays inside every condition that shares a variable with its index, with the length of its array, or with the array from which
 * its index is loaded. It also stays inside the branch of a `select`.
 * - A load whose index is loaded stays inside every condition on the number of elements (unrolling leaves `8 < count`, and `search(indptr,
 * 8)`).
 * - A load at a constant index stays inside every condition, unless the array is known to be long enough.
 * - For conditions on loop variables or hardware indices, the ranges of these variables count as shared, unless the arrays are long
 * enough.
 * - A division by a value that may be 0 is treated like an access, because it is undefined in C, and compilers infer that the divisor is
 * not 0.
 * An expression that both branches of a block-uniform condition compute is hoisted before the condition.
 */

import type { HardwareExtents } from '../../analysis/integers/ranges.ts'
import { InternalError } from '../../ast/diagnostics/diagnostic.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import {
  children,
  freeVars,
  isFreeCast,
  isLazy,
  perExpr,
  withChildren,
} from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { memoize } from '../../ir/memoize.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { isUniformCondition } from '../../ir/statements/clone-loops.ts'
import type { Buffer, Stmt } from '../../ir/statements/loops.ts'
import { define } from '../../ir/statements/statement-builders.ts'
import { type Body, exprsOf, mapExprs, stmt } from '../../ir/statements/tree.ts'
import type { BinaryOp } from '../../ir/values/math.ts'
import { protectedAccesses } from './protected-accesses.ts'

/** Approximate cost of one evaluation, in cycles of arithmetic. */
const COST: Partial<Record<Expr['kind'], number>> = {
  load: 4,
  search: 16,
  call: 6,
  select: 1,
  cast: 0.5,
  unary: 0.5,
}
const OP_COST: Readonly<Record<string, number>> = { mul: 1, quo: 4, rem: 4, div: 4, mod: 4 }
const costOf: (e: Expr) => number = memoize((e: Expr) => {
  const own = isFreeCast(e) ? 0 : e.kind === 'binary' ? (OP_COST[e.op] ?? 0.5) : (COST[e.kind] ?? 0)
  return children(e).reduce((sum, c) => sum + costOf(c), own)
})
/** Minimum cost of an expression that is moved out of a loop (`WORTH_MOVING`) or shared within a scope (`WORTH_SHARING`). */
const WORTH_MOVING = 1
const WORTH_SHARING = 1.5

class Scope {
  /** `lazy`: a branch of an expression, which cannot contain statements. */
  readonly kind: 'body' | 'if' | 'lazy'
  readonly binds: ReadonlySet<string>
  /** Key of an expression whose home is this scope → its users. */
  readonly users = new Map<string, Set<string>>()
  readonly named = new Map<string, Expr>()
  readonly lets: Stmt[] = []

  constructor(
    readonly parent: Scope | null,
    kind: Scope['kind'],
    binds: Iterable<string> = [],
    readonly conditionVars: ReadonlySet<string> = new Set(),
  ) {
    this.kind = kind
    this.binds = new Set(binds)
  }

  /** The innermost scope of statements that contains this scope. */
  get body(): Scope {
    let s: Scope = this
    while (s.kind === 'lazy' && s.parent) s = s.parent
    return s
  }
}

export function eliminateCommonSubexpressions(
  body: Body,
  names: Names,
  buffers: readonly Buffer[] = [],
  launch: HardwareExtents = new Map(),
): Body {
  const accesses = protectedAccesses(body, buffers, launch)
  /** Scopes in traversal order: the analysis creates them, the rewrite reads them in the same order. */
  const scopes: Scope[] = []
  let next = 0
  let statements = 0
  const mutable = new Set([...writesOf(body), ...allocatedNames(body)])
  const isMovable = perExpr<boolean>(
    (e, isMovable) =>
      !((e.kind === 'load' || e.kind === 'search') && mutable.has(e.buffer)) && children(e).every(isMovable),
  )
  const open = (
    parent: Scope | null,
    kind: Scope['kind'],
    binds: Iterable<string> = [],
    conditionVars?: ReadonlySet<string>,
  ): Scope => {
    const s = new Scope(parent, kind, binds, conditionVars)
    scopes.push(s)
    return s
  }
  const take = (): Scope => {
    const s = scopes[next++]
    if (!s) throw new InternalError('the rewrite visits other scopes than the analysis')
    return s
  }
  const analyse = (body: Body, scope: Scope): void => {
    let here = scope
    for (const s of body) {
      const user = `#${statements++}`
      for (const e of exprsOf(s)) count(e, here, user)
      if (s.kind === 'let') here = open(here, 'body', [s.name])
      else if (s.kind === 'for') analyse(s.body, open(here, 'body', [s.var]))
      else if (s.kind === 'if') {
        const vars = accesses.protects(s.cond)
        const then = open(here, 'if', [], vars)
        analyse(s.then, then)
        const otherwise = open(here, 'if', [], vars)
        analyse(s.else, otherwise)
        if (isUniformCondition(s)) shareUsers(here, then, otherwise)
      }
    }
  }
  const count = (e: Expr, scope: Scope, user: string): void => {
    if (children(e).length === 0) return
    if (isFreeCast(e)) {
      count(e.x, scope, user)
      return
    }
    const home = homeOf(e, scope)
    if (home) {
      const key = keyOf(e)
      const users = home.users.get(key)
      if (users) {
        users.add(user)
        return
      }
      home.users.set(key, new Set([user]))
      eachChild(e, home, (c, s) => count(c, s, key))
    } else eachChild(e, scope, (c, s) => count(c, s, user))
  }
  /** Visits the operands with their scopes; operands that may be skipped have a `lazy` scope. */
  const eachChild = (e: Expr, scope: Scope, visit: (c: Expr, scope: Scope) => void): void => {
    const operands = children(e)
    if (operands.length === 0) return
    const first = operands[0]!
    visit(first, scope)
    const inner = isLazy(e) ? new Scope(scope, 'lazy', [], accesses.protects(first)) : scope
    for (let k = 1; k < operands.length; k++) visit(operands[k]!, inner)
  }
  /** Returns the outermost scope in which the expression may be computed; `undefined` if the expression must stay in place. */
  const homeOf = (e: Expr, scope: Scope): Scope | undefined => {
    if (!isMovable(e)) return undefined
    const vars = freeVars(e)
    const leaves = (s: Scope): boolean => {
      for (const v of s.binds) if (vars.has(v)) return false
      if (s.kind === 'body') return true
      const [accessed, divided] = [accesses.ofLoads(e), accesses.ofDivisors(e)]
      for (const v of s.conditionVars) if (accessed.has(v) || divided.has(v)) return false
      return true
    }
    let s = scope
    while (s.parent && leaves(s)) s = s.parent
    // An enclosing scope that computes the same expression provides its value.
    const key = keyOf(e)
    for (let outer = s.parent; outer; outer = outer.parent) if (outer.users.has(key)) return outer
    return s.kind === 'lazy' ? undefined : s
  }
  const rewrite = (body: Body, scope: Scope): Body => {
    const out: Stmt[] = []
    let here = scope
    let rest = out
    const pending: { scope: Scope; stmts: Stmt[] }[] = []
    for (const s of body) {
      const at = here
      const t = mapExprs(s, (e) => emit(e, at))
      if (t.kind === 'let') {
        rest.push(t)
        here = take()
        rest = []
        pending.push({ scope: here, stmts: rest })
      } else if (t.kind === 'for') {
        // The trip count is computed once, not before every iteration.
        const extent = children(t.extent).length === 0 ? t.extent : variable(names.fresh(`${t.var}_end`))
        if (extent.kind === 'var' && extent !== t.extent) rest.push(define(extent.name, t.extent))
        rest.push(stmt({ ...t, extent, body: rewrite(t.body, take()) }))
      } else if (t.kind === 'if') {
        const then = rewrite(t.then, take())
        rest.push(stmt({ ...t, then, else: rewrite(t.else, take()) }))
      } else rest.push(t)
    }
    return [...scope.lets, ...out, ...pending.flatMap((p) => [...p.scope.lets, ...p.stmts])]
  }
  const emit = (e: Expr, scope: Scope): Expr => {
    if (children(e).length === 0) return e
    if (isFreeCast(e)) return rebuild(e, scope)
    const home = homeOf(e, scope)
    if (home) {
      const key = keyOf(e)
      const named = home.named.get(key)
      if (named) return named
      const moved = home !== scope.body
      const shared = (home.users.get(key)?.size ?? 0) > 1
      if ((moved && costOf(e) >= WORTH_MOVING) || (shared && costOf(e) >= WORTH_SHARING)) {
        const value = rebuild(e, home)
        const name = names.fresh(nameFor(e))
        const v = variable(name, e.dtype)
        home.lets.push(define(name, value))
        home.named.set(key, v)
        return v
      }
    }
    return rebuild(e, scope)
  }
  const rebuild = (e: Expr, scope: Scope): Expr => {
    const operands: Expr[] = []
    eachChild(e, scope, (c, s) => operands.push(emit(c, s)))
    return withChildren(e, operands)
  }
  analyse(body, open(null, 'body'))
  return rewrite(body, take())
}

/** Hoists expressions that both branches compute, so that their latency overlaps the evaluation of the condition. */
function shareUsers(before: Scope, then: Scope, otherwise: Scope): void {
  for (const [key, users] of then.users) {
    const others = otherwise.users.get(key)
    if (others) before.users.set(key, new Set([...(before.users.get(key) ?? []), ...users, ...others]))
  }
}

const RESULT_NAMES: Partial<Record<BinaryOp, string>> = { mul: 'at', add: 'at', sub: 'length', rem: 'rest' }

function nameFor(e: Expr): string {
  switch (e.kind) {
    case 'load':
      return `${e.buffer}_at`
    case 'search':
      return 'found'
    case 'binary':
      return e.dtype === 'bool' ? 'test' : (RESULT_NAMES[e.op] ?? 'part')
    default:
      return 'value'
  }
}
