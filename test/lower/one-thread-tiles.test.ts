/** Tiles of a declared memory that one thread holds alone: by its map, whatever that is, or refused. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { refusal } from '../support/refusal.ts'

const text = (memory: string, steps: string): string => `
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis l = dense_fixed(m)
  buffer A: f32[i, l] in
  buffer B: f32[l, j] in
  buffer Y: f32[i, j] out
  iterate s [i, j, l] as SSR { Y[i, j] += A[i, l] * B[l, j] }
}
memory tile: f32[4, 4] in register ${memory}
schedule k.s {
  require m % 4 == 0
  require n % 4 == 0
  split i by 4 -> (io, ii)
  split j by 4 -> (jo, ji)
  ${steps}
}`
const MEMORIES = [
  'of 1 threads { element (lane, slot) -> (slot % 4, slot / 4) }',
  'of 1 threads { element (lane, slot) -> (lane * 4 + slot / 4, slot % 4) }',
  '{ element (lane, slot) -> (slot / 4, slot % 4) }',
]
const INSIDE = 'reorder (io, jo, l, ii, ji)  cache_write Y at jo in tile'

test.each(MEMORIES.flatMap((m) => [[m, ''] as const, [m, 'bind io to block.x, jo to block.y'] as const]))(
  '%s %s',
  async (memory, bound) => {
    const kernel = parseProgram(text(memory, `${INSIDE}  ${bound}`))
      .kernel()
      .schedule('s')
    const prepared = await (await kernel.build(createCpuDevice())).bind({ m: 8, n: 12 }, { seed: 1 })
    expect((await prepared.verify()).problems).toEqual([])
  },
)

test.each(MEMORIES)('single elements: %s', (memory) => {
  const steps = 'reorder (io, jo, ii, ji, l)  bind io to block.x, ii to thread.x  cache_write Y at jo in tile'
  const kernel = parseProgram(text(memory, steps)).kernel().schedule('s')
  expect(() => kernel.compilation.plan).toThrow('schedule/across-lanes')
})

test.each([
  ['reverse Yr.ji', 'Yr.ji goes through'],
  ['reverse Yr.ii', 'Yr.ii goes through'],
  ['reverse Yr.ii  reverse Yr.ji', 'Yr.ii goes through'],
  ['serpentine Yr.ji by 2', 'Yr.ji goes through'],
  ['split Yr.ji by 2 -> (a, b)', 'Yr does not go through'],
])('elements in another order, by %s: %s them', (steps, says) => {
  const { compilation } = parseProgram(text(MEMORIES[0]!, `${INSIDE} -> Yr  ${steps}`))
    .kernel()
    .schedule('s')
  const { code, message, hint } = refusal(() => void compilation.plan)
  expect(code).toBe('schedule/across-lanes')
  expect(message).toContain(says)
  expect(hint?.includes('reverse or serpentine')).toBe(!steps.includes('split'))
})
