/** Values that a narrow element type has, among those that registers hold: such are stored without rounding. */
import type { Dtype } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import type { Launch } from '../ir/loops.ts'
import { walkStmts } from '../ir/tree.ts'

export class Exact {
  /** Register buffers that may hold others than their type has: reductions into them are stores by now. */
  readonly #wider: ReadonlySet<string>

  constructor(launch: Launch) {
    const types = new Map<string, Dtype>()
    const stores: { readonly to: string; readonly value: Expr }[] = []
    const wider = new Set<string>()
    walkStmts(launch.body, (s) => {
      if (s.kind === 'alloc' && s.buffer.scope === 'register') types.set(s.buffer.name, s.buffer.dtype)
      if (s.kind === 'store') stores.push({ to: s.buffer, value: s.value })
    })
    this.#wider = wider
    for (let before = -1; before !== wider.size; ) {
      before = wider.size
      for (const { to, value } of stores) {
        const type = types.get(to)
        if (type && !this.is(value, type)) wider.add(to)
      }
    }
  }

  /** Whether a value is surely one of the type: arithmetic is not. */
  is(e: Expr, type: Dtype): boolean {
    if (e.dtype !== type) return false
    // What was loaded as a part of a vector has a name with a point in it.
    if (e.kind === 'var') return e.name.includes('.')
    return e.kind === 'cast' || (e.kind === 'load' && !this.#wider.has(e.buffer))
  }
}
