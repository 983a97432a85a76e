/** Gradients of sparse tensors at all coordinates: the domain of a statement with dense axes in place of stored ones. */
import { comesToNothing } from '../analysis/sparsity/fill-folding.ts'
import type { Write } from '../analysis/sparsity/writes.ts'
import { failAt } from '../ast/diagnostics/diagnostic.ts'
import { type Axis, isDenseRoot, isFused } from '../ir/coordinates/axis.ts'
import type { Buffer1, Iter } from '../ir/coordinates/stage1.ts'
import { constant, type Expr, type Load, variable } from '../ir/expressions/expr.ts'
import { walkExpr } from '../ir/expressions/expr-tree.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import { axesOfCoordinates, isVisitedOnce, storedAxis } from './elements.ts'

/**
 * The iterators of a statement over the dense axes of a tensor's gradient, and their coordinates by the coordinates of
 * the statement. Elements that the tensor does not store have to
 * be zeros of the statement's products, and no other tensor may have their structure.
 * @param dense - The element, its tensor, and the axes of the gradient
 * @param value - What the statement adds to the gradient of the element
 * @throws SptError `derive/not-dense`
 */
export function denseDomain(
  w: Write,
  dense: { readonly leaf: Load; readonly of: Buffer1; readonly axes: readonly string[] },
  value: Expr,
  axes: ReadonlyMap<string, Axis>,
  buffers: ReadonlyMap<string, Buffer1>,
): { readonly iters: readonly Iter[]; readonly coordinates: ReadonlyMap<string, Expr> } {
  const { leaf, of } = dense
  const reject = (reason: string): never =>
    failAt('derive/not-dense', w.stmt.span, {
      message: `the gradient of ${leaf.buffer} at all coordinates does not follow from this statement: ${reason}`,
      expected: `a sum of products with ${leaf.buffer}`,
      hint: `leave out \`dense\`: the gradient has the structure of ${leaf.buffer}`,
    })
  const coordinates = axesOfCoordinates(w, axes)
  const around = w.iterations.flatMap((it) => it.iters)
  const isSparse = (axis: string): boolean => of.axes.includes(axis) && !isDenseRoot(axes.get(axis)!)
  if (!isVisitedOnce(leaf, of, coordinates, axes)) {
    if ([...coordinates.values()].some((a) => isSparse(storedAxis(a, axes)!.name)))
      reject(`it visits elements of ${leaf.buffer}, and reads others`)
    return { iters: around, coordinates: new Map() }
  }
  const zero = constant(0, leaf.dtype)
  if (!comesToNothing(w, (l) => (keyOf(l) === keyOf(leaf) ? zero : undefined)))
    reject(`its value is not 0 where ${leaf.buffer} is 0`)
  /** Dense axes by the coordinates that run over them. */
  const all = new Map<string, string>()
  for (const [d, e] of leaf.index.entries())
    if (e.kind === 'var' && isSparse(of.axes[d]!)) all.set(e.name, dense.axes[d]!)
  const replaced = new Set([...all.keys()].map((name) => coordinates.get(name)!.name))
  const check = (l: Load): void => {
    const other = buffers.get(l.buffer)
    if (l.buffer !== leaf.buffer && other?.axes.some((a) => replaced.has(a)))
      reject(`${l.buffer} has the same structure`)
  }
  for (const t of w.targets) check(t)
  for (const e of [value, ...w.conditions]) walkExpr(e, (x) => (x.kind === 'load' ? check(x) : undefined))
  const iters = around.flatMap(({ name, axis, kind }): readonly Iter[] => {
    const a = axes.get(axis)!
    if (!isFused(a) || !a.members.some((m) => all.has(m))) return [{ name, axis, kind }]
    return a.members.map((m) => ({ name: m, axis: m, kind }))
  })
  const child = iters.find((x) => {
    const a = axes.get(x.axis)!
    return !all.has(x.name) && 'parent' in a && replaced.has(a.parent as string)
  })
  if (child) reject(`${child.name} depends on ${(axes.get(child.axis) as { parent?: string }).parent}`)
  const over = ({ name, axis, kind }: Iter): Iter => ({
    name: all.get(name) ?? name,
    axis: all.get(name) ?? axis,
    kind,
  })
  return {
    iters: iters.map(over),
    coordinates: new Map([...all].map(([name, axis]) => [name, variable(axis)])),
  }
}
