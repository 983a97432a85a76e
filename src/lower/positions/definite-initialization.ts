/**
 * Definite-initialisation analysis: temporaries that are read only where they were written need no initial value. Examples are rows beyond
 * the end of the last tile, and unused slots of lists that are built at run time.
 */
import { type Axis, isDense, isFused } from '../../ir/coordinates/axis.ts'
import type { Assign, Iter, Iteration, Kernel1, Reduce1 } from '../../ir/coordinates/stage1.ts'
import { exprsOf1, readsOf1, walkStmts1, writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import { conjuncts, type Expr, type Load, variable } from '../../ir/expressions/expr.ts'
import {
  buffersRead,
  children,
  evaluationGuard,
  mentions,
  substitute,
} from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'

export interface Writer {
  readonly stmt: Assign | Reduce1
  readonly target: number
  readonly enclosing: readonly Iteration[]
  readonly conditional: boolean
  /** Values of the lets that conditions may mention. */
  readonly lets: ReadonlyMap<string, Expr>
}

/** Returns the iterators of a fused iterator's members, named by their axes; other iterators are returned unchanged. */
export function members(it: Iter, axes: ReadonlyMap<string, Axis>): Iter[] {
  const axis = axes.get(it.axis)
  return isFused(axis) ? axis.members.map((name) => ({ ...it, name, axis: name })) : [it]
}

/**
 * Returns true if every read of a local buffer follows the one loop nest that writes it, and implies the conditions of this nest. The nest
 * has one step per element, so every element read was written.
 */
export function isDefinitelyInitialized(kernel: Kernel1, w: Writer): boolean {
  const [nest, ...inner] = w.enclosing
  const target = w.stmt.targets[w.target]!
  const buffer = kernel.buffers.find((b) => b.name === target.buffer)!
  if (w.conditional || !nest || inner.length > 0 || buffer.role !== 'local') return false
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const written = namesOf(target.index, buffer.axes, [nest], axes)
  const nestAxes = nest.iters.flatMap((x) => members(x, axes))
  if (!written || !nestAxes.every((x) => (x.kind === 'S') === written.includes(x.name))) return false
  const where = nest.where.map((c) => substitute(c, w.lets))
  const later = writtenBuffers1(kernel.body.slice(kernel.body.indexOf(nest)))
  const steps = where.every(
    (c) =>
      nestAxes.every((x) => x.kind === 'S' || !mentions(c, x.name)) &&
      [...buffersRead(c)].every((b) => !later.has(b)),
  )
  if (!steps) return false
  /**
   * True if the nest has a step for every coordinate of dense axes that satisfies its conditions; a counted axis needs a condition on it.
   */
  const isFree = written.every((name, k) => {
    const axis = axes.get(buffer.axes[k]!)
    return isDense(axis) && (!axis.count || where.some((c) => mentions(c, name)))
  })
  let alike = true
  walkStmts1(kernel.body, (s, { iterations, lets }) => {
    const writes =
      (s.kind === 'assign' || s.kind === 'reduce') && s.targets.some((t) => t.buffer === buffer.name)
    if (writes && s !== w.stmt) alike = false
    if (!alike || !readsOf1(s).some((r) => r.buffer === buffer.name)) return
    const after = kernel.body.indexOf(iterations[0]!) > kernel.body.indexOf(nest)
    const around = iterations.flatMap((it) => it.where.map((c) => substitute(c, lets)))
    const read = exprsOf1(s).flatMap((e) => readsUnder(substitute(e, lets), buffer.name, around))
    for (const { index, guards } of read) {
      const names = namesOf(index, buffer.axes, iterations, axes)?.map((name) => variable(name))
      const theirs = names ?? (isFree ? index : undefined)
      const at = new Map(theirs?.map((e, k) => [written[k]!, e] as const))
      const holds = new Set(guards.map(keyOf))
      const same = theirs && where.every((c) => holds.has(keyOf(substitute(c, at))))
      if (s.kind === 'iterate' || !after || !same) alike = false
    }
  })
  return alike
}

interface Read {
  readonly index: readonly Expr[]
  /** Conditions that hold where the load is evaluated. */
  readonly guards: readonly Expr[]
}

function readsUnder(e: Expr, buffer: string, guards: readonly Expr[]): readonly Read[] {
  const direct: readonly Read[] = isOf(e, buffer) ? [{ index: e.index, guards }] : []
  const operands = children(e).flatMap((x, k) => {
    if (!buffersRead(x).has(buffer)) return []
    const guard = evaluationGuard(e, k)
    return readsUnder(x, buffer, guard ? [...guards, ...conjuncts(guard)] : guards)
  })
  return [...direct, ...operands]
}

const isOf = (e: Expr, buffer: string): e is Load => e.kind === 'load' && e.buffer === buffer

/** Returns the iterators that form an index, each over the axis of its dimension; undefined if the index has another form. */
function namesOf(
  index: readonly Expr[],
  over: readonly string[],
  around: readonly Iteration[],
  axes: ReadonlyMap<string, Axis>,
): readonly string[] | undefined {
  const open = around.flatMap((it) => it.iters.flatMap((x) => members(x, axes)))
  const names = index.map((e, k) => {
    const by = e.kind === 'var' ? open.findLast((x) => x.name === e.name) : undefined
    return by?.axis === over[k] ? by?.name : undefined
  })
  return names.every((n) => n !== undefined) && new Set(names).size === names.length ? names : undefined
}
