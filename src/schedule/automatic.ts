/**
 * The schedule of a kernel that has none, for devices with threads: the outermost spatial loop of each nest over
 * blocks of threads. Right for any kernel, fast for few.
 */

import { freeVars, someExpr } from '../ir/expr.ts'
import type { For, Kernel2, Stmt } from '../ir/loops.ts'
import { loopsOf } from '../ir/tree.ts'
import type { LoopStep } from './steps.ts'

const THREADS = 64

/**
 * Steps for each nest of a kernel that binds nothing; none if it binds anything. Steps that are refused belong to
 * a nest whose iterations are not known to be independent: it stays on one thread.
 */
export function automatic(kernel: Kernel2): LoopStep[][] {
  if (loopsOf(kernel.body).some((l) => l.mode.kind === 'bind')) return []
  const params = new Set(kernel.params.map((p) => p.name))
  return kernel.body.flatMap((s: Stmt) => {
    if (s.kind !== 'for' || !canBind(s, params)) return []
    const outer = `${s.var}_block`
    const inner = `${s.var}_thread`
    return [
      [
        { kind: 'split', loop: { var: s.var }, by: THREADS, into: [outer, inner] },
        {
          kind: 'bind',
          bindings: [
            { loop: `${s.nest}.${outer}`, to: 'block.x' },
            { loop: `${s.nest}.${inner}`, to: 'thread.x' },
          ],
        },
      ] satisfies LoopStep[],
    ]
  })
}

const canBind = (l: For, params: ReadonlySet<string>): boolean =>
  !l.reduce &&
  l.mode.kind === 'serial' &&
  !someExpr(l.extent, (e) => e.kind === 'load' || e.kind === 'search') &&
  [...freeVars(l.extent)].every((v) => params.has(v))
