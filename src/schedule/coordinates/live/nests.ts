/** Loop nests that build formats at run time: their names, arrays, statements and default schedules. */
import type { NestDefault } from '../../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Iter, Iteration, IterKind, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { assign1, iteration, reduce1 } from '../../../ir/coordinates/stage1-tree.ts'
import { type Expr, type Load, load, variable } from '../../../ir/expressions/expr.ts'
import { builtinMonoid, type Monoid } from '../../../ir/values/monoid.ts'

export const namesFor = <K extends string>(keys: readonly K[], nameOf: (key: K) => string) =>
  Object.fromEntries(keys.map((k) => [k, nameOf(k)])) as Readonly<Record<K, string>>

export const v = (name: string): Expr => variable(name)

export const iter = (name: string, kind: IterKind, axis = name): Iter => ({ name, axis, kind })

/** Returns an array of i32 over these axes. */
export const array = (name: string, axes: readonly string[]): Buffer1 => ({
  name,
  dtype: 'i32',
  axes,
  role: 'local',
  filledAtRunTime: true,
  fill: 0,
  accumulate: 'i32',
})

/** Returns an element at the variables of its axes, or at the coordinates that replace them. */
export const elementOf = ({ name, axes }: Buffer1, instead: Readonly<Record<string, Expr>> = {}): Load =>
  load(
    name,
    axes.map((a) => instead[a] ?? v(a)),
  )

export const nest = (
  name: string,
  iters: readonly Iter[],
  body: readonly Stmt1[],
  where: readonly Expr[] = [],
): Iteration => iteration({ name, iters, where, body })
export const sum = (target: Load, value: Expr, reducer: Monoid = builtinMonoid('+', 'index')): Stmt1 =>
  reduce1({ reducer, targets: [target], values: [value] })
export const set = (target: Load, value: Expr): Stmt1 => assign1([target], [value])

/** Threads of a block, and threads of a row that exchanges registers. */
export const THREADS = 256
export const LANES = 32
/** Elements (`AHEAD`) and words (`ROUNDS`) that a thread loads before it waits, and rows of threads in a block. */
export const AHEAD = 8
export const ROUNDS = 4
export const ROWS = 8

export interface Loop {
  readonly nest: string
  readonly name: string
  /** The number of iterations; null if it is not constant. */
  readonly extent: number | null
}

export const loopOf = (nest: string, name: string, extent?: Expr): Loop => ({
  nest,
  name,
  extent: extent?.kind === 'const' ? extent.value : null,
})

const ref = ({ nest, name }: Loop): string => `${nest}.${name}`

/** A schedule under construction. */
export class Steps {
  readonly steps: NestDefault['steps'][number][] = []

  step(kind: string, fields: Readonly<Record<string, unknown>>): void {
    this.steps.push({ kind, ...fields })
  }

  /** Splits a loop, and returns the outer and the inner loop; null for a loop that would have one iteration. */
  split(loop: Loop, by: number, what: string): readonly [Loop | null, Loop | null] {
    const { nest, name, extent } = loop
    if (by === 1) return [loop, null]
    if (extent === by) return [null, loop]
    const [outer, inner] = [`${name}_${what}_outer`, `${name}_${what}`]
    this.step('split', { loop: ref(loop), by, into: [outer, inner] })
    return [
      { nest, name: outer, extent: extent === null ? null : Math.ceil(extent / by) },
      { nest, name: inner, extent: by },
    ]
  }

  fuse(loops: readonly Loop[], into: string): Loop | null {
    const [first] = loops
    if (!first || loops.length < 2) return first ?? null
    this.step('fuse', { loops: loops.map(ref), into })
    const extents = loops.flatMap((l) => l.extent ?? [])
    const extent = extents.length < loops.length ? null : extents.reduce((a, b) => a * b)
    return { nest: first.nest, name: into, extent }
  }

  reorder(loops: readonly (Loop | null)[]): void {
    this.step('reorder', { loops: loops.flatMap((l) => (l ? [ref(l)] : [])) })
  }

  bind(...pairs: readonly (readonly [Loop | null, string])[]): void {
    const bindings = pairs.flatMap(([l, to]) => (l ? [{ loop: ref(l), to }] : []))
    if (bindings.length > 0) this.step('bind', { bindings })
  }

  unroll(loop: Loop, by?: number): void {
    this.step('unroll', { loop: ref(loop), ...(by !== undefined && { by }) })
  }

  /** Keeps the elements of a buffer in registers: those written in `at`, or a copy of those read there. */
  inRegisters(kind: 'cache_write' | 'cache_read', buffer: string, at: Loop, more: object = {}): void {
    this.step(kind, { buffer, at: ref(at), scope: 'register', ...more })
  }
}
