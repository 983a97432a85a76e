/**
 * Whether a kernel comes to the same without an iteration: where what it writes is one value everywhere, which its readers may have
 * instead, or is there before, or is not needed.
 */
import type { Span } from '../../ast/diagnostic.ts'
import { rewriteExpr } from '../../ir/expr-tree.ts'
import type { Buffer1, Iteration, Kernel1 } from '../../ir/stage1.ts'
import { type Body1, mapBodies1, mapExprs1, readsIn, writtenBy } from '../../ir/stage1-tree.ts'
import { keyOf } from '../../ir/structural-equality.ts'
import { KnownValues } from './known-values.ts'
import { isFelt } from './maskable-iterations.ts'
import { NeededElements } from './needed-elements.ts'
import { constantOf, readByAxes, startOf, type Write, writesOf } from './writes.ts'

/** Why an iteration has to stay. */
export interface StayReason {
  readonly reason: string
  readonly span?: Span | undefined
}

/** The kernel without the iteration, and without temporaries that nothing is left of; or why it has to stay. */
export function withoutIteration(kernel: Kernel1, it: Iteration): { readonly kernel: Kernel1 } | StayReason {
  const writes = writesOf(kernel)
  const values = constantsOf(kernel, it, writes)
  const folded = { ...kernel, body: folding(kernel.body, it, values) }
  const known = new KnownValues(folded, null, false)
  const needed = new NeededElements(folded, null, new KnownValues(folded, null, true))
  const felt = writesOf(folded).find((w) => w.iterations.includes(it) && isFelt(w, [], { known, needed }))
  if (felt) {
    const names = felt.targets.map((t) => t.buffer)
    const need = names.flatMap((name) => needed.needsOf(name))[0]
    const written = names.join(', ')
    return {
      reason: `${it.name} computes ${written}, ${need ? `and ${need.reason}` : 'which is a result'}`,
      span: need?.span ?? felt.stmt.span,
    }
  }
  const body = without(folded.body, it)
  const rest = writesOf({ ...kernel, body })
  const read = new Set(readsIn(body).map((l) => l.buffer))
  const changed = kernel.buffers.find(
    (b) =>
      writtenBy([it]).has(b.name) &&
      (b.role !== 'local' || read.has(b.name)) &&
      startOf(b, rest) !== startOf(b, writes),
  )
  if (changed)
    return { reason: `${changed.name} would start from another value without ${it.name}`, span: it.span }
  const used = new Set([...read, ...writtenBy(body), ...readByAxes(kernel)])
  const isGone = (b: Buffer1): boolean =>
    b.role === 'local' && writtenBy([it]).has(b.name) && !used.has(b.name)
  return { kernel: { ...kernel, body, buffers: kernel.buffers.filter((b) => !isGone(b)) } }
}

/** Tensors that the iteration alone writes and that are one value wherever others read them. */
function constantsOf(kernel: Kernel1, it: Iteration, writes: readonly Write[]): ReadonlyMap<string, number> {
  const inside = (w: Write): boolean => w.iterations.includes(it)
  const elsewhere = writes.filter((w) => !inside(w))
  const fills = new Map(kernel.buffers.map((b) => [b.name, b.fill]))
  return new Map(
    new KnownValues(kernel, null, false).all.flatMap(({ tensor, value }) => {
      const own = writes.some((w) => inside(w) && w.targets.some((t) => t.buffer === tensor))
      const shared = elsewhere.some((w) => w.targets.some((t) => t.buffer === tensor))
      // Beyond a tensor's coordinates its fill is read.
      const known = elsewhere.every((w) =>
        w.loads.every((l) => l.buffer !== tensor || w.inside.has(keyOf(l)) || value === fills.get(tensor)),
      )
      return own && !shared && known ? [[tensor, value] as const] : []
    }),
  )
}

/** With values in place of what others than the iteration read. */
const folding = (body: Body1, it: Iteration, values: ReadonlyMap<string, number>): Body1 =>
  body.map((s) => {
    if (s === it) return s
    const own = mapExprs1(
      s,
      (e) =>
        rewriteExpr(e, (x) => {
          const value = x.kind === 'load' ? values.get(x.buffer) : undefined
          return x.kind === 'load' && value !== undefined ? constantOf(value, x) : undefined
        }),
      (t) => t,
    )
    return mapBodies1(own, (inner) => folding(inner, it, values))
  })

/** What is left; what has nothing in it any more goes as well. */
const without = (body: Body1, it: Iteration): Body1 =>
  body.flatMap((s) => {
    if (s === it) return []
    const inner = mapBodies1(s, (b) => without(b, it))
    const isEmpty =
      inner !== s &&
      ((inner.kind === 'iterate' && inner.body.length === 0) ||
        (inner.kind === 'if' && inner.then.length === 0 && inner.else.length === 0))
    return isEmpty ? [] : [inner]
  })
