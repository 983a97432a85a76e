/** Lists of formats may be called like axes of the kernel, however they are bound. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, devices, load, SptError } from '../../src/node.ts'
import { tune, Workspace } from '../../src/search.ts'
import { segmentsOfRows } from '../formats/programs.ts'
import { runs } from '../support/cases.ts'

const text = (list: string): string => `${segmentsOfRows('seg')}kernel spmv(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer X: f32[jd] in
  buffer C: f32[i] out
  iterate sum [i, j] as SR { C[i] += A[i, j] * X[j] }
}
schedule spmv.cut { A as seg(${list}) }
schedule spmv.either choose by search { use cut }
`
const drawn = fc.tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 6 })).chain(([m, n]) =>
  fc.record({
    shape: fc.constant([m, n] as const),
    points: fc.uniqueArray(fc.integer({ min: 0, max: m * n - 1 })),
    // As many boundaries as axes have coordinates, or elements, too.
    cuts: fc
      .tuple(
        fc.constantFrom(0, m - 2, n - 2, m * n - 2).map((x) => Math.max(0, x)),
        fc.infiniteStream(fc.integer({ min: 0, max: m })),
      )
      .map(([count, xs]) => [
        0,
        ...Array.from({ length: count }, () => xs.next().value).sort((a, b) => a - b),
        m,
      ]),
  }),
)

it.each(['i', 'j', 'jd'])('a list called %s is a list', async (name) => {
  const device = await devices.cpu()
  const program = await load(text(name))
  const kernel = program.kernel()
  const direct = kernel.as('A', `seg(${name})`)
  const open = await load(text('other'))
  await fc.assert(
    fc.asyncProperty(drawn, async ({ shape, points, cuts }) => {
      const [m, n] = shape
      const at = points.map((p) => [Math.floor(p / n), p % n] as const)
      const A = coords(
        shape,
        [0, 1].map((d) => at.map((p) => p[d]!)),
        Float32Array.from(at, (_, e) => e + 1),
      )
      const X = Float32Array.from({ length: n }, (_, k) => k - 2)
      const C = Array.from({ length: m }, (_, i) =>
        at.reduce((sum, p, e) => (p[0] === i ? sum + (e + 1) * X[p[1]]! : sum), 0),
      )
      const inputs = { tensors: { A, X, [name]: cuts } }
      const other = open.kernel()
      const late = new Workspace(device, other, inputs.tensors)
      for (const prepare of [
        async () => (await direct.build(device, { auto: false })).bind(...flatInputs(inputs)),
        async () => (await direct.build(device)).bind(...flatInputs(inputs)),
        async () => (await kernel.schedule('cut').build(device)).bind(...flatInputs(inputs)),
        async () =>
          new Workspace(device, kernel, inputs.tensors).bind(await direct.build(device, { auto: false })),
        async () =>
          new Workspace(device, kernel, inputs.tensors).bind(await kernel.build(device, { auto: false })),
        async () => late.bind(await other.as('A', `seg(${name})`).build(device, { auto: false })),
        async () => late.bind(await other.build(device, { auto: false })),
      ]) {
        const prepared = await prepare()
        await prepared.run()
        expect([...(await prepared.get('C')).values!].map((x) => x + 0)).toEqual(C.map((x) => x + 0))
        prepared.free()
      }
    }),
    { numRuns: runs(15) },
  )
  await device.dispose()
})

it('tune takes such a list', async () => {
  const device = await devices.cpu()
  const kernel = (await load(text('i'))).kernel()
  const A = coords(
    [5, 4],
    [
      [0, 1, 4],
      [3, 0, 2],
    ],
    Float32Array.of(1, 2, 3),
  )
  const inputs = { tensors: { A, X: Float32Array.of(1, 2, 3, 4), i: [0, 2, 5] } }
  const result = await tune(kernel, {
    device,
    inputs,
    space: await kernel.space('either').bind('cpu', ...flatInputs(inputs)),
    trials: 2,
  }).catch((e: unknown) => {
    throw e instanceof SptError ? new Error(e.message) : e
  })
  expect(result.best).not.toBeNull()
  await device.dispose()
})
