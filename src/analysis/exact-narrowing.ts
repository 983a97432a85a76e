/**
 * Exactness of values in registers: values that a narrow element type represents, and which are stored without
 * rounding.
 */

import type { Expr } from '../ir/expressions/expr.ts'
import { buffersRead, freeVars } from '../ir/expressions/expr-tree.ts'
import { type Body, walkStmts } from '../ir/statements/tree.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import { rounding } from '../ir/values/half.ts'

export type Exact = ReturnType<typeof exactNarrowing>

export function exactNarrowing(body: Body) {
  /**
   * Returns whether a value continues from the contents of the register, as sums do, which keep full precision until
   * they are stored in memory.
   */
  const goesOn = (register: string, value: Expr): boolean => readBy(value).has(register)
  /** Returns the registers that a value is computed from, also through names. */
  const readBy = (value: Expr): ReadonlySet<string> => {
    const own = [...buffersRead(value)].filter((b) => types.has(b))
    return new Set([...own, ...[...freeVars(value)].flatMap((v) => [...(behind.get(v) ?? [])])])
  }
  /** Returns whether a value is certainly a value of the type; results of arithmetic are not. */
  const is = (e: Expr, type: Dtype): boolean => {
    if (e.dtype !== type) return false
    // Components of a loaded vector have names with a dot.
    if (e.kind === 'var') {
      const value = lets.get(e.name)
      return value ? is(value, type) : e.name.includes('.')
    }
    if (e.kind === 'const') return Object.is(rounding(type)(e.value), e.value)
    return e.kind === 'cast' || (e.kind === 'load' && !wider.has(e.buffer))
  }
  const types = new Map<string, Dtype>()
  const lets = new Map<string, Expr>()
  /** The registers that each named value is computed from. */
  const behind = new Map<string, ReadonlySet<string>>()
  const stores: { readonly to: string; readonly value: Expr }[] = []
  /** Register buffers that may hold values outside of their type, because reductions into them have become stores. */
  const wider = new Set<string>()
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'register') types.set(s.buffer.name, s.buffer.dtype)
    if (s.kind === 'let') {
      behind.set(s.name, readBy(s.value))
      lets.set(s.name, s.value)
    }
    if (s.kind === 'store') stores.push({ to: s.buffer, value: s.value })
  })
  for (let before = -1; before !== wider.size; ) {
    before = wider.size
    for (const { to, value } of stores) {
      const type = types.get(to)
      if (type && !is(value, type)) wider.add(to)
    }
  }
  return { goesOn, is }
}
