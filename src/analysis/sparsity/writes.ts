/** Statements that write, with all that they read written out; what tensors start from, and which of them can be masks. */
import { isDenseRoot, isGathered } from '../../ir/axis.ts'
import { constant, type Expr, type Load } from '../../ir/expr.ts'
import { substitute, walkExpr } from '../../ir/expr-tree.ts'
import { remembered } from '../../ir/remembered.ts'
import type { Buffer1, Iteration, Kernel1 } from '../../ir/stage1.ts'
import { readsIn, walkStmts1, writtenBy } from '../../ir/stage1-tree.ts'
import { keyOf, sameExpr } from '../../ir/structural-equality.ts'
import { type Written, writtenIn } from '../fill-folding.ts'

/** A statement that writes, without names of `let`s. */
export interface Write extends Written {
  /** Around it, outermost first. */
  readonly iterations: readonly Iteration[]
  /** The place in the kernel of the statement that it is in. */
  readonly top: number
  readonly targets: readonly Load[]
  /** Whatever it reads, each access once. */
  readonly loads: readonly Load[]
  /** The accesses of it that are at coordinates which the tensor has, by their keys; of others the fill may be read. */
  readonly inside: ReadonlySet<string>
}

export const writesOf = remembered((kernel: Kernel1): readonly Write[] => {
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

/** What elements are before anything writes them; `null`: whatever the caller has there. */
export function startOf({ role, name, fill }: Buffer1, writes: readonly Write[]): number | null {
  if (role === 'in' || role === 'inout') return null
  const isOf = (t: Load): boolean => t.buffer === name
  const first = writes.find((w) => w.targets.some(isOf))
  if (first?.stmt.kind !== 'reduce') return fill
  const identity = first.stmt.reducer.identity[first.targets.findIndex(isOf)]!
  return identity.kind === 'const' ? identity.value : null
}

/** Tensors that axes, or what was found of them in a run, go through: they are read without being named. */
export const readByAxes = remembered(
  (kernel: Kernel1): ReadonlySet<string> =>
    new Set([
      ...kernel.axes.flatMap((a) => (isGathered(a) ? [a.buffer] : [])),
      ...(kernel.capacities ?? []).map((c) => c.counts),
    ]),
)

const MOST_DIMENSIONS = 5

export const isAllDense = (kernel: Kernel1, b: Buffer1): boolean =>
  b.axes.every((name) => kernel.axes.some((a) => a.name === name && isDenseRoot(a)))

/** Dense tensors that are complete before anything reads them: where they hold anything is one question. */
export const masksOf = remembered((kernel: Kernel1): readonly Buffer1[] => {
  const reads = kernel.body.map((s) => new Set(readsIn([s]).map((l) => l.buffer)))
  const written = kernel.body.map((s) => writtenBy([s]))
  return kernel.buffers.filter((b) => {
    if (b.table || b.axes.length === 0 || b.axes.length > MOST_DIMENSIONS) return false
    const first = reads.findIndex((r) => r.has(b.name))
    return first >= 0 && written.findLastIndex((w) => w.has(b.name)) < first && isAllDense(kernel, b)
  })
})

/** Sparse tensors that come in: no masks of iterations, but temporaries over their axes may be at their fill where they are. */
export const sparseInputsOf = remembered((kernel: Kernel1): readonly Buffer1[] => {
  const read = new Set(readsIn(kernel.body).map((l) => l.buffer))
  return kernel.buffers.filter(
    (b) => b.role === 'in' && !b.table && read.has(b.name) && isNamed(b) && !isAllDense(kernel, b),
  )
})

const isNamed = ({ axes }: Buffer1): boolean =>
  axes.length <= MOST_DIMENSIONS && new Set(axes).size === axes.length

/**
 * The ways in which dimensions of a mask are dimensions of a tensor, all of them and each another: those as long. Of tensors over
 * sparse axes, those that are over the same.
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

/** The element of the mask that an element of a tensor goes with. */
export const maskedAt = (l: Load, by: readonly number[]): readonly Expr[] => by.map((d) => l.index[d]!)

export const sameIndex = (a: readonly Expr[], b: readonly Expr[]): boolean =>
  a.length === b.length && a.every((e, k) => keyOf(e) === keyOf(b[k]!))

/** Whether all elements are written, by one statement, before anything else sees them. */
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
