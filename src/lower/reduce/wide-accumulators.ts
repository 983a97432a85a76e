/**
 * Wide accumulators (mixed-precision accumulation). Invariant reached: every reduction accumulates in the type that its buffer declares.
 * If the schedule keeps no accumulator in registers, a temporary of that type is rounded into the buffer at the end.
 */

import { namesOf } from '../../ir/expressions/bound-names.ts'
import { cast, constant, load } from '../../ir/expressions/expr.ts'
import { renameBuffer } from '../../ir/statements/bindings.ts'
import type { Buffer, Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { type ReductionPath, reductionsOf, retarget } from '../../ir/statements/reductions.ts'
import { store, unflatten } from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, stmt } from '../../ir/statements/tree.ts'
import { isBuiltinReducer } from '../../ir/values/monoid.ts'
import { flatNest, isParallel } from '../launches/launch-outlining.ts'

export function widenAccumulators(kernel: Kernel2): Kernel2 {
  const narrow = new Set(kernel.buffers.filter((b) => b.accumulate !== b.dtype).map((b) => b.name))
  const reductions = reductionsOf(kernel.body).filter(({ reduce }) =>
    buffersOf(reduce).some((b) => narrow.has(b)),
  )
  if (reductions.length === 0) return kernel
  const several = new Set(reductions.flatMap((r) => (combinesOnce(r) ? [] : buffersOf(r.reduce))))
  const stored = reductions.flatMap(({ reduce }) => (several.has(buffersOf(reduce)[0]!) ? [] : [reduce]))
  const wide = kernel.buffers.filter((b) => narrow.has(b.name) && several.has(b.name))
  const names = namesOf(kernel)
  const parallel = isParallel(kernel.body)
  let body: Body = storeWhole(kernel.body, stored)
  const temporaries: Buffer[] = []
  for (const b of wide) {
    const name = names.fresh(`${b.name}_wide`)
    const temporary: Buffer = { ...b, name, dtype: b.accumulate, role: 'local' }
    temporaries.push(temporary)
    const renamed = retype(renameBuffer(body, b.name, name), temporary)
    const copy = (to: Buffer, from: Buffer): Stmt =>
      flatNest(b, `${b.name}_round`, names, parallel, (p) => {
        const index = unflatten(p, b.shape)
        return store(to.name, index, load(from.name, index, from.dtype))
      })
    // No other statement reads a local buffer.
    const back = b.role === 'local' ? [] : [copy(b, temporary)]
    body = [...(b.role === 'inout' ? [copy(temporary, b)] : []), ...renamed, ...back]
  }
  return { ...kernel, buffers: [...kernel.buffers, ...temporaries], body }
}

const buffersOf = (reduce: Reduce): readonly string[] => reduce.targets.map((t) => t.buffer)

/** Returns true if a reduction initialises each element and combines exactly one value into it. */
const combinesOnce = ({ reduce, path }: ReductionPath): boolean =>
  reduce.init && !reduce.atomic && isBuiltinReducer(reduce.reducer.name) && path.every((l) => !l.reduce)

const storeWhole = (body: Body, reductions: readonly Reduce[]): Body =>
  reductions.length === 0
    ? body
    : rewriteStmts(body, {
        stmt: (s) => {
          if (s.kind !== 'reduce' || !reductions.includes(s)) return undefined
          const [target] = s.targets
          return store(target!.buffer, target!.index, cast(s.values[0]!, target!.dtype))
        },
      })

/** Gives the renamed buffer the type of the temporary: reductions combine in it, and loads are cast to the original type. */
function retype(body: Body, to: Buffer): Body {
  return rewriteStmts(body, {
    expr: (e) =>
      e.kind === 'load' && e.buffer === to.name
        ? cast(load(to.name, e.index, to.dtype, e.span), e.dtype)
        : undefined,
    stmt: (s) => {
      if (s.kind === 'reduce' && s.targets.some((t) => t.buffer === to.name))
        return retarget(
          s,
          s.targets.map((t) => (t.buffer === to.name ? load(to.name, t.index, to.dtype, t.span) : t)),
        )
      if (s.kind === 'store' && s.combined && s.buffer === to.name && s.value.kind === 'cast')
        return stmt({ ...s, value: s.value.x })
      if (s.kind === 'fill' && s.buffer === to.name && s.value.kind === 'const')
        return stmt({ ...s, value: constant(s.value.value, to.dtype) })
      return undefined
    },
  })
}
