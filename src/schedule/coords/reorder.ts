/**
 * `reorder (i, f, j)` on iterators: they take each other's places in this order; others stay where they are
 * (SparseTIR's sparse_reorder). Spatial iterators write different elements and reductions commute, so any order in
 * which every axis comes after its parent is legal.
 */
import { type Axis, parentOf } from '../../ir/axis.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import { findIters, refuse, replaceIteration } from './find.ts'
import type { CoordExample, ReorderIters } from './steps.ts'

export function applyReorder(kernel: Kernel1, step: ReorderIters): Kernel1 {
  const { iteration, iters } = findIters(kernel, step.loops, step.span)
  if (new Set(iters).size !== iters.length)
    refuse(kernel, step.span, {
      code: 'repeated-loop',
      message: 'an iterator is named twice',
      expected: 'each iterator once',
    })
  const queue = [...iters]
  const order = iteration.iters.map((x) => (iters.includes(x) ? queue.shift()! : x))
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  order.forEach((x, k) => {
    const axis = axes.get(x.axis)
    const parent = axis ? parentOf(axis) : null
    const late = parent === null ? undefined : order.slice(k + 1).find((y) => opens(axes.get(y.axis), parent))
    if (late)
      refuse(kernel, step.span, {
        code: 'parent-first',
        message: `${x.name} would come before ${late.name}, whose positions its coordinates lie under`,
        expected: `${late.name} before ${x.name}`,
        hint: `axis ${x.axis} is stored under axis ${parent}: keep their order`,
      })
  })
  return { ...kernel, body: replaceIteration(kernel.body, iteration, { ...iteration, iters: order }) }
}

/** An iterator over a fused axis opens all its members. */
const opens = (axis: Axis | undefined, name: string): boolean =>
  axis !== undefined && (axis.name === name || (axis.kind === 'fused' && axis.members.includes(name)))

export const example: CoordExample = {
  before: `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer y: f32[i, f] out
  iterate sum [i, j, f] as SRS {
    y[i, f] += A[i, j]
  }
}`,
  steps: 'reorder (f, j)',
  after: `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer y: f32[i, f] out
  iterate sum [i, f, j] as SSR {
    y[i, f] += A[i, j]
  }
}`,
}
