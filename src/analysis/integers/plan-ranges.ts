/**
 * Overflow checks by range analysis: the range of every extent, index and condition that a plan computes in 32 bits,
 * for given sizes, by exact interval arithmetic without a run. Kernels count and address in i32 and cannot detect
 * wrap-around.
 * Arithmetic on data and on values (type i32) wraps, as in the reference. Expressions of type `index` that lead to an
 * iteration or to an element must be exact; otherwise they are reported.
 */

import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { capacitiesOf } from '../../ir/coordinates/runtime-lists.ts'
import { type Expr, THREAD_AXES, type ThreadAxis, variable } from '../../ir/expressions/expr.ts'
import { children, substitute } from '../../ir/expressions/expr-tree.ts'
import { targetsOf } from '../../ir/statements/accesses.ts'
import { allocations } from '../../ir/statements/definitions.ts'
import type { For, Kernel3, Launch, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, exprsOf, piecesOf } from '../../ir/statements/tree.ts'
import { type Box, type Over, overOf, Ranges, type Scope, scopeOf } from './expression-ranges.ts'
import { beyond, HIGHEST, type Interval, interval } from './interval.ts'

export type { Box } from './expression-ranges.ts'

export interface Overflow extends Over {
  readonly launch: string
  /** The role of the expression. */
  readonly of:
    | { readonly kind: 'loop'; readonly loop: For }
    | { readonly kind: 'grid'; readonly axis: ThreadAxis }
    | { readonly kind: 'condition' }
    | { readonly kind: 'operand' }
    | { readonly kind: 'index'; readonly buffer: string }
    | { readonly kind: 'room' | 'slots'; readonly name: string; readonly span?: Span | undefined }
}

/**
 * The greatest value of a 64-bit `index`: hosts and JavaScript compute these in doubles. No device has memory for more
 * elements.
 */
export const WIDEST = 2 ** 53 - 1

/**
 * Returns the first expression of a plan that may exceed the greatest value of the type `index` (default: that of 32
 * bits) for some sizes of the box; undefined if there is no such expression.
 */
export function overflowOf(plan: Kernel3, box: Box, most: number = HIGHEST): Overflow | undefined {
  const counted = [
    // The host compares the capacity with counts of a run, so it must have the same value on devices.
    ...capacitiesOf(plan).map((c) => ({
      kind: 'room' as const,
      name: c.part.axis,
      expr: c.capacity,
      span: c.lists.span,
    })),
    // Loops visit all slots of a listed block, also beyond the end of the tensor, so the number of slots must fit.
    ...(plan.runtimeLists ?? []).flatMap(({ tensor: name, parts, span }) =>
      parts.map(({ slots: expr }) => ({ kind: 'slots' as const, name, expr, span })),
    ),
  ]
  for (const { expr, ...of } of counted) {
    const { over } = new Ranges(plan.buffers, box, true).of(expr, scopeOf(new Map()))
    if (over) return { launch: plan.name, of, ...over }
  }
  for (const step of plan.steps) {
    if (step.kind === 'clear') continue
    // Conditions are evaluated only if plain ranges come near the limit.
    const found = new Walk(plan, step, box, false, most).run() && new Walk(plan, step, box, true, most).run()
    if (found) return found
  }
  return undefined
}

class Found {
  readonly overflow: Overflow

  constructor(overflow: Overflow) {
    this.overflow = overflow
  }
}

class Walk {
  readonly #launch: Launch
  readonly #ranges: Ranges
  /** The users' names of loops. */
  readonly #named = new Map<string, Expr>()

  /** Index arrays, whose elements are i32 for any width of the type `index`. */
  readonly #arrays: ReadonlySet<string>
  readonly #isWide: boolean

  constructor(plan: Kernel3, launch: Launch, box: Box, refine: boolean, most: number) {
    this.#launch = launch
    this.#ranges = new Ranges(plan.buffers, box, refine, most)
    this.#isWide = most > HIGHEST
    const buffers = [...plan.buffers, ...allocations(launch.body).values()]
    this.#arrays = new Set(
      buffers.filter((b) => b.role === 'index' && b.scope !== 'register').map((b) => b.name),
    )
  }

  run(): Overflow | undefined {
    const scope = scopeOf(new Map())
    try {
      const blocks = this.#launch.grid.map((e, k) =>
        this.#exact(e, scope, { kind: 'grid', axis: THREAD_AXES[k]! }),
      )
      if (blocks.some((b) => b.hi <= 0)) return undefined
      const extents = [...blocks, ...this.#launch.block.map((n) => interval(n, n))]
      for (const [k, x] of extents.entries()) this.#ranges.iterate(scope, THREAD_AXES[k]!, x)
      this.#body(this.#launch.body, scope)
      return undefined
    } catch (e) {
      if (e instanceof Found) return e.overflow
      throw e
    }
  }

  #body(body: Body, scope: Scope): void {
    for (const s of body) this.#statement(s, scope)
  }

  #statement(s: Stmt, scope: Scope): void {
    switch (s.kind) {
      // The range of a `let` is computed where its name is used: a value before a condition may matter only under the
      // condition.
      case 'let':
        this.#value(s.value, scope)
        this.#ranges.name(scope, s.name, s.value)
        return
      case 'for': {
        const extent = this.#exact(s.extent, scope, { kind: 'loop', loop: s })
        if (extent.hi <= 0) return
        this.#ranges.iterate(scope, s.var, extent)
        if (s.name !== s.var) this.#named.set(s.var, variable(s.name))
        break
      }
      case 'if':
        this.#value(s.cond, scope, true)
        if (this.#ranges.of(s.cond, scope).hi > 0) this.#body(s.then, this.#ranges.where(s.cond, scope))
        this.#body(s.else, scope)
        return
      case 'alloc':
        if (s.buffer.scope === 'register' && s.buffer.role === 'index')
          this.#ranges.hold(scope, s.buffer.name, s.buffer.below)
        for (const e of s.buffer.shape) this.#value(e, scope)
        return
      case 'store':
        for (const e of s.index) this.#exact(e, scope, { kind: 'index', buffer: s.buffer })
        this.#value(s.value, scope)
        if (this.#arrays.has(s.buffer)) this.#word(s.value, scope, { kind: 'index', buffer: s.buffer })
        return
      case 'instr':
        for (const p of piecesOf(s))
          if (p.kind === 'value') {
            this.#value(p.value, scope)
            this.#word(p.value, scope, { kind: 'operand' })
          } else for (const e of p.index) this.#exact(e, scope, { kind: 'index', buffer: p.buffer })
        return
      default:
        for (const e of [...targetsOf(s), ...exprsOf(s)]) this.#value(e as Expr, scope)
    }
    for (const b of bodiesOf(s)) this.#body(b, scope)
  }

  /** Returns the range of an expression that must be exact. Throws `Found` if it exceeds 32 bits. */
  #exact(e: Expr, scope: Scope, of: Overflow['of']): Interval {
    const range = this.#ranges.of(e, scope)
    if (range.over) this.#fail(of, range.over)
    return range
  }

  /** Checks that 32 bits hold a value of a plan with 64-bit indices. */
  #word(e: Expr, scope: Scope, of: Overflow['of']): void {
    if (!this.#isWide || e.dtype !== 'index') return
    const range = this.#exact(e, scope, of)
    if (beyond(range)) this.#fail(of, { expr: e, lo: range.lo, hi: range.hi })
  }

  #fail(of: Overflow['of'], over: Over): never {
    throw new Found({ launch: this.#launch.name, of, ...over, expr: this.#written(over.expr) })
  }

  /** Returns the expression without names of the launch. */
  #written(e: Expr): Expr {
    let out = e
    for (;;) {
      const next = substitute(out, this.#ranges.lets)
      if (next === out || isLong(next)) break
      out = next
    }
    return substitute(out, this.#named)
  }

  /** Checks a value: accesses in it must be exact, and so must conditions that are not in the text of the kernel. */
  #value(e: Expr, scope: Scope, condition = false): void {
    switch (e.kind) {
      case 'var': {
        const value = condition ? this.#ranges.lets.get(e.name) : undefined
        if (!value || scope.seen.has(e.name)) return
        scope.seen.add(e.name)
        this.#value(value, scope, true)
        return
      }
      case 'load':
      case 'search':
        for (const x of children(e)) this.#exact(x, scope, { kind: 'index', buffer: e.buffer })
        return
      case 'select':
        this.#value(e.cond, scope, true)
        if (this.#ranges.of(e.cond, scope).hi > 0) this.#value(e.then, this.#ranges.where(e.cond, scope))
        this.#value(e.else, scope)
        return
      case 'binary':
        if (e.op === 'and') {
          this.#value(e.a, scope, condition)
          this.#value(e.b, this.#ranges.where(e.a, scope), condition)
          return
        }
        if (condition && e.dtype === 'bool' && e.op !== 'or') {
          const over = overOf([this.#ranges.of(e.a, scope), this.#ranges.of(e.b, scope)])
          if (over) this.#fail({ kind: 'condition' }, over)
        }
    }
    for (const x of children(e)) this.#value(x, scope, condition && e.dtype === 'bool')
  }
}

function isLong(e: Expr): boolean {
  let nodes = 0
  const count = (x: Expr): boolean => ++nodes > 60 || children(x).some(count)
  return count(e)
}
