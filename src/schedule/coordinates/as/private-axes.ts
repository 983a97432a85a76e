/**
 * Separate axes for a dense tensor. Sparse axes are a structure that the tensors over them share: a format stores all
 * these tensors. Declared dense axes are only sizes: a format stores the named tensor, and other buffers over its axes
 * do not change. Dense axes with other users are copied for the tensor and for the iterators at whose coordinates it is
 * accessed. All other code keeps the old axes, with coordinates from iterators over the copies.
 */
import { isDense, mapAxis, type StoredAxis, sourceName } from '../../../ir/coordinates/axis.ts'
import type { Iter, Iteration, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import type { Body1 } from '../../../ir/coordinates/stage1-tree.ts'
import { iterationsOf, mapBodies1, readsOf1, walkStmts1 } from '../../../ir/coordinates/stage1-tree.ts'
import type { Expr, Load } from '../../../ir/expressions/expr.ts'
import { parentsIn } from '../iterator-names.ts'

/**
 * Returns the kernel in which the axes that the buffer's format replaces have no other user, if they are dense.
 * `visited` contains the statements that will use the format.
 */
export function withOwnAxes(
  kernel: Kernel1,
  buffer: string,
  over: readonly StoredAxis[],
  unused: (name: string, label: string) => string,
  visited: Body1 = kernel.body,
): { readonly kernel: Kernel1; readonly over: readonly StoredAxis[] } {
  if (!over.every(isDense) || isOfFormat(kernel, over)) return { kernel, over }
  const moved = visitors({ ...kernel, body: visited }, buffer, over)
  const used = usedByOthers(kernel, buffer, over, moved)
  const copies = new Map(
    over.flatMap((a) => (used.has(a.name) ? [[a.name, unused(a.name, buffer)] as const] : [])),
  )
  if (copies.size === 0) return { kernel, over }
  const now = (name: string): string => copies.get(name) ?? name
  const own = over.map((a) => {
    const mine = mapAxis(a, now, (e) => e)
    return mine.name === a.name ? mine : { ...mine, copyOf: sourceName(a) }
  })
  const names = new Set(own.map((a) => a.name))
  const ofOver = new Set(over.map((a) => a.name))
  return {
    over: own,
    kernel: {
      ...kernel,
      axes: [...kernel.axes.filter((a) => !names.has(a.name)), ...own],
      buffers: kernel.buffers.map((b) =>
        b.name === buffer ? { ...b, axes: b.axes.map((a) => (ofOver.has(a) ? now(a) : a)) } : b,
      ),
      body: kernel.body.map((s) => overCopies(s, moved, now)),
    },
  }
}

/** Dense axes that a format created belong to a structure, through which data are bound. */
const isOfFormat = (kernel: Kernel1, over: readonly StoredAxis[]): boolean =>
  kernel.reformats.some((r) =>
    r.instance.parts.some((p) => over.some((a) => p.instance.order.includes(a.name))),
  )

/** Sets of iterators, by the iteration that has them. */
type Iterators = ReadonlyMap<Iteration, ReadonlySet<Iter>>

/** The iterators at whose coordinates an access is, one for each axis, each with its iteration. */
interface Visit {
  readonly iters: readonly { readonly iter: Iter; readonly of: Iteration }[]
  readonly around: readonly Iteration[]
}

/**
 * Returns the iterators at whose coordinates the buffer is accessed, one for each axis. If several iterators over one
 * axis are nested, the iterators of the first access count. Iterators through which another axis is entered stay.
 */
function visitors(kernel: Kernel1, buffer: string, over: readonly StoredAxis[]): Iterators {
  const start = kernel.buffers.find((b) => b.name === buffer)!.axes.indexOf(over[0]!.name)
  const under = iterationsOf(kernel.body).flatMap((it) => parentsIn(kernel, it))
  const taken: Visit[] = []
  const visit = (l: Load, around: readonly Iteration[]): void => {
    if (l.buffer !== buffer) return
    const iters = over.flatMap((a, k) => iteratorOf(l.index[start + k]!, a, around))
    if (iters.length < over.length) return
    const own = new Set(iters.map((x) => x.iter))
    if (under.some((u) => u.parent !== null && own.has(u.parent) && !own.has(u.iter))) return
    const next = { iters, around }
    if (!taken.some((t) => isWithin(t, next) || isWithin(next, t))) taken.push(next)
  }
  walkStmts1(kernel.body, (s, { iterations }) => {
    const around = s.kind === 'iterate' ? [...iterations, s] : iterations
    for (const l of readsOf1(s)) visit(l, around)
    if (s.kind === 'assign' || s.kind === 'reduce') for (const t of s.targets) visit(t, around)
  })
  const out = new Map<Iteration, Set<Iter>>()
  for (const { iter, of } of taken.flatMap((t) => t.iters)) out.set(of, (out.get(of) ?? new Set()).add(iter))
  return out
}

function iteratorOf(e: Expr, axis: StoredAxis, around: readonly Iteration[]): Visit['iters'] {
  if (e.kind !== 'var') return []
  const of = around.findLast((it) => it.iters.some((x) => x.name === e.name))
  const iter = of?.iters.find((x) => x.name === e.name)
  return of && iter?.axis === axis.name ? [{ iter, of }] : []
}

/** Returns whether `b` is nested in iterators of `a` that `b` does not use. */
const isWithin = (a: Visit, b: Visit): boolean =>
  a.iters.some(({ iter, of }, k) => iter !== b.iters[k]!.iter && b.around.includes(of))

/** Returns the axes that have users other than the buffer and the iterators that visit it. */
function usedByOthers(
  kernel: Kernel1,
  buffer: string,
  over: readonly StoredAxis[],
  moved: Iterators,
): ReadonlySet<string> {
  const own = new Set(over.map((a) => a.name))
  return new Set([
    ...kernel.buffers.flatMap((b) => (b.name === buffer ? [] : b.axes)),
    ...kernel.axes.flatMap((a) =>
      own.has(a.name)
        ? []
        : [
            ...('parent' in a && a.parent !== null ? [a.parent] : []),
            ...('base' in a ? [a.base] : []),
            ...('members' in a ? a.members : []),
          ],
    ),
    ...iterationsOf(kernel.body).flatMap((it) =>
      it.iters.flatMap((x) => (moved.get(it)?.has(x) ? [] : [x.axis])),
    ),
  ])
}

function overCopies(s: Stmt1, moved: Iterators, now: (axis: string) => string): Stmt1 {
  const inner = mapBodies1(s, (body) => body.map((x) => overCopies(x, moved, now)))
  const own = s.kind === 'iterate' ? moved.get(s) : undefined
  return own && inner.kind === 'iterate'
    ? { ...inner, iters: inner.iters.map((x) => (own.has(x) ? { ...x, axis: now(x.axis) } : x)) }
    : inner
}
