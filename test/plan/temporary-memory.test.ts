/** Temporaries of a plan share memory: a model of several layers needs the temporaries of one layer, with equal results. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Plan } from '../../src/plan/schema.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'

/** Layers of which each has three temporaries of equal size. */
const layers = (count: number): string => `kernel layer(n: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(n)
  buffer X: f32[i] in
  buffer W: f32[i, j] in
  buffer Y: f32[i] out
  buffer S: f32[i] local
  buffer T: f32[i] local
  iterate sum [i, j] as SR { S[i] += W[i, j] * X[j] }
  iterate shift [i] as S { T[i] = S[i] + X[i] }
  iterate both [i] as S { Y[i] = S[i] * 3 - T[i] }
}
kernel model(n: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(n)
  buffer W: f32[i, j] in
  buffer X: f32[i] in
  buffer Y: f32[i] out
  call Y = layer(X, W)
  repeat ${count - 1} as l { call Y = layer(Y, W) }
}`

test('twelve layers need the temporaries of two, and equal six times two layers', async () => {
  const device = createCpuDevice()
  const counts = [2, 12]
  const built = await Promise.all(
    counts.map((count) => parseProgram(layers(count)).kernel('model').build(device)),
  )
  const temporaries = built.map((fn) => (fn.plan as Plan).buffers.filter((b) => b.role === 'local').length)
  expect(temporaries[1]).toBe(temporaries[0])
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 5 }),
      fc.infiniteStream(fc.float({ min: -1, max: 1, noNaN: true })),
      async (n, values) => {
        const draw = (length: number): Float32Array =>
          Float32Array.from({ length }, () => values.next().value as number)
        const [W, X] = [draw(n * n), draw(n)]
        const valuesOf = async (fn: (typeof built)[number], from: Float32Array): Promise<Float32Array> =>
          ((await fn({ W, X: from, n }))['Y'] as { values: Float32Array }).values
        let Y = X
        for (let k = 0; k < 6; k++) Y = await valuesOf(built[0]!, Y)
        expect(await valuesOf(built[1]!, X)).toEqual(Y)
      },
    ),
    { numRuns: 10 },
  )
})
