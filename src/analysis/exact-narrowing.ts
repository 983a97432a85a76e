/**
 * Exactness of values in registers: values that a narrow element type represents, and which are stored without
 * rounding.
 */

import type { Expr } from '../ir/expressions/expr.ts'
import { buffersRead, freeVars } from '../ir/expressions/expr-tree.ts'
import { type Body, walkStmts } from '../ir/statements/tree.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import { rounding } from '../ir/values/half.ts'

export class Exact {
  /** Register buffers that may hold values outside of their type, because reductions into them have become stores. */
  readonly #wider: ReadonlySet<string>

  readonly #types = new Map<string, Dtype>()
  readonly #lets = new Map<string, Expr>()
  /** The registers that each named value is computed from. */
  readonly #behind = new Map<string, ReadonlySet<string>>()

  constructor(body: Body) {
    const stores: { readonly to: string; readonly value: Expr }[] = []
    const wider = new Set<string>()
    walkStmts(body, (s) => {
      if (s.kind === 'alloc' && s.buffer.scope === 'register') this.#types.set(s.buffer.name, s.buffer.dtype)
      if (s.kind === 'let') {
        this.#behind.set(s.name, this.#readBy(s.value))
        this.#lets.set(s.name, s.value)
      }
      if (s.kind === 'store') stores.push({ to: s.buffer, value: s.value })
    })
    this.#wider = wider
    for (let before = -1; before !== wider.size; ) {
      before = wider.size
      for (const { to, value } of stores) {
        const type = this.#types.get(to)
        if (type && !this.is(value, type)) wider.add(to)
      }
    }
  }

  /**
   * Returns whether a value continues from the contents of the register, as sums do, which keep full precision until
   * they are stored in memory.
   */
  goesOn(register: string, value: Expr): boolean {
    return this.#readBy(value).has(register)
  }

  /** Returns the registers that a value is computed from, also through names. */
  #readBy(value: Expr): ReadonlySet<string> {
    const own = [...buffersRead(value)].filter((b) => this.#types.has(b))
    return new Set([...own, ...[...freeVars(value)].flatMap((v) => [...(this.#behind.get(v) ?? [])])])
  }

  /** Returns whether a value is certainly a value of the type; results of arithmetic are not. */
  is(e: Expr, type: Dtype): boolean {
    if (e.dtype !== type) return false
    // Components of a loaded vector have names with a dot.
    if (e.kind === 'var') {
      const value = this.#lets.get(e.name)
      return value ? this.is(value, type) : e.name.includes('.')
    }
    if (e.kind === 'const') return Object.is(rounding(type)(e.value), e.value)
    return e.kind === 'cast' || (e.kind === 'load' && !this.#wider.has(e.buffer))
  }
}
