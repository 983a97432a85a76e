/**
 * Divergence (uniformity) analysis: the thread axes along which a value may differ within a block. A value differs if it depends on a
 * thread index, directly, through a register or let, or through a condition on it that controls a write. Memory that the launch writes has
 * one value per element between two barriers. Only the placement of barriers can ensure this, so such values are marked `memory`
 * separately.
 */

import { type Expr, THREAD_AXES, type ThreadAxis } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'
import { boundIndex, levelOf } from '../../ir/instructions/hardware-axes.ts'
import { targetsOf, writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, exprsOf, walkStmts } from '../../ir/statements/tree.ts'

export type Axes = ReadonlySet<ThreadAxis | 'memory'>

const NONE: Axes = new Set()

/** Name of the pseudo-variable for memory that the launch writes. */
const MEMORY = 'memory'

export class Varying {
  /** Axes of loop variables, lets and registers, by name. An array in registers has one set for all its elements. */
  readonly #axes = new Map<string, Set<ThreadAxis | 'memory'>>([[MEMORY, new Set([MEMORY])]])
  readonly #registers: ReadonlySet<string>
  readonly #written: ReadonlySet<string>
  readonly #mentioned = new Map<Expr, ReadonlySet<string>>()
  #changed = false

  /** `threads`: the number of threads of the launch on each axis. */
  constructor(
    body: Body,
    private readonly threads: ReadonlyMap<ThreadAxis, number>,
  ) {
    this.#written = writesOf(body)
    for (const axis of threads.keys()) this.#add(axis, [axis])
    this.#registers = allocatedNames(body, 'register')
    // Repeated until a fixed point, because registers carry values from one iteration to the next.
    do {
      this.#changed = false
      this.#list(body, NONE, NONE)
    } while (this.#changed)
  }

  /** The axes along which the value of `e` may differ between threads. */
  of(e: Expr): Axes {
    const out = new Set<ThreadAxis | 'memory'>()
    this.#collect(e, out)
    return out
  }

  /** Returns true if `e` may differ between threads of a block, or between threads of one row if `along` is given. */
  differs(e: Expr, along?: ThreadAxis): boolean {
    const axes = this.of(e)
    return along ? axes.has(along) : THREAD_AXES.some((a) => levelOf(a) === 'thread' && axes.has(a))
  }

  /** The axes along which threads may execute `s` differently: other elements, values, or trip counts. */
  ofStmt(s: Stmt, exprs: (s: Stmt) => readonly Expr[] = exprsOf): Axes {
    const out = new Set<ThreadAxis | 'memory'>()
    walkStmts([s], (x) => {
      for (const e of exprs(x)) this.#collect(e, out)
    })
    return out
  }

  /** The axes along which threads may store to different elements. */
  ofPlaces(s: Stmt): Axes {
    return this.ofStmt(s, (x) => (x.kind === 'store' ? x.index : exprsOf(x)))
  }

  /**
   * The axes along which threads may differ in whether and how often the bodies of `s` run. Guards of loops are excluded, because they
   * test the existence of elements: a statement that does not depend on the thread may ignore them.
   */
  ofControl(s: Stmt): Axes {
    if (s.kind === 'for') return boundIndex(s, 'thread') ? NONE : this.of(s.extent)
    return s.kind === 'if' || s.kind === 'while' ? this.of(s.cond) : NONE
  }

  #collect(e: Expr, out: Set<ThreadAxis | 'memory'>): void {
    for (const name of this.#names(e)) for (const a of this.#axes.get(name) ?? NONE) out.add(a)
  }

  #alone(axis: ThreadAxis): boolean {
    return (this.threads.get(axis) ?? 2) <= 1
  }

  /** Names of the variables, registers and hardware indices in `e`. */
  #names(e: Expr): ReadonlySet<string> {
    const cached = this.#mentioned.get(e)
    if (cached) return cached
    const out = new Set<string>()
    if (e.kind === 'var') out.add(e.name)
    if (e.kind === 'builtin') out.add(e.axis)
    if (e.kind === 'load' || e.kind === 'search')
      if (this.#registers.has(e.buffer)) out.add(e.buffer)
      else if (this.#written.has(e.buffer)) out.add(MEMORY)
    for (const c of children(e)) for (const n of this.#names(c)) out.add(n)
    this.#mentioned.set(e, out)
    return out
  }

  #add(name: string, axes: Iterable<ThreadAxis | 'memory'>): void {
    const knownAxes = this.#axes.get(name) ?? new Set()
    this.#axes.set(name, knownAxes)
    for (const a of axes) {
      if (knownAxes.has(a)) continue
      knownAxes.add(a)
      this.#changed = true
    }
  }

  /** `always`: axes that control even the unconditional stores, which also run in inactive threads. */
  #list(body: Body, control: Axes, always: Axes): void {
    for (const s of body) this.#statement(s, control, always)
  }

  #statement(s: Stmt, control: Axes, always: Axes): void {
    if (s.kind === 'for') {
      const all = new Set([...control, ...this.#loop(s)])
      this.#list(s.body, all, boundIndex(s, 'thread') ? always : new Set([...always, ...this.of(s.extent)]))
    } else if (s.kind === 'if' || s.kind === 'while') {
      const cond = this.of(s.cond)
      for (const body of bodiesOf(s))
        this.#list(body, new Set([...control, ...cond]), new Set([...always, ...cond]))
    } else if (s.kind === 'let') this.#add(s.name, [...control, ...this.of(s.value)])
    else {
      const decides = s.kind === 'store' && s.unconditional ? always : control
      for (const { buffer } of targetsOf(s))
        if (this.#registers.has(buffer)) this.#add(buffer, [...decides, ...this.ofStmt(s)])
    }
  }

  /** Records the axes of the loop variable. Returns the axes along which threads may skip iterations of the body. */
  #loop(l: For): Axes {
    const guards = l.guards.flatMap((g) => [...this.of(g)])
    const axis = boundIndex(l, 'thread')
    if (!axis) {
      const rounds = this.of(l.extent)
      this.#add(l.var, rounds)
      return new Set([...guards, ...rounds])
    }
    this.#add(l.var, this.#alone(axis) ? [] : [axis])
    const whole = l.extent.kind === 'const' && l.extent.value === this.threads.get(axis)
    return new Set([...guards, ...(whole ? [] : [axis])])
  }
}
