/**
 * Scalar replacement of aggregates (SROA). Invariant reached: a register array that is only accessed at constant indices becomes one
 * scalar per element, so that targets keep it in registers.
 */

import { isPacked } from '../../analysis/instructions/lane-groups.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { int } from '../../ir/expressions/expr.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { redirectAccesses } from '../../ir/statements/bindings.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { type Body, walkStmts } from '../../ir/statements/tree.ts'

export function replaceArraysByScalars(body: Body, names: Names): Body {
  const arrays = new Map<string, readonly Buffer[]>()
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'register') arrays.set(s.buffer.name, [])
  })
  for (const a of accessesOf(body)) if (a.whole || a.index[0]?.kind !== 'const') arrays.delete(a.buffer)
  walkStmts(body, (s) => {
    const length = s.kind === 'alloc' && s.buffer.shape[0]?.kind === 'const' ? s.buffer.shape[0].value : 1
    if (s.kind !== 'alloc' || !arrays.has(s.buffer.name)) return
    // Instructions read two half-precision elements as one word.
    if (isPacked(s.buffer)) {
      arrays.delete(s.buffer.name)
      return
    }
    if (length === 1) arrays.delete(s.buffer.name)
    else arrays.set(s.buffer.name, elementsOf(s.buffer, length, names))
  })
  if (arrays.size === 0) return body
  return redirectAccesses(
    body,
    ({ buffer, index: [at] }) => {
      const element = at?.kind === 'const' ? arrays.get(buffer)?.[at.value] : undefined
      return element && { buffer: element.name, index: [int(0)] }
    },
    (b) => arrays.get(b.name),
  )
}

const elementsOf = (b: Buffer, length: number, names: Names): readonly Buffer[] =>
  Array.from({ length }, (_, k) =>
    Object.freeze({ ...b, name: names.fresh(`${b.name}_${k}`), shape: [int(1)] }),
  )
