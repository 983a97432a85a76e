/** The forward statements, tensors, axes and parameters that a derived kernel needs. */

import { writesOf } from '../analysis/sparsity/writes.ts'
import { type Axis, isDense, isGathered, operandsOfAxis } from '../ir/coordinates/axis.ts'
import type { Kernel1, Stmt1 } from '../ir/coordinates/stage1.ts'
import {
  type Body1,
  iterationsOf,
  mapBodies1,
  namesRead1,
  readsIn,
  walkStmts1,
  writersIn,
  writtenBuffers1,
} from '../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { freeVars } from '../ir/expressions/expr-tree.ts'

/** All names that a kernel declares or binds. */
export function namesIn({ name, params, axes, buffers, body }: Kernel1): readonly string[] {
  const bound: string[] = []
  walkStmts1(body, (s) => {
    if (s.kind === 'iterate') bound.push(s.name, ...s.iters.map((x) => x.name))
    if (s.kind === 'let') bound.push(s.name)
  })
  return [name, ...[...params, ...axes, ...buffers].map((x) => x.name), ...bound]
}

/**
 * A kernel with backward iterations after its own, without the statements and declarations that have no effect.
 * @param keepsOutputs - Whether the outputs of the kernel remain; otherwise they are temporaries if they are needed
 */
export function pruned(kernel: Kernel1, backward: Body1, keepsOutputs: boolean): Kernel1 {
  const isOutput = (role: string): boolean => role === 'out' || role === 'inout'
  const gradients = writtenBuffers1(backward)
  const needed = new Set(readsIn(backward).map((l) => l.buffer))
  if (keepsOutputs) for (const b of kernel.buffers) if (isOutput(b.role)) needed.add(b.name)
  const writes = writesOf(kernel)
  for (let before = -1; before !== needed.size; ) {
    before = needed.size
    for (const w of writes)
      if (w.targets.some((t) => needed.has(t.buffer))) for (const l of w.loads) needed.add(l.buffer)
  }
  const body = [...withoutEffects(kernel.body, needed), ...backward]
  const used = new Set([...readsIn(body).map((l) => l.buffer), ...writtenBuffers1(body)])
  const axesOf = new Map(kernel.axes.map((a) => [a.name, a]))
  const visited = iterationsOf(body).flatMap((it) => it.iters.map((x) => x.axis))
  const accessed = kernel.buffers.filter((b) => used.has(b.name))
  const axes = closure([...visited, ...accessed.flatMap((b) => b.axes)], axesOf)
  // An input that is not read may be the only one with the structure of an axis.
  const given = new Set(accessed.flatMap((b) => (b.role === 'in' ? b.axes : [])))
  const structures = kernel.buffers.filter((b) => {
    const gives =
      b.role === 'in' && b.axes.some((a) => axes.has(a) && !given.has(a) && !isDense(axesOf.get(a)))
    if (gives) for (const a of b.axes) given.add(a)
    return gives
  })
  for (const a of closure(
    structures.flatMap((b) => b.axes),
    axesOf,
  ))
    axes.add(a)
  const lists = new Set(kernel.axes.flatMap((a) => (isGathered(a) && axes.has(a.name) ? [a.buffer] : [])))
  for (const b of kernel.buffers) if (lists.has(b.name)) for (const a of closure(b.axes, axesOf)) axes.add(a)
  const buffers = kernel.buffers
    .filter((b) => accessed.includes(b) || structures.includes(b) || lists.has(b.name))
    .map((b) =>
      keepsOutputs || !isOutput(b.role) || gradients.has(b.name) || b.role === 'inout'
        ? b
        : { ...b, role: 'local' as const },
    )
  const kept = kernel.axes.filter((a) => axes.has(a.name))
  const mentioned = new Set([...kept.flatMap(sizesOf), ...namesRead1(body)])
  return { ...kernel, params: kernel.params.filter((p) => mentioned.has(p.name)), axes: kept, buffers, body }
}

const sizesOf = (a: Axis): readonly string[] => [
  ...operandsOfAxis(a).flatMap(([, of, x]) => (of === 'size' ? [...freeVars(x as Expr)] : [])),
  ...('padding' in a && typeof a.padding === 'object' ? freeVars(a.padding) : []),
  ...('packed' in a && a.packed ? freeVars(a.packed) : []),
]

/** Axes with those that their declarations name. */
function closure(names: readonly string[], axes: ReadonlyMap<string, Axis>): Set<string> {
  const out = new Set<string>()
  const visit = (name: string): void => {
    if (out.has(name)) return
    out.add(name)
    for (const [, of, x] of operandsOfAxis(axes.get(name)!)) {
      if (of === 'size' || of === 'buffer' || x === null || x === undefined) continue
      for (const other of typeof x === 'string' ? [x] : (x as readonly string[])) visit(other)
    }
  }
  for (const name of names) visit(name)
  return out
}

/** The statements that write a needed tensor, with their surroundings. */
export function withoutEffects(body: Body1, needed: ReadonlySet<string>): Body1 {
  const writes = (s: Stmt1): boolean =>
    writersIn([s]).some((w) => w.targets.some((t) => needed.has(t.buffer)))
  const kept: Stmt1[] = []
  for (const s of body.toReversed())
    if (s.kind === 'let' ? namesRead1(kept).has(s.name) : writes(s))
      kept.unshift(mapBodies1(s, (b) => withoutEffects(b, needed)))
  return kept
}
