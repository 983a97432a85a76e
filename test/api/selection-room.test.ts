/** Schedules that are chosen in runs and whose lists have no room for what they find: another one runs instead. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Device, dense, devices, load, type PreparedKernel } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu-node.ts'
import { KERNELS, LIVE } from '../laws/live-gen.ts'
import { runs } from '../support/cases.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

interface Case {
  readonly format: keyof typeof LIVE
  readonly sizes: readonly [m: number, n: number, k: number]
  readonly capacity: number
  readonly inAll: boolean
  readonly patterns: readonly { readonly share: number; readonly seed: number }[]
}
const size = (max: number) => fc.integer({ min: 1, max })
const cases = (most: number): fc.Arbitrary<Case> =>
  fc.record({
    format: fc.constantFrom(...(Object.keys(LIVE) as Case['format'][])),
    sizes: fc.tuple(size(9), size(3), size(9)),
    capacity: fc.integer({ min: 0, max: 5 }),
    inAll: fc.boolean(),
    patterns: fc.array(fc.record({ share: fc.constantFrom(0, 0.1, 0.3, 1), seed: fc.nat(999) }), {
      minLength: 1,
      maxLength: most,
    }),
  })

function pattern(length: number, share: number, seed: number): Float32Array {
  let state = seed * 7919 + 1
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32 < share ? (state % 5) + 1 : 0
  })
}

/** What has no room is passed over, from the run on that finds it, until a sample finds that it has. */
async function followed(on: Device, { format, sizes, capacity, inAll, patterns }: Case): Promise<void> {
  const [m, n, k] = sizes
  const [outer, counted] = LIVE[format].loops
  const program = await load(`${LIVE[format].text}
${KERNELS.left}
schedule product.live {
  A as ${format}(2, 2) live in place capacity ${capacity}${inAll ? ` in all\n  fuse (mul.${outer}, mul.${counted}) -> g` : ''}
}
schedule product.plain { split mul.j by 2 }
schedule product.auto choose {
  when (covered(A, ${format}(2, 2)) < 0.9) live
  otherwise plain
}`)
  const B = dense([k, n], pattern(k * n, 1, 5))
  const inputs = (A: Float32Array) => ({ tensors: { A: dense([m, k], A), B } })
  const of = async (schedule: string, device: Device) =>
    (await program.kernel().schedule(schedule).compile(device)).prepare(inputs(new Float32Array(m * k)))
  const [live, plain] = await Promise.all(['live', 'plain'].map((s) => devices.cpu().then((d) => of(s, d))))
  let prepared: PreparedKernel | undefined
  for (const { share, seed } of patterns) {
    const A = pattern(m * k, share, seed)
    await live!.write('A', A)
    await plain!.write('A', A)
    await plain!.run()
    const fits = await live!.run().then(
      () => true,
      () => false,
    )
    const expected = (await plain!.read('C')).values
    if (prepared) await prepared.write('A', A)
    else prepared = await (await program.kernel().schedule('auto').compile(on)).prepare(inputs(A))
    let reached = ''
    for (let run = 0; run < 17; run++) {
      await prepared.run()
      expect((await prepared.read('C')).values).toEqual(expected)
      const { text, overflowed, covered } = prepared.choice!
      if (text === 'live') expect(fits).toBe(true)
      if (overflowed !== null) expect([overflowed, text]).toEqual(['live', 'plain'])
      await prepared.known()
      reached = `${text} ${overflowed}`
      // It is known what was found, whoever ran.
      const [told] = Object.values(prepared.choice!.covered)
      if (run === 16 && told?.found != null && told.found < 0.9)
        expect(reached).toBe(fits ? 'live null' : 'plain live')
      expect(Object.keys(covered).length).toBe(1)
    }
  }
  for (const p of [prepared, live, plain]) p?.free()
}

test('a run that finds more than there is room for is repeated with another schedule', async () => {
  const cpu = await devices.cpu()
  await fc.assert(
    fc.asyncProperty(cases(5), (c) => followed(cpu, c)),
    { numRuns: runs(12) },
  )
  await fc.assert(
    fc.asyncProperty(cases(2), (c) => followed(webgpu, c)),
    { numRuns: runs(1) },
  )
}, 3_600_000)

test('but not where it has updated a tensor: then it fails, and the next one takes the other', async () => {
  const program = await load(`${LIVE.panels.text}
kernel added(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer C: f32[i] inout
  iterate add [i, q] as SR { C[i] += A[i, q] }
}
schedule added.live { A as panels(1, 1) live in place capacity 2 }
schedule added.plain { split add.i by 2 }
schedule added.auto choose {
  when (covered(A, panels(1, 1)) < 0.9) live
  otherwise plain
}`)
  const cpu = await devices.cpu()
  const few = Float32Array.of(1, 0, 0, 0, 0, 0, 2, 0)
  const more = Float32Array.of(1, 1, 1, 0, 0, 0, 2, 0)
  const prepared = await (await program.kernel().schedule('auto').compile(cpu)).prepare({
    tensors: { A: dense([2, 4], few), C: dense([2], Float32Array.of(10, 20)) },
  })
  await prepared.run()
  expect([prepared.choice!.text, [...(await prepared.read('C')).values!]]).toEqual(['live', [11, 22]])
  await prepared.write('A', more)
  await expect(prepared.run()).rejects.toThrow('run/overflow')
  const [before] = (await prepared.read('C')).values!
  await prepared.run()
  const { text, overflowed, covered } = prepared.choice!
  expect([text, overflowed]).toEqual(['plain', 'live'])
  expect(Object.values(covered)).toMatchObject([{ value: 1, from: 'overflow' }])
  expect((await prepared.read('C')).values![0]).toBe(Number(before) + 3)
  // A sample finds that there is room again.
  await prepared.write('A', few)
  for (const _ of [0, 1]) await prepared.run()
  expect([prepared.choice!.text, prepared.choice!.overflowed]).toEqual(['live', null])
  prepared.free()
})
