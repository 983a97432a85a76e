/**
 * Overflow checks by range analysis. What a plan computes in 32 bits, for given sizes: bounds of every extent, index and
 * condition, by exact interval arithmetic, without running anything. Kernels count and address in i32 and cannot tell where
 * that wraps.
 *
 * Arithmetic on data wraps as i32 does, and so does what the text of a kernel computes as a value or compares: the reference
 * wraps there too. What leads to an iteration or to an element is exact, or reported.
 */
import type { Span } from '../../ast/diagnostic.ts'
import { type Expr, THREAD_AXES, type ThreadAxis, variable } from '../../ir/expr.ts'
import { children, substitute } from '../../ir/expr-tree.ts'
import type { For, Launch, Plan, Stmt } from '../../ir/loops.ts'
import { type Body, bodiesOf, exprsOf, piecesOf } from '../../ir/tree.ts'
import { type Box, type Over, overOf, Ranges, type Scope, scopeOf } from './expression-ranges.ts'
import { type Interval, interval } from './interval.ts'

export type { Box } from './expression-ranges.ts'

export interface Overflow extends Over {
  readonly launch: string
  /** What the expression is. */
  readonly of:
    | { readonly kind: 'loop'; readonly loop: For }
    | { readonly kind: 'grid'; readonly axis: ThreadAxis }
    | { readonly kind: 'condition' }
    | { readonly kind: 'index'; readonly buffer: string }
    | { readonly kind: 'room' | 'slots'; readonly name: string; readonly span?: Span | undefined }
}

/** The first place where a plan leaves 32 bits for some sizes of the box, if there may be one. */
export function overflowOf(plan: Plan, box: Box): Overflow | undefined {
  const counted = [
    // The host compares with it what a run found: it has to be what devices make of it.
    ...(plan.capacities ?? []).map((c) => ({
      kind: 'room' as const,
      name: c.axis,
      expr: c.capacity,
      span: c.span,
    })),
    // Loops go through all of a listed block, also where the tensor ends in it: nobody waits for more than can be stored.
    ...(plan.found ?? []).flatMap(({ tensor: name, parts, span }) =>
      parts.map(({ slots: expr }) => ({ kind: 'slots' as const, name, expr, span })),
    ),
  ]
  for (const { expr, ...of } of counted) {
    const { over } = new Ranges(plan.buffers, box, true).of(expr, scopeOf(new Map()))
    if (over) return { launch: plan.name, of, ...over }
  }
  for (const step of plan.steps) {
    if (step.kind === 'clear') continue
    // What conditions say is only asked where it matters: near the limit.
    const found = new Walk(plan, step, box, false).run() && new Walk(plan, step, box, true).run()
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
  /** What a user calls loops. */
  readonly #named = new Map<string, Expr>()

  constructor(plan: Plan, launch: Launch, box: Box, refine: boolean) {
    this.#launch = launch
    this.#ranges = new Ranges(plan.buffers, box, refine)
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
      // Its bounds are asked where it is used: what stands before a condition may only matter behind it.
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
        return
      case 'reduce':
        for (const t of s.targets) this.#value(t, scope)
        for (const e of s.values) this.#value(e, scope)
        return
      case 'vector_store':
        this.#value(s.target, scope)
        for (const e of s.values) this.#value(e, scope)
        return
      case 'instr':
        for (const p of piecesOf(s))
          if (p.kind === 'value') this.#value(p.value, scope)
          else for (const e of p.index) this.#exact(e, scope, { kind: 'index', buffer: p.buffer })
        return
      default:
        for (const e of exprsOf(s)) this.#value(e, scope)
    }
    for (const b of bodiesOf(s)) this.#body(b, scope)
  }

  /** Bounds of what has to be exact. */
  #exact(e: Expr, scope: Scope, of: Overflow['of']): Interval {
    const range = this.#ranges.of(e, scope)
    if (range.over) this.#fail(of, range.over)
    return range
  }

  #fail(of: Overflow['of'], over: Over): never {
    throw new Found({ launch: this.#launch.name, of, ...over, expr: this.#written(over.expr) })
  }

  /** The expression without names of the launch. */
  #written(e: Expr): Expr {
    let out = e
    for (;;) {
      const next = substitute(out, this.#ranges.lets)
      if (next === out || isLong(next)) break
      out = next
    }
    return substitute(out, this.#named)
  }

  /** What is computed as a value: accesses in it are exact, and conditions that no text of a kernel states. */
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
          if (over && !over.expr.span) this.#fail({ kind: 'condition' }, over)
        }
    }
    for (const x of children(e)) this.#value(x, scope, condition && e.dtype === 'bool')
  }
}

/** Names keep a text short that would be of many lines without them. */
function isLong(e: Expr): boolean {
  let nodes = 0
  const count = (x: Expr): boolean => ++nodes > 60 || children(x).some(count)
  return count(e)
}
