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

export type Varying = ReturnType<typeof varyingIn>

/** @param threads the number of threads of the launch on each axis */
export function varyingIn(body: Body, threads: ReadonlyMap<ThreadAxis, number>) {
  /** The axes along which the value of `e` may differ between threads. */
  const of = (e: Expr): Axes => {
    const out = new Set<ThreadAxis | 'memory'>()
    collect(e, out)
    return out
  }
  /** Returns true if `e` may differ between threads of a block, or between threads of one row if `along` is given. */
  const differs = (e: Expr, along?: ThreadAxis): boolean => {
    const axes = of(e)
    return along ? axes.has(along) : THREAD_AXES.some((a) => levelOf(a) === 'thread' && axes.has(a))
  }
  /** The axes along which threads may execute `s` differently: other elements, values, or trip counts. */
  const ofStmt = (s: Stmt, exprs: (s: Stmt) => readonly Expr[] = exprsOf): Axes => {
    const out = new Set<ThreadAxis | 'memory'>()
    walkStmts([s], (x) => {
      for (const e of exprs(x)) collect(e, out)
    })
    return out
  }
  /** The axes along which threads may store to different elements. */
  const ofPlaces = (s: Stmt): Axes => ofStmt(s, (x) => (x.kind === 'store' ? x.index : exprsOf(x)))
  /**
   * The axes along which threads may differ in whether and how often the bodies of `s` run. Guards of loops are excluded, because they
   * test the existence of elements: a statement that does not depend on the thread may ignore them.
   */
  const ofControl = (s: Stmt): Axes => {
    if (s.kind === 'for') return boundIndex(s, 'thread') ? NONE : of(s.extent)
    return s.kind === 'if' || s.kind === 'while' ? of(s.cond) : NONE
  }
  const collect = (e: Expr, out: Set<ThreadAxis | 'memory'>): void => {
    for (const name of names(e)) for (const a of axesOf.get(name) ?? NONE) out.add(a)
  }
  const alone = (axis: ThreadAxis): boolean => (threads.get(axis) ?? 2) <= 1
  /** Names of the variables, registers and hardware indices in `e`. */
  const names = (e: Expr): ReadonlySet<string> => {
    const cached = mentioned.get(e)
    if (cached) return cached
    const out = new Set<string>()
    if (e.kind === 'var') out.add(e.name)
    if (e.kind === 'builtin') out.add(e.axis)
    if (e.kind === 'load' || e.kind === 'search')
      if (registers.has(e.buffer)) out.add(e.buffer)
      else if (written.has(e.buffer)) out.add(MEMORY)
    for (const c of children(e)) for (const n of names(c)) out.add(n)
    mentioned.set(e, out)
    return out
  }
  const add = (name: string, axes: Iterable<ThreadAxis | 'memory'>): void => {
    const knownAxes = axesOf.get(name) ?? new Set()
    axesOf.set(name, knownAxes)
    for (const a of axes) {
      if (knownAxes.has(a)) continue
      knownAxes.add(a)
      changed = true
    }
  }
  /** `always`: axes that control even the unconditional stores, which also run in inactive threads. */
  const list = (body: Body, control: Axes, always: Axes): void => {
    for (const s of body) statement(s, control, always)
  }
  const statement = (s: Stmt, control: Axes, always: Axes): void => {
    if (s.kind === 'for') {
      const all = new Set([...control, ...loop(s)])
      list(s.body, all, boundIndex(s, 'thread') ? always : new Set([...always, ...of(s.extent)]))
    } else if (s.kind === 'if' || s.kind === 'while') {
      const cond = of(s.cond)
      for (const body of bodiesOf(s))
        list(body, new Set([...control, ...cond]), new Set([...always, ...cond]))
    } else if (s.kind === 'let') add(s.name, [...control, ...of(s.value)])
    else {
      const decides = s.kind === 'store' && s.unconditional ? always : control
      for (const { buffer } of targetsOf(s))
        if (registers.has(buffer)) add(buffer, [...decides, ...ofStmt(s)])
    }
  }
  /** Records the axes of the loop variable. Returns the axes along which threads may skip iterations of the body. */
  const loop = (l: For): Axes => {
    const guards = l.guards.flatMap((g) => [...of(g)])
    const axis = boundIndex(l, 'thread')
    if (!axis) {
      const rounds = of(l.extent)
      add(l.var, rounds)
      return new Set([...guards, ...rounds])
    }
    add(l.var, alone(axis) ? [] : [axis])
    const whole = l.extent.kind === 'const' && l.extent.value === threads.get(axis)
    return new Set([...guards, ...(whole ? [] : [axis])])
  }
  /** Axes of loop variables, lets and registers, by name. An array in registers has one set for all its elements. */
  const axesOf = new Map<string, Set<ThreadAxis | 'memory'>>([[MEMORY, new Set([MEMORY])]])
  const mentioned = new Map<Expr, ReadonlySet<string>>()
  let changed = false
  const written = writesOf(body)
  for (const axis of threads.keys()) add(axis, [axis])
  const registers = allocatedNames(body, 'register')
  // Repeated until a fixed point, because registers carry values from one iteration to the next.
  do {
    changed = false
    list(body, NONE, NONE)
  } while (changed)
  return { of, differs, ofStmt, ofPlaces, ofControl }
}
