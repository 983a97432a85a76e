/**
 * Privatization of register tiles. Invariant reached: a dimension that is indexed by a thread number in all accesses is removed, because
 * registers are private to each thread.
 */

import { type Expr, int } from '../../ir/expressions/expr.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { levelOf } from '../../ir/instructions/hardware-axes.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { redirectAccesses } from '../../ir/statements/bindings.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { type Body, walkStmts } from '../../ir/statements/tree.ts'

const isThread = (e: Expr): boolean => e.kind === 'builtin' && levelOf(e.axis) === 'thread'

export function privatizeTiles(body: Body): Body {
  const tiles = new Map<string, Buffer>()
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'register' && !s.buffer.padding)
      tiles.set(s.buffer.name, s.buffer)
  })
  const indices = new Map<string, (readonly Expr[])[]>()
  for (const a of accessesOf(body)) {
    if (a.whole) tiles.delete(a.buffer)
    else if (tiles.has(a.buffer)) indices.set(a.buffer, [...(indices.get(a.buffer) ?? []), a.index])
  }
  const kept = new Map<string, readonly boolean[]>()
  for (const [name, { shape, memory }] of tiles) {
    // The last dimensions are those of a declared memory's tiles, which threads hold together.
    const before = shape.length - (memory?.shape.length ?? 0)
    const all = indices.get(name) ?? []
    const [first] = all
    const keeps = shape.map(
      (_, d) =>
        d >= before || !first || !isThread(first[d]!) || all.some((i) => keyOf(i[d]!) !== keyOf(first[d]!)),
    )
    if (keeps.includes(false)) kept.set(name, keeps)
  }
  if (kept.size === 0) return body
  const keptDims = (name: string, list: readonly Expr[], none: Expr): readonly Expr[] => {
    const rest = list.filter((_, d) => kept.get(name)![d])
    return rest.length > 0 ? rest : [none]
  }
  return redirectAccesses(
    body,
    ({ buffer, index }) =>
      kept.has(buffer) ? { buffer, index: keptDims(buffer, index, int(0)) } : undefined,
    (b) => (kept.has(b.name) ? [{ ...b, shape: keptDims(b.name, b.shape, int(1)) }] : undefined),
  )
}
