/**
 * Privatization of register tiles. Invariant reached: a dimension that is indexed by a thread number in all accesses is removed, because
 * registers are private to each thread.
 */

import { isPacked } from '../../analysis/instructions/lane-groups.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { type Expr, int } from '../../ir/expressions/expr.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { levelOf } from '../../ir/instructions/hardware-axes.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { redirectAccesses } from '../../ir/statements/bindings.ts'
import { allocations } from '../../ir/statements/definitions.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import type { Body } from '../../ir/statements/tree.ts'

const isThread = (e: Expr): boolean => e.kind === 'builtin' && levelOf(e.axis) === 'thread'

export function privatizeTiles(body: Body): Body {
  const kept = new Map<string, readonly boolean[]>()
  for (const [{ name, shape, memory, padding }, indices] of registerArrays(body)) {
    if (padding) continue
    // The last dimensions are those of a declared memory's tiles, which threads hold together.
    const before = shape.length - (memory?.shape.length ?? 0)
    const [first] = indices
    const keeps = shape.map(
      (_, d) =>
        d >= before ||
        !first ||
        !isThread(first[d]!) ||
        indices.some((i) => keyOf(i[d]!) !== keyOf(first[d]!)),
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

/** Register arrays that are accessed by element only, with the indices of all accesses. */
function registerArrays(body: Body): ReadonlyMap<Buffer, (readonly Expr[])[]> {
  const arrays = allocations(body)
  const indices = new Map<string, (readonly Expr[])[]>()
  for (const b of arrays.values()) if (b.scope === 'register') indices.set(b.name, [])
  for (const a of accessesOf(body))
    if (a.whole) indices.delete(a.buffer)
    else indices.get(a.buffer)?.push(a.index)
  return new Map([...indices].map(([name, list]) => [arrays.get(name)!, list]))
}

/**
 * Scalar replacement of aggregates (SROA). Invariant reached: a register array that is only accessed at constant indices becomes one
 * scalar per element, so that targets keep it in registers.
 */
export function replaceArraysByScalars(body: Body, names: Names): Body {
  const scalars = new Map<string, readonly Buffer[]>()
  for (const [b, indices] of registerArrays(body)) {
    const length = b.shape[0]?.kind === 'const' ? b.shape[0].value : 1
    // Instructions read two half-precision elements as one word.
    if (length === 1 || isPacked(b) || indices.some(([at]) => at?.kind !== 'const')) continue
    const elementAt = (k: number): Buffer => ({ ...b, name: names.fresh(`${b.name}_${k}`), shape: [int(1)] })
    scalars.set(
      b.name,
      Array.from({ length }, (_, k) => Object.freeze(elementAt(k))),
    )
  }
  if (scalars.size === 0) return body
  return redirectAccesses(
    body,
    ({ buffer, index: [at] }) => {
      const element = at?.kind === 'const' ? scalars.get(buffer)?.[at.value] : undefined
      return element && { buffer: element.name, index: [int(0)] }
    },
    (b) => scalars.get(b.name),
  )
}
