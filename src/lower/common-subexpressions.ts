/**
 * Common subexpression elimination and loop-invariant code motion. Invariant reached: an expression that is worth a name is
 * computed once, in the outermost place where all it mentions is known (loop-invariant code motion and common subexpressions
 * in one pass).
 *
 * Only expressions over what the launch does not write move. They leave loops freely: an access is in range by the ranges of
 * the variables in its own index, or by a condition that mentions them. So an expression with loads stays inside every
 * condition that shares a variable with one of them, with how long what they read is or an array that says where they read,
 * and inside the branch of a `select`; where an array says where they read, inside every condition on how many elements
 * there are (of an unrolled loop `8 < count` is left, and `search(indptr, 8)`); at a constant place, inside every condition
 * at all, unless the array is known to be that long. A condition on a loop's variable, or on where in the launch a thread is,
 * has in common with a load what these range over, too: they come that far only where arrays are long enough. A division by
 * what may be 0 stays there like an access, and where what the divisor reads is read: C does not define it, and compilers
 * take it for proof that the divisor is not 0. What both branches of a condition compute that all threads of a block agree on
 * stands before it: no branch keeps it in range.
 */

import type { HardwareExtents } from '../analysis/integers/ranges.ts'
import { InternalError } from '../ast/diagnostic.ts'
import { writesOf } from '../ir/accesses.ts'
import { allocatedNames } from '../ir/bindings.ts'
import type { Names } from '../ir/bound-names.ts'
import { type Expr, variable } from '../ir/expr.ts'
import { children, freeVars, isLazy, withChildren } from '../ir/expr-tree.ts'
import type { Buffer, Stmt } from '../ir/loops.ts'
import { define } from '../ir/statement-builders.ts'
import { keyOf } from '../ir/structural-equality.ts'
import { type Body, exprsOf, mapExprs, stmt } from '../ir/tree.ts'
import { isUniformCondition } from '../ir/uniform-conditions.ts'
import { ProtectedAccesses } from './protected-accesses.ts'

/** What one evaluation costs, roughly in cycles of arithmetic; decides what is worth a name. */
const COST: Partial<Record<Expr['kind'], number>> = {
  load: 4,
  search: 16,
  call: 6,
  select: 1,
  cast: 0.5,
  unary: 0.5,
}
const OP_COST: Readonly<Record<string, number>> = { mul: 1, quo: 4, rem: 4, div: 4, mod: 4 }
/** Least cost that is worth moving out of a loop, and worth sharing within one. */
const WORTH_MOVING = 1
const WORTH_SHARING = 1.5

class Scope {
  readonly parent: Scope | null
  /** `lazy`: a branch of an expression, where no statement can stand. */
  readonly kind: 'body' | 'if' | 'lazy'
  readonly binds: ReadonlySet<string>
  readonly conditionVars: ReadonlySet<string>
  /** Key of an expression at home here → who uses it. */
  readonly users = new Map<string, Set<string>>()
  readonly named = new Map<string, Expr>()
  readonly lets: Stmt[] = []

  constructor(
    parent: Scope | null,
    kind: Scope['kind'],
    binds: Iterable<string> = [],
    conditionVars: ReadonlySet<string> = new Set(),
  ) {
    this.parent = parent
    this.kind = kind
    this.binds = new Set(binds)
    this.conditionVars = conditionVars
  }

  /** The statement body this scope lies in. */
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
  return new Hoister(body, names, new ProtectedAccesses(body, buffers, launch)).run(body)
}

class Hoister {
  readonly #mutable: ReadonlySet<string>
  readonly #accesses: ProtectedAccesses
  readonly #names: Names
  /** Body scopes in traversal order: made by the analysis, taken again by the rewrite. */
  readonly #scopes: Scope[] = []
  #next = 0
  #statements = 0
  readonly #movable = new WeakMap<Expr, boolean>()
  readonly #costs = new WeakMap<Expr, number>()

  constructor(body: Body, names: Names, accesses: ProtectedAccesses) {
    this.#accesses = accesses
    this.#mutable = new Set([...writesOf(body), ...allocatedNames(body)])
    this.#names = names
  }

  run(body: Body): Body {
    this.#analyse(body, this.#open(null, 'body'))
    return this.#rewrite(body, this.#take())
  }

  #open(
    parent: Scope | null,
    kind: Scope['kind'],
    binds: Iterable<string> = [],
    conditionVars?: ReadonlySet<string>,
  ): Scope {
    const s = new Scope(parent, kind, binds, conditionVars)
    this.#scopes.push(s)
    return s
  }

  #take(): Scope {
    const s = this.#scopes[this.#next++]
    if (!s) throw new InternalError('the rewrite visits other scopes than the analysis')
    return s
  }

  // --- analysis: who uses what, at home where ---

  #analyse(body: Body, scope: Scope): void {
    let here = scope
    for (const s of body) {
      const user = `#${this.#statements++}`
      for (const e of exprsOf(s)) this.#count(e, here, user)
      if (s.kind === 'let') here = this.#open(here, 'body', [s.name])
      else if (s.kind === 'for') this.#analyse(s.body, this.#open(here, 'body', [s.var]))
      else if (s.kind === 'if') {
        const vars = this.#accesses.protects(s.cond)
        const then = this.#open(here, 'if', [], vars)
        this.#analyse(s.then, then)
        const otherwise = this.#open(here, 'if', [], vars)
        this.#analyse(s.else, otherwise)
        if (isUniformCondition(s)) shareUsers(here, then, otherwise)
      }
    }
  }

  #count(e: Expr, scope: Scope, user: string): void {
    if (children(e).length === 0) return
    const home = this.#home(e, scope)
    if (home) {
      const key = keyOf(e)
      const users = home.users.get(key)
      if (users) {
        users.add(user)
        return
      }
      home.users.set(key, new Set([user]))
      this.#eachChild(e, home, (c, s) => this.#count(c, s, key))
    } else this.#eachChild(e, scope, (c, s) => this.#count(c, s, user))
  }

  /** Operands with the scope they are evaluated in: what may be skipped is lazy. */
  #eachChild(e: Expr, scope: Scope, visit: (c: Expr, scope: Scope) => void): void {
    const operands = children(e)
    if (operands.length === 0) return
    const first = operands[0]!
    visit(first, scope)
    const inner = isLazy(e) ? new Scope(scope, 'lazy', [], this.#accesses.protects(first)) : scope
    for (let k = 1; k < operands.length; k++) visit(operands[k]!, inner)
  }

  /** The outermost body where the expression may stand; `undefined` if it must stay where it is. */
  #home(e: Expr, scope: Scope): Scope | undefined {
    if (!this.#isMovable(e)) return undefined
    const vars = freeVars(e)
    const leaves = (s: Scope): boolean => {
      for (const v of s.binds) if (vars.has(v)) return false
      if (s.kind === 'body') return true
      const [accessed, divided] = [this.#accesses.ofLoads(e), this.#accesses.ofDivisors(e)]
      for (const v of s.conditionVars) if (accessed.has(v) || divided.has(v)) return false
      return true
    }
    let s = scope
    while (s.parent && leaves(s)) s = s.parent
    // Where an enclosing body computes the same anyway, its value serves.
    const key = keyOf(e)
    for (let outer = s.parent; outer; outer = outer.parent) if (outer.users.has(key)) return outer
    return s.kind === 'lazy' ? undefined : s
  }

  #isMovable(e: Expr): boolean {
    let known = this.#movable.get(e)
    if (known === undefined) {
      known =
        !((e.kind === 'load' || e.kind === 'search') && this.#mutable.has(e.buffer)) &&
        children(e).every((c) => this.#isMovable(c))
      this.#movable.set(e, known)
    }
    return known
  }

  #cost(e: Expr): number {
    let known = this.#costs.get(e)
    if (known === undefined) {
      known = e.kind === 'binary' ? (OP_COST[e.op] ?? 0.5) : (COST[e.kind] ?? 0)
      for (const c of children(e)) known += this.#cost(c)
      this.#costs.set(e, known)
    }
    return known
  }

  // --- rewrite ---

  #rewrite(body: Body, scope: Scope): Body {
    const out: Stmt[] = []
    let here = scope
    let rest = out
    const pending: { scope: Scope; stmts: Stmt[] }[] = []
    for (const s of body) {
      const at = here
      const t = mapExprs(s, (e) => this.#emit(e, at))
      if (t.kind === 'let') {
        rest.push(t)
        here = this.#take()
        rest = []
        pending.push({ scope: here, stmts: rest })
      } else if (t.kind === 'for') {
        // A trip count is computed once, not before every iteration.
        const extent =
          children(t.extent).length === 0 ? t.extent : variable(this.#names.fresh(`${t.var}_end`))
        if (extent.kind === 'var' && extent !== t.extent) rest.push(define(extent.name, t.extent))
        rest.push(stmt({ ...t, extent, body: this.#rewrite(t.body, this.#take()) }))
      } else if (t.kind === 'if') {
        const then = this.#rewrite(t.then, this.#take())
        rest.push(stmt({ ...t, then, else: this.#rewrite(t.else, this.#take()) }))
      } else rest.push(t)
    }
    return [...scope.lets, ...out, ...pending.flatMap((p) => [...p.scope.lets, ...p.stmts])]
  }

  #emit(e: Expr, scope: Scope): Expr {
    if (children(e).length === 0) return e
    const home = this.#home(e, scope)
    if (home) {
      const key = keyOf(e)
      const named = home.named.get(key)
      if (named) return named
      const moved = home !== scope.body
      const shared = (home.users.get(key)?.size ?? 0) > 1
      if ((moved && this.#cost(e) >= WORTH_MOVING) || (shared && this.#cost(e) >= WORTH_SHARING)) {
        const value = this.#rebuild(e, home)
        const name = this.#names.fresh(nameFor(e))
        const v = variable(name, e.dtype)
        home.lets.push(define(name, value))
        home.named.set(key, v)
        return v
      }
    }
    return this.#rebuild(e, scope)
  }

  #rebuild(e: Expr, scope: Scope): Expr {
    const operands: Expr[] = []
    this.#eachChild(e, scope, (c, s) => operands.push(this.#emit(c, s)))
    return withChildren(e, operands)
  }
}

/** What both branches compute is computed before them: it begins while all threads wait for what decides. */
function shareUsers(before: Scope, then: Scope, otherwise: Scope): void {
  for (const [key, users] of then.users) {
    const others = otherwise.users.get(key)
    if (others) before.users.set(key, new Set([...(before.users.get(key) ?? []), ...users, ...others]))
  }
}

/** A name that says what it holds. */
function nameFor(e: Expr): string {
  switch (e.kind) {
    case 'load':
      return `${e.buffer}_at`
    case 'search':
      return 'found'
    case 'binary':
      return e.dtype === 'bool'
        ? 'test'
        : e.op === 'mul' || e.op === 'add'
          ? 'at'
          : e.op === 'sub'
            ? 'length'
            : e.op === 'rem'
              ? 'rest'
              : 'part'
    default:
      return 'value'
  }
}
