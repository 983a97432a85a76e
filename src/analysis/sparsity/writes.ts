/** Writing statements with all of their reads, the initial values of tensors, and the tensors that can be masks. */

import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { isDenseRoot, isGathered } from '../../ir/coordinates/axis.ts'
import { capacityCounts } from '../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { readsIn, walkStmts1, writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import { constant, type Expr, type Load } from '../../ir/expressions/expr.ts'
import { substitute, walkExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../ir/expressions/structural-equality.ts'
import { memoize } from '../../ir/memoize.ts'
import { type Written, writtenIn } from './fill-folding.ts'

/** A writing statement with the values of `let`s substituted. */
export interface Write extends Written {
  /** The enclosing iterations, outermost first. */
  readonly iterations: readonly Iteration[]
  /** Index of the statement in the kernel's body that contains it. */
  readonly top: number
  readonly targets: readonly Load[]
  /** All reads of the statement, each once. */
  readonly loads: readonly Load[]
  /** Keys of the accesses at coordinates that the tensor has; other accesses may read the fill value. */
  readonly inside: ReadonlySet<string>
}

export const writesOf = memoize((kernel: Kernel1): readonly Write[] => {
  const out: Write[] = []
  const axes = new Map(kernel.buffers.map((b) => [b.name, b.axes]))
  const extents = extentsOf(kernel)
  const isInside = (l: Load, iterations: readonly Iteration[]): boolean =>
    l.index.every((e, d) => {
      const over = iterations.flatMap((it) => it.iters).find((x) => e.kind === 'var' && x.name === e.name)
      const [own, its] = [over && extents.get(over.axis), extents.get(axes.get(l.buffer)![d]!)]
      return own !== undefined && its !== undefined && sameExpr(own, its)
    })
  for (const [top, s] of kernel.body.entries())
    walkStmts1([s], (stmt, around) => {
      if (stmt.kind !== 'assign' && stmt.kind !== 'reduce') return
      const targets = stmt.targets.map((t) => substitute(t, around.lets) as Load)
      const written = writtenIn(stmt, around)
      const loads = new Map<string, Load>()
      for (const e of [...written.values, ...written.conditions, ...targets.flatMap((t) => t.index)])
        walkExpr(e, (x) => {
          if (x.kind === 'load') loads.set(keyOf(x), x)
        })
      out.push({
        ...written,
        iterations: around.iterations,
        top,
        targets,
        loads: [...loads.values()],
        inside: new Set([...loads].flatMap(([key, l]) => (isInside(l, around.iterations) ? [key] : []))),
      })
    })
  return out
})

const extentsOf = ({ axes }: Kernel1): ReadonlyMap<string, Expr> =>
  new Map(axes.flatMap((a) => ('extent' in a ? [[a.name, a.extent] as const] : [])))

/** Returns the value of elements before the first write; null if the caller sets it, or if it is unknown. */
export function startOf({ role, name, fill }: Buffer1, writes: readonly Write[]): number | null {
  if (role === 'in' || role === 'inout') return null
  const isOf = (t: Load): boolean => t.buffer === name
  const first = writes.find((w) => w.targets.some(isOf))
  if (first?.stmt.kind !== 'reduce') return fill
  const identity = first.stmt.reducer.identity[first.targets.findIndex(isOf)]!
  return identity.kind === 'const' ? identity.value : null
}

/**
 * Tensors that are read without being named: the lists of gathered axes, and the counts of formats built at run time.
 */
export const readByAxes = memoize(
  (kernel: Kernel1): ReadonlySet<string> =>
    new Set([...kernel.axes.flatMap((a) => (isGathered(a) ? [a.buffer] : [])), ...capacityCounts(kernel)]),
)

/** The reason why no values are known of a kernel with rounds, which read values of earlier rounds; undefined without rounds. */
export function reasonOfRounds({
  body,
}: Kernel1): { readonly reason: string; readonly span: Span | undefined } | undefined {
  const rounds = body.find((s) => s.kind === 'rounds')
  return (
    rounds && { reason: `the values in rounds ${rounds.name} depend on earlier rounds`, span: rounds.span }
  )
}

const MOST_DIMENSIONS = 5

export const isAllDense = (kernel: Kernel1, b: Buffer1): boolean =>
  b.axes.every((name) => kernel.axes.some((a) => a.name === name && isDenseRoot(a)))

/** Dense tensors that are complete before their first read, so that each element has one value for all consumers. */
export const masksOf = memoize((kernel: Kernel1): readonly Buffer1[] => {
  const reads = kernel.body.map((s) => new Set(readsIn([s]).map((l) => l.buffer)))
  const written = kernel.body.map((s) => writtenBuffers1([s]))
  return kernel.buffers.filter((b) => {
    if (b.table || b.axes.length === 0 || b.axes.length > MOST_DIMENSIONS) return false
    const first = reads.findIndex((r) => r.has(b.name))
    return first >= 0 && written.findLastIndex((w) => w.has(b.name)) < first && isAllDense(kernel, b)
  })
})

/**
 * The sparse inputs. They cannot mask iterations, but a temporary over their axes may have its fill value where they
 * have theirs.
 */
export const sparseInputsOf = memoize((kernel: Kernel1): readonly Buffer1[] => {
  const read = new Set(readsIn(kernel.body).map((l) => l.buffer))
  return kernel.buffers.filter(
    (b) => b.role === 'in' && !b.table && read.has(b.name) && isNamed(b) && !isAllDense(kernel, b),
  )
})

const isNamed = ({ axes }: Buffer1): boolean =>
  axes.length <= MOST_DIMENSIONS && new Set(axes).size === axes.length

/**
 * Returns the assignments of a mask's dimensions to different dimensions of a tensor with the same extents. A mask over
 * sparse axes needs the same axes.
 */
export function waysInto(kernel: Kernel1, mask: Buffer1, b: Buffer1): readonly (readonly number[])[] {
  if (b.axes.length > MOST_DIMENSIONS) return []
  if (!isAllDense(kernel, mask)) {
    const own = mask.axes.map((axis) => b.axes.indexOf(axis))
    return isNamed(b) && own.every((d) => d >= 0) ? [own] : []
  }
  if (!isAllDense(kernel, b)) return []
  const extents = extentsOf(kernel)
  let ways: readonly (readonly number[])[] = [[]]
  for (const axis of mask.axes)
    ways = ways.flatMap((way) =>
      b.axes.flatMap((x, d) =>
        !way.includes(d) && sameExpr(extents.get(x)!, extents.get(axis)!) ? [[...way, d]] : [],
      ),
    )
  return ways
}

/** Returns the index in the mask that corresponds to an element of a tensor. */
export const maskedAt = (l: Load, by: readonly number[]): readonly Expr[] => by.map((d) => l.index[d]!)

export const sameIndex = (a: readonly Expr[], b: readonly Expr[]): boolean =>
  a.length === b.length && a.every((e, k) => keyOf(e) === keyOf(b[k]!))

/** Returns whether one statement writes all elements before any other access. */
export function isCovered(kernel: Kernel1, b: Buffer1): boolean {
  const writes = writesOf(kernel)
  const [first, ...others] = writes.filter((w) => w.targets.some((t) => t.buffer === b.name))
  if (first?.stmt.kind !== 'assign' || first.conditions.length > 0 || !isAllDense(kernel, b)) return false
  const index = first.targets.find((t) => t.buffer === b.name)!.index
  const iters = first.iterations.flatMap((it) => it.iters)
  const axisOf = new Map(iters.map((x) => [x.name, x.axis]))
  const names = index.map((e) => (e.kind === 'var' ? e.name : ''))
  return (
    new Set(names).size === names.length &&
    iters.every((x) => names.includes(x.name)) &&
    names.every((name, d) => axisOf.get(name) === b.axes[d]) &&
    others.every((w) => w.top > first.top) &&
    kernel.body.every((s, k) => k > first.top || !readsIn([s]).some((l) => l.buffer === b.name))
  )
}

export const constantOf = (value: number, l: Load): Expr => constant(value, l.dtype)

/** Calls `update` for all states until it changes none; it returns whether it changed the state. */
export function untilSettled<S>(states: ReadonlyMap<string, readonly S[]>, update: (s: S) => boolean): void {
  const all = [...states.values()].flat()
  for (let changed = true; changed; ) changed = all.filter(update).length > 0
}
