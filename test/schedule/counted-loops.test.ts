/** Loops that end where something was counted stay inside of those that say where. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'
import { KERNELS, LIVE } from '../laws/live-gen.ts'
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

test.each(['reorder (mul.go, mul.io)', 'reorder (j, mul.go, mul.io)'])('%s is refused', (steps) => {
  const { code, message } = refusal(() => program(steps))
  expect([code, message]).toEqual([
    'schedule/parent-first',
    'go would come before io, which says where it ends',
  ])
})

test('others go anywhere', () => {
  expect(() => program('reorder (mul.ji, mul.ii, j, mul.io, mul.go)')).not.toThrow()
})
