import { isBuiltinReducer } from '../../ir/monoid.ts'
import { rewriteStmts, stmt, walkStmts } from '../../ir/tree.ts'
import type { Primitive } from '../primitive.ts'
import { rowSums } from '../samples.ts'
import type { AtomicStep } from '../steps.ts'

/** Element types with atomic updates, directly or by compare-and-swap on a word. */
const ATOMIC_TYPES = ['f32', 'f64', 'i32', 'u32']

/**
 * `atomic C`: reductions into `C` update it atomically, so that loops which combine into its elements may be
 * bound to blocks. For one-element reducers over types of 32 bits or more; the order of combining is free then.
 */
export const atomic: Primitive<AtomicStep> = {
  kind: 'atomic',
  apply(cx, step) {
    const buffer = cx.buffer(step.buffer)
    if (buffer.scope === 'register')
      cx.refuse({
        code: 'not-shared',
        message: `${buffer.name} is in registers, which no other thread reaches`,
        expected: 'a buffer in global or shared memory',
      })
    if (!ATOMIC_TYPES.includes(buffer.dtype))
      cx.refuse({
        code: 'no-atomics',
        message: `there are no atomic updates of ${buffer.dtype}`,
        expected: `a buffer of ${ATOMIC_TYPES.join(', ')}`,
      })
    let reductions = 0
    walkStmts(cx.kernel.body, (s) => {
      if (s.kind !== 'reduce' || !s.targets.some((t) => t.buffer === buffer.name)) return
      reductions++
      if (s.targets.length > 1 || !isBuiltinReducer(s.reducer.name))
        cx.refuse({
          code: 'no-atomics',
          message: `${s.reducer.name} combines ${s.targets.length > 1 ? 'several elements' : 'by a declared monoid'}, which no atomic does`,
          expected: 'a reduction by + * min max and or',
          hint: 'rfactor the loop, which combines in a second nest',
        })
    })
    if (reductions === 0) cx.refuse({ code: 'no-reduction', message: `nothing reduces into ${buffer.name}` })
    return {
      body: rewriteStmts(cx.kernel.body, {
        stmt: (s) =>
          s.kind === 'reduce' && !s.atomic && s.targets[0]!.buffer === buffer.name
            ? stmt({ ...s, atomic: true })
            : undefined,
      }),
    }
  },
  example: {
    before: rowSums,
    step: { kind: 'atomic', buffer: 'y' },
    after: `\
for i in 0..m
  for j in 0..j_indptr[i + 1] - j_indptr[i]  reduce
    y[i] += A[j_indptr[i] + j]  init  atomic`,
  },
}
