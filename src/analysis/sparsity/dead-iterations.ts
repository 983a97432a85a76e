/**
 * Removable iterations: whether a kernel has the same results without an iteration, because the written values are one
 * value everywhere, which replaces their reads, are there before, or are not needed.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Buffer1, Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Body1 } from '../../ir/coordinates/stage1-tree.ts'
import { mapBodies1, mapExprs1, readsIn, writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import { rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { knownValues } from './known-values.ts'
import { isFelt } from './maskable-iterations.ts'
import { neededElements } from './needed-elements.ts'
import { constantOf, readByAxes, reasonOfRounds, startOf, type Write, writesOf } from './writes.ts'

export interface StayReason {
  readonly reason: string
  readonly span?: Span | undefined
}

/**
 * Returns the kernel without the iteration, and without temporaries that become unused; otherwise the reason why the
 * iteration must stay.
 */
export function withoutIteration(kernel: Kernel1, it: Iteration): { readonly kernel: Kernel1 } | StayReason {
  const repeated = reasonOfRounds(kernel)
  if (repeated) return repeated
  const writes = writesOf(kernel)
  const values = constantsOf(kernel, it, writes)
  const folded = { ...kernel, body: folding(kernel.body, it, values) }
  const known = knownValues(folded, null, false)
  const needed = neededElements(folded, null, knownValues(folded, null, true))
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
      writtenBuffers1([it]).has(b.name) &&
      (b.role !== 'local' || read.has(b.name)) &&
      startOf(b, rest) !== startOf(b, writes),
  )
  if (changed)
    return { reason: `${changed.name} would start from another value without ${it.name}`, span: it.span }
  const used = new Set([...read, ...writtenBuffers1(body), ...readByAxes(kernel)])
  const isGone = (b: Buffer1): boolean =>
    b.role === 'local' && writtenBuffers1([it]).has(b.name) && !used.has(b.name)
  return { kernel: { ...kernel, body, buffers: kernel.buffers.filter((b) => !isGone(b)) } }
}

/** Returns the tensors that only the iteration writes, and that have one value wherever other statements read them. */
function constantsOf(kernel: Kernel1, it: Iteration, writes: readonly Write[]): ReadonlyMap<string, number> {
  const inside = (w: Write): boolean => w.iterations.includes(it)
  const elsewhere = writes.filter((w) => !inside(w))
  const fills = new Map(kernel.buffers.map((b) => [b.name, b.fill]))
  return new Map(
    knownValues(kernel, null, false).all.flatMap(({ tensor, value }) => {
      const own = writes.some((w) => inside(w) && w.targets.some((t) => t.buffer === tensor))
      const shared = elsewhere.some((w) => w.targets.some((t) => t.buffer === tensor))
      // A read beyond a tensor's coordinates returns its fill value.
      const known = elsewhere.every((w) =>
        w.loads.every((l) => l.buffer !== tensor || w.inside.has(keyOf(l)) || value === fills.get(tensor)),
      )
      return own && !shared && known ? [[tensor, value] as const] : []
    }),
  )
}

/** Returns the body with values in place of the reads outside of the iteration. */
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

/** Returns the body without the iteration, and without statements that become empty. */
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
