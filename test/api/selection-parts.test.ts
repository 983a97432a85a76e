/** Choices by what a composition covers: the share that runs find is that of all its parts, and the newest one decides. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Binding, Built, Device } from '../../src/node.ts'
import { dense, devices, load } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { LIVE, matrix } from '../properties/live-gen.ts'
import { numbers, parameters } from '../properties/property-cases.ts'
import { Choices } from '../support/choices.ts'
import { asHardware } from '../support/hardware.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = asHardware(await createNodeWebGpu())
})
afterAll(() => webgpu.dispose())

const FORMATS = ['panels', 'strips', 'blocks', 'rows_of'] as const
const TEXTS = FORMATS.map((f) => LIVE[f].text).join('\n')

/** What comes in, what is computed of it, and products that need nothing where the mask is 0. */
const KERNELS = {
  given: (inner: string) => `
  buffer A: f32[i, q] in
  buffer M: f32[i, q] in
  ${inner}`,
  written: (inner: string) => `
  buffer X: f32[i, q] in
  buffer M0: f32[i, q] in
  buffer A: f32[i, q] local
  buffer M: i32[i, q] local
  ${inner.replace('iterate mul', 'iterate all [i, q] as SS { A[i, q] = X[i, q] M[i, q] = select(M0[i, q] != 0.0, 1, 0) }\n  iterate mul')}`,
} as const
const PRODUCT = `buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }`
const kernelOf = (name: keyof typeof KERNELS, isMasked: boolean): string =>
  `kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)${KERNELS[name](isMasked ? PRODUCT.replace('{ C', '{ if (M[i, q] != 0) { C').replace('] }', '] } }') : PRODUCT)}
}`

type Condition = (i: number, j: number, isHeld: boolean) => boolean
const CONDITIONS: Readonly<Record<string, Condition>> = {
  'held(M)': (_i, _j, isHeld) => isHeld,
  'held(M) and j > 2': (_i, j, isHeld) => isHeld && j > 2,
  'held(M) or i == j': (i, j, isHeld) => isHeld || i === j,
}
const [ANY]: readonly Condition[] = [() => true]

interface Case {
  readonly kernel: keyof typeof KERNELS
  readonly sizes: readonly [m: number, n: number, k: number]
  readonly parts: readonly { readonly use: string; readonly where: string | null }[]
  /** With a parameter of the choice, and with its number. */
  readonly asked: string
  readonly format: string
  readonly limit: number
  readonly values: readonly { readonly A: Float32Array; readonly M: Float32Array; readonly runs: number }[]
}

function drawn(c: Choices, most: number): Case {
  const pool = [...FORMATS]
  const conditions = Object.keys(CONDITIONS)
  const n = c.pick([2, 1, 3])
  const parts = Array.from({ length: n }, (_, k) => {
    const f = pool.splice(c.below(pool.length), 1)[0]!
    const where =
      k < n - 1 || n === 1 ? conditions.splice(n === 1 ? 0 : c.below(conditions.length), 1)[0]! : null
    return { use: `${f}(2, ${c.pick([1, 2, 3])})`, where }
  })
  const format = parts.map(({ use, where }) => (where ? `${use} where (${where})` : use)).join(' + ')
  const [m, k] = [1 + c.below(8), c.pick([3, 5, 1, 40])]
  const values = Array.from({ length: 1 + c.below(most) }, () => ({
    A: matrix(c, m * k),
    M: matrix(c, m * k),
    runs: 1 + c.below(3),
  }))
  return {
    kernel: c.pick(['given', 'written']),
    sizes: [m, 2, k],
    parts,
    asked: format.replace('(2, ', '(a, '),
    format,
    limit: c.pick([0.4, 0.1, 0.9]),
    values,
  }
}

const textOf = (c: Case): string => `${TEXTS}
${kernelOf(c.kernel, c.parts.length === 1)}
schedule product.live { A as ${c.format} live in place }
schedule product.plain { split mul.j by 2 }
schedule product.auto(a = 2) choose {
  when (fill_ratio(A, ${c.asked}) < ${c.limit}) live
  otherwise plain
}`

/** Slots of each part's format for the elements that are its own, by what the host makes of them alone. */
async function shareOf({ parts, sizes: [m, , k] }: Case, A: Float32Array, M: Float32Array): Promise<number> {
  const program = await load(`${TEXTS}\n${kernelOf('given', false)}`)
  const left = [...A]
  let slots = 0
  for (const { use, where } of parts) {
    const isOwn = where === null ? ANY! : CONDITIONS[where]!
    const own = left.map((x, e) => (isOwn(Math.floor(e / k), e % k, M[e] !== 0) ? x : 0))
    for (const [e, x] of own.entries()) if (x !== 0) left[e] = 0
    const [name, ...args] = use.match(/\w+/g)!
    const { parts: stored } = program
      .format(name!, ...args.map(Number))
      .convert(dense([m, k], Float32Array.from(own)))
    for (const p of stored) slots += p.tensor.values!.length
  }
  return slots / (m * k)
}

async function follows(device: Device, c: Case): Promise<void> {
  const [m, n, k] = c.sizes
  const program = await load(textOf(c))
  const compiled = (await program.kernel().build(device)) as Built
  const names = c.kernel === 'given' ? (['A', 'M'] as const) : (['X', 'M0'] as const)
  const B = dense(
    [k, n],
    Float32Array.from({ length: k * n }, (_, e) => (e % 7) - 3),
  )
  const name = `fill_ratio(A, ${c.format})`
  let prepared: Binding | undefined
  for (const { A, M, runs } of c.values) {
    const truth = await shareOf(c, A, M)
    const tensors = { [names[0]]: dense([m, k], A), [names[1]]: dense([m, k], M), B }
    if (prepared) for (const x of names) await prepared.set(x, tensors[x]!.values!)
    else {
      prepared = await compiled.bind(tensors)
      // The host counts the same, where it has all that is asked and each element has a part.
      const isKnown = c.kernel === 'given' && c.parts.length > 1
      const { selection } = await program.kernel().choose(device.kind, tensors)
      expect(selection.values[name]).toBeCloseTo(isKnown ? truth : 1, 12)
    }
    for (let run = 0; run < runs; run++) {
      await prepared.run()
      await prepared.awaitMeasurements()
      const { text, fillRatios } = prepared.selection!
      expect(Object.keys(fillRatios)).toEqual([name])
      expect([text, fillRatios[name]!.source]).toEqual([truth < c.limit ? 'live' : 'plain', 'last run'])
      expect(fillRatios[name]!.measured).toBeCloseTo(truth, 12)
    }
  }
  expect((await prepared!.verify()).problems).toEqual([])
  prepared!.free()
}

const property = (usual: number, most: number, check: (c: Case) => Promise<void>) =>
  fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = drawn(new Choices(n), most)
      try {
        await check(c)
      } catch (e) {
        throw new Error(`${e instanceof Error ? e.stack : e}\n${textOf(c)}`)
      }
    }),
    parameters(usual),
  )

test('fill ratios of compositions that no schedule builds are counted from masks', async () => {
  const asked = 'fill_ratio(A, bsr(4) where (held(M)) + bsr(2))'
  const program = await load(`import { bsr, csr } from "sparsetile/kernels/formats.spt"
${kernelOf('given', false)}
schedule product.found { A as bsr(2) where (held(M)) + csr live in place }
schedule product.whole { split mul.i by 2 }
schedule product.auto choose { when (${asked} < 1.5) found otherwise whole }`)
  const choice = await program
    .kernel()
    .schedule('auto')
    .build(await devices.cpu())
  const A = dense([4, 4], new Float32Array(16).fill(1))
  const B = dense([4, 1], new Float32Array(4))
  // One block of 4 × 4, and four of 2 × 2 where it has but one element.
  for (const [held, share] of [
    [16, 1],
    [1, 2],
  ] as const) {
    const M = dense([4, 4], new Float32Array(16).fill(1, 0, held))
    const { values, text } = (await choice.bind({ A, M, B })).selection!
    expect([values[asked], text]).toEqual([share, share < 1.5 ? 'found' : 'whole'])
  }
})

test('the measured ratio covers all parts, and selects the schedule', async () => {
  const cpu = await devices.cpu()
  await property(12, 4, (c) => follows(cpu, c))
}, 3_600_000)

test('the same holds on WebGPU', () => property(2, 2, (c) => follows(webgpu, c)), 3_600_000)
