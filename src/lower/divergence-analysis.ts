/**
 * Divergence (uniformity) analysis. Which threads of a block may have values of their own: what depends on a thread's index,
 * directly, over a register or a name, or because a condition on it decides what was written. What is read of memory that
 * the launch writes is one value for all threads that read the same element, as long as nobody writes it meanwhile; that
 * only the places of barriers can tell, so it is said apart (`memory`).
 */

import { targetsOf, writesOf } from '../ir/accesses.ts'
import { allocatedNames } from '../ir/bindings.ts'
import { type Expr, THREAD_AXES, type ThreadAxis } from '../ir/expr.ts'
import { children } from '../ir/expr-tree.ts'
import { boundIndex, levelOf } from '../ir/hardware-axes.ts'
import type { For, Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf, exprsOf, walkStmts } from '../ir/tree.ts'

export type Axes = ReadonlySet<ThreadAxis | 'memory'>

const NONE: Axes = new Set()

/** What a value is made of: loop variables, names, registers, hardware indices; `memory` for what the launch writes. */
const MEMORY = 'memory'

export class Varying {
  /** Of loop variables, names, and registers: one set for all elements of an array, whoever writes them. */
  readonly #axes = new Map<string, Set<ThreadAxis | 'memory'>>([[MEMORY, new Set([MEMORY])]])
  readonly #registers: ReadonlySet<string>
  readonly #written: ReadonlySet<string>
  readonly #threads: ReadonlyMap<ThreadAxis, number>
  readonly #mentioned = new Map<Expr, ReadonlySet<string>>()
  #changed = false

  /** `threads`: how many of each axis the launch has. */
  constructor(body: Body, threads: ReadonlyMap<ThreadAxis, number>) {
    this.#threads = threads
    this.#written = writesOf(body)
    for (const axis of threads.keys()) this.#add(axis, [axis])
    this.#registers = allocatedNames(body, 'register')
    // A register that is read before it is written, in a round of a loop, carries what the round before wrote.
    do {
      this.#changed = false
      this.#list(body, NONE, NONE)
    } while (this.#changed)
  }

  /** The axes whose threads may have different values of it. */
  of(e: Expr): Axes {
    const out = new Set<ThreadAxis | 'memory'>()
    this.#collect(e, out)
    return out
  }

  /** Whether it differs between threads, or neighbours in a row of them. */
  differs(e: Expr, along?: ThreadAxis): boolean {
    const axes = this.of(e)
    return along ? axes.has(along) : THREAD_AXES.some((a) => levelOf(a) === 'thread' && axes.has(a))
  }

  /** The axes whose threads may execute it differently: other elements, other values, another number of times. */
  ofStmt(s: Stmt): Axes {
    const out = new Set<ThreadAxis | 'memory'>()
    walkStmts([s], (x) => {
      for (const e of exprsOf(x)) this.#collect(e, out)
    })
    return out
  }

  /** The axes whose threads may store to other elements, or to some of them. */
  ofPlaces(s: Stmt): Axes {
    const out = new Set<ThreadAxis | 'memory'>()
    walkStmts([s], (x) => {
      for (const e of x.kind === 'store' ? x.index : exprsOf(x)) this.#collect(e, out)
    })
    return out
  }

  /**
   * The axes whose threads may disagree on whether and how often the bodies run. Guards of loops are left out:
   * they say which elements exist, and what does not depend on a thread's element does no harm without it.
   */
  ofControl(s: Stmt): Axes {
    if (s.kind === 'for') return boundIndex(s, 'thread') ? NONE : this.of(s.extent)
    return s.kind === 'if' || s.kind === 'while' ? this.of(s.cond) : NONE
  }

  #collect(e: Expr, out: Set<ThreadAxis | 'memory'>): void {
    for (const name of this.#names(e)) for (const a of this.#axes.get(name) ?? NONE) out.add(a)
  }

  /** One thread disagrees with nobody. */
  #alone(axis: ThreadAxis): boolean {
    return (this.#threads.get(axis) ?? 2) <= 1
  }

  /** Variables, registers and hardware indices in it. */
  #names(e: Expr): ReadonlySet<string> {
    const known = this.#mentioned.get(e)
    if (known) return known
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
    const known = this.#axes.get(name) ?? new Set()
    this.#axes.set(name, known)
    for (const a of axes) {
      if (known.has(a)) continue
      known.add(a)
      this.#changed = true
    }
  }

  /** `always`: what decides also of stores that run in threads that sit out. */
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

  /** What the loop decides by threads about what its body leaves behind: a thread may sit out. */
  #loop(l: For): Axes {
    const guards = l.guards.flatMap((g) => [...this.of(g)])
    const axis = boundIndex(l, 'thread')
    if (!axis) {
      const rounds = this.of(l.extent)
      this.#add(l.var, rounds)
      return new Set([...guards, ...rounds])
    }
    this.#add(l.var, this.#alone(axis) ? [] : [axis])
    const whole = l.extent.kind === 'const' && l.extent.value === this.#threads.get(axis)
    return new Set([...guards, ...(whole ? [] : [axis])])
  }
}
