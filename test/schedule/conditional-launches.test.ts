/** Nests under one condition of their iteration are separate launches: blocks of one launch cannot wait for each other. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { interpretedPlan } from '../support/interpreted.ts'

const sums = (where: string): string => `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer Y: i32[i] out
  iterate s [j, i] as RS where (${where}) { Y[i] += A[i, j] }
}`
const A = {
  kind: 'dense' as const,
  shape: [3, 4],
  values: Int32Array.from({ length: 12 }, (_, k) => k),
  dtype: 'i32' as const,
}

/** With the nest that adds up on blocks, and that of the partial sums on none; and the other way round. */
const BOUND = ['Y_partial.i', 's.i']

test.each(['m > 2', '1 < 2', 'n != 0 and m <= 3'].flatMap((w) => BOUND.map((b) => [w, b] as const)))(
  'partial sums where (%s), with %s on blocks',
  (where, loop) => {
    const program = parseProgram(
      `${sums(where)}\nschedule k.s { rfactor j\n ${loop === 's.i' ? 'reorder (s.i, s.j)\n' : ''} bind ${loop} to block.x }`,
    )
    const k = program.kernel().schedule('s')
    const [out] = [interpretedPlan(k, { tensors: { A } }).get('Y')]
    expect(out).toEqual([6, 22, 38])
    // The fill is none of them.
    expect(k.compilation.plan.steps.filter((s) => s.kind === 'launch').length).toBe(2)
  },
)
