/** What guards cost: a condition that a loop does not change stands outside of it, and reads what it tests once. */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'

const SOURCE = `
kernel scatter(n: size, m: size, d: size) {
  axis p = dense_fixed(n)
  axis y = dense_fixed(m)
  axis f = dense_fixed(d)
  buffer to: i32[p] in
  buffer X: f32[p, f] in
  buffer Y: f32[y, f] out
  iterate add [p, f] as RS { Y[to[p], f] += X[p, f] }
}`

test('a predicated scatter agrees with the reference', async () => {
  const program = await load(SOURCE)
  const [text] = program.kernel('scatter').emit('js')
  expect(text!.text).toMatchInlineSnapshot(`
    "export function scatter_2(to, X, Y, lost_writes, n, m, d) {
      for (let p = 0; p < n; p++) {
        const to_at = to[p];
        const at_2 = Math.imul(p, d);
        if (to_at >= 0 && to_at < m) {
          const at = Math.imul(to_at, d);
          for (let f = 0; f < d; f++) {
            Y[((at + f) | 0)] = Y[((at + f) | 0)] + X[at_2 + f];
          }
        } else {
          for (let f_2 = 0; f_2 < d; f_2++) {
            if ((X[at_2 + f_2] !== 0)) {
              lost_writes[0] = Math.max(lost_writes[0], 1);
            }
          }
        }
      }
    }"
  `)
})
