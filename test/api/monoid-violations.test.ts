/** Results that differ since a declared monoid is none for the values at hand are told apart from bugs of the compiler. */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { dense, devices, type Kernel, load } from '../../src/node.ts'
import { expectedOf } from '../../src/run/bind/results/reference-inputs.ts'
import { verifyAgainst } from '../../src/run/verify/verify.ts'
import { space } from '../../src/search/spaces/function-space.ts'
import { runs } from '../support/cases.ts'
import { PointEvaluator } from '../support/point-evaluator.ts'
import { property } from '../support/property.ts'

const cpu = await devices.cpu()
const [m, n] = [3, 8]

/** Sums up to `limit`; beyond it, what comes counts twice, which depends on the order. */
const monoid = (limit: number): string => `monoid odd(x: f32) {
  identity 0
  combine (a, b) = select(abs(a.x) > ${limit}, a.x + 2 * b.x, a.x + b.x)
}`
const AXES = `
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out`
const DIRECT = `kernel k(m: size, n: size) {${AXES}
  iterate sum [i, j] as SR { y[i] odd= A[i, j] }
}`
/** What differs is made of what the monoid reduces. */
const THROUGH_LOCAL = `kernel k(m: size, n: size) {${AXES}
  buffer t: f32[i] local
  iterate sum [i, j] as SR { t[i] odd= A[i, j] }
  iterate out [i] as S { y[i] = 0 - t[i] }
}`

const kernelOf = async (limit: number, kernel = DIRECT): Promise<Kernel> =>
  (await load(`${monoid(limit)}\n${kernel}`)).kernel()
const inputs = (values: readonly number[]) => ({
  tensors: { A: dense([m, n], Float32Array.from(values)) },
  params: { m, n },
})
const regrouped = (kernel: Kernel, by: number): Kernel => kernel.split('sum.j', by).rfactor('sum.jo')

async function verified(kernel: Kernel, values: readonly number[], meant = kernel) {
  const compiled = await kernel.build(cpu)
  const prepared = await compiled.bind(...flatInputs(inputs(values)))
  try {
    const { source } = meant.compilation
    const expected = expectedOf(source, prepared.executable.bound)
    return await verifyAgainst(source, prepared.executable, expected)
  } finally {
    prepared.free()
    compiled.release()
  }
}

const values = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: m * n, maxLength: m * n })
const by = fc.constantFrom(2, 3, 4)
const text = fc.constantFrom(DIRECT, THROUGH_LOCAL)

describe('results that differ', () => {
  property([values, by, text], { numRuns: runs(15) })(
    'are attributed to a monoid that violates the axioms',
    async (all, count, body) => {
      const { ok, reducerFault, problems } = await verified(regrouped(await kernelOf(500, body), count), all)
      expect(reducerFault === null).toBe(ok)
      if (!ok) expect(problems.at(-1)).toMatch(/^odd is not a reducer for these values: combine/)
    },
  )

  property([values, by, text], { numRuns: runs(10) })(
    'are attributed to the compiler if the axioms hold for the values that occur',
    async (all, count, body) => {
      const right = await kernelOf(1e6, body)
      expect(await verified(regrouped(right, count), all)).toMatchObject({ ok: true, reducerFault: null })
      const wrong = (await load(`${monoid(1e6)}\n${body.replace('A[i, j] }', 'A[i, j] + 100 }')}`)).kernel()
      expect(await verified(regrouped(wrong, count), all, right)).toMatchObject({
        ok: false,
        reducerFault: null,
      })
    },
  )

  test('reject points of a search, and are not compiler bugs', async () => {
    const all = Array.from({ length: m * n }, (_, k) => 100 * (1 + (k % 5)))
    const kernel = await kernelOf(500)
    const evaluator = new PointEvaluator({
      space: space('groups', kernel, (p) => {
        const count = p.number('by', [2, 4])
        return (k) => regrouped(k, count)
      }),
      kernel,
      inputs: inputs(all),
      device: cpu,
      rounds: 3,
      seconds: 0.01,
    })
    try {
      const found = await evaluator.points([2, 4].map((count) => ({ point: { by: count }, share: 1 })))
      expect(found).toMatchObject([
        { status: 'rejected', code: 'check/monoid-law' },
        { status: 'rejected', code: 'check/monoid-law' },
      ])
    } finally {
      evaluator.close()
    }
  })
})
