/** Formats with lists on devices: array for array as on the host, back, and where kernels run on them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { bindResident, convertForKernel, upload } from '../../src/device.ts'
import { dense } from '../../src/node.ts'
import { conversionPlan } from '../../src/storage/engines/device/index.ts'
import { convertTensor } from '../../src/storage/entries/stored-parts.ts'
import { fitting, repeated, TEXTS } from '../formats/list-formats.ts'
import { givenFor, matrices, written } from '../formats/user-formats.ts'
import { runs, sample } from '../support/cases.ts'
import { arraysOf } from '../support/packaged-schedules.ts'
import { DEVICES, opened } from './devices.ts'

const ROWS = `
format rows over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}`
const PRODUCT = `
kernel spmv(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer x: i32[jd] in
  buffer y: i32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
}
schedule spmv.s { A as tiles(2, 4) }`

describe.each(DEVICES)('on $name', ({ name, kind, open }) => {
  const on = opened(open)

  test.each(name === 'cpu' ? TEXTS : sample(TEXTS, kind === 'cpu' ? TEXTS.length : 1))(
    '%s',
    async (_, text) => {
      const to = written(text, 2, 4)
      const plan = conversionPlan(on.device, to)
      const rows = written(ROWS)
      const back = conversionPlan(on.device, rows)
      const kernel = parseProgram(`${text}${PRODUCT}`).kernel('spmv').schedule('s')
      const compiled = await kernel.build(on.device)
      await fc.assert(
        fc.asyncProperty(matrices, async (drawn) => {
          const A = repeated(fitting(drawn, text, 2, 4))
          const given = givenFor(A.shape)
          const from = await upload(on.device, A)
          const made = await plan.run(from, given)
          expect(arraysOf(await made.download())).toEqual(arraysOf(convertTensor(A, to, given)))
          const there = await back.run(made, given)
          expect(arraysOf(await there.download())).toEqual(arraysOf(convertTensor(A, rows, given)))
          const own = await convertForKernel(compiled, 'A', from)
          const [m, n] = A.shape as [number, number]
          const x = Int32Array.from({ length: n }, (_x, k) => 1 + k)
          const prepared = await bindResident(compiled, { A: own, x: dense([n], x) })
          await prepared.run()
          const y = new Int32Array(m)
          for (const [e, i] of A.coords[0]!.entries())
            y[i]! += (A.values![e] as number) * x[A.coords[1]![e]!]!
          expect([...((await prepared.get('y')).values ?? [])]).toEqual([...y])
          expect(await prepared.verify()).toMatchObject({ ok: true })
          prepared.free()
          for (const r of [from, made, there, own]) r.free()
        }),
        { numRuns: runs(kind === 'webgpu' ? 1 : 3) },
      )
    },
  )
})
