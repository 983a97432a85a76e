/** Loops that end where something was counted stay inside of those that say where. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { KERNELS, LIVE } from '../properties/live-gen.ts'
import { refusal } from '../support/refusal.ts'

const program = (steps: string) =>
  parseProgram(`
${KERNELS.left}
${LIVE.panels.text}
schedule product.s {
  A as panels(4, 2) live in place
  ${steps}
}`)
    .kernel()
    .schedule('s')

test.each(['reorder (mul.go, mul.io)', 'reorder (j, mul.go, mul.io)'])('%s is rejected', (steps) => {
  const { code, message } = refusal(() => program(steps))
  expect([code, message]).toEqual([
    'schedule/parent-first',
    'go would come before io, which determines its extent',
  ])
})

test('other loops may be reordered freely', () => {
  expect(() => program('reorder (mul.ji, mul.ii, j, mul.io, mul.go)')).not.toThrow()
})

// Loops end where lists do, and ask for nothing again, but where there may be no room for all.
test.each([
  ['', []],
  ['capacity m in all', ['for jo', 'for g']],
] as const)('fused live lists under %j have these conditions', (room, asking) => {
  const text = parseProgram(`
kernel scaled(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer R: f32[i] out
  buffer C: f32[i, q] out
  iterate sum [i, q] as SR { R[i] += A[i, q] }
  iterate double [i, q] as SS { C[i, q] += 2 * A[i, q] }
}
${LIVE.blocks.text}
schedule scaled.s {
  A as blocks(2, 2) live in place ${room}
  fuse (double.io, double.jo) -> g
}`)
    .kernel()
    .schedule('s')
    .show(2)
  const asks = text.split('\n').filter((l) => / where .*counts_A/.test(l))
  expect(asks.map((l) => l.trim().split(' ').slice(0, 2).join(' '))).toEqual(asking)
})
