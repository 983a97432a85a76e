/** Loops that are fused, split and bound, where dimensions of what iterations leave each other are digits of one loop. */
import fc from 'fast-check'
import { test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { numbers, parameters } from '../properties/property-cases.ts'
import { Choices } from '../support/choices.ts'

/** A running sum in each row of each page, which goes through memory. */
const text = (read: string, steps: string): string => `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis part = dense_fixed(8)
  axis other = dense_fixed(8)
  buffer A: i32[i, j, part] in
  buffer T: i32[i, j, part] local
  buffer C: i32[i, j, part] out
  iterate all [i, j] as SS {
    iterate twice [part] as S { T[i, j, part] = 2 * A[i, j, part] }
    iterate sum [part, other] as SR where (other <= part) { C[i, j, part] += T[${read}, other] }
  }
}
schedule k.s { ${steps} }`

test('digits of a fused loop index temporaries between iterations', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const [m, k] = [c.pick([0, 1, 3, 7]), c.pick([0, 1, 2, 5])]
      const bound = c.pick(['bind e to block.x', 'split e by 3 -> (b, t) bind b to block.x, t to thread.y'])
      const inner = c.pick(['', 'bind twice.part to thread.x, sum.part to thread.x'])
      const values = Int32Array.from({ length: m * k * 8 }, () => c.below(9))
      const { compilation } = parseProgram(
        text('i, j', `split all.j by 1 -> (jo, ji) fuse (all.i, jo) -> e ${bound} ${inner}`),
      )
        .kernel()
        .schedule('s')
      await agreeOnAll(compilation, {
        tensors: { A: { kind: 'dense', shape: [m, k, 8], values, dtype: 'i32' } },
      })
    }),
    parameters(12),
  )
})
