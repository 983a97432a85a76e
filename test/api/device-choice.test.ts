/** Dispatch on the device: each run executes the branch that its own data select, without read-back. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Binding, type Device, dense, devices, load, loadPlan } from '../../src/node.ts'
import type { Plan } from '../../src/plan/schema.ts'
import { writePlan } from '../../src/plan/write.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { LIVE } from '../properties/live-gen.ts'
import { costly } from '../support/cases.ts'
import { asHardware } from '../support/hardware.ts'

let on: Readonly<Record<'cpu' | 'webgpu', Device>>
beforeAll(async () => {
  on = { cpu: await devices.cpu(), webgpu: asHardware(await createNodeWebGpu()) }
})
afterAll(() => on.webgpu.dispose())

const layer = (schedules: string, more = '') => `${LIVE.panels.text}
${LIVE.blocks.text}
kernel layer(m: size, n: size, k: size, o: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  axis p = dense_fixed(o)
  buffer S: f32[i, p] in
  buffer W: f32[p, q] in
  buffer V: f32[q, j] in
  buffer T: f32[i, q] local
  buffer H: f32[i, q] local
  buffer R: f32[i, j] out
  iterate up [i, p, q] as SRS { T[i, q] += S[i, p] * W[p, q] }
  iterate relu [i, q] as SS { H[i, q] = max(T[i, q], 0) }
  iterate second [i, q, j] as SRS { R[i, j] += H[i, q] * V[q, j] }
  ${more}
}
${schedules}`
const TWO = (found = '', below = 0.5) => `schedule layer.found { H as blocks(2, 2) live in place ${found} }
schedule layer.whole { split second.j by 4 }
schedule layer.auto choose {
  when (fill_ratio(H, blocks(2, 2)) < ${below}) found
  otherwise whole
}`

interface Sizes {
  readonly m: number
  readonly n: number
  readonly k: number
  readonly o: number
}
/** Inputs whose temporary H is positive in a share of its blocks of two rows, with the result. */
function data({ m, n, k, o }: Sizes, share: number) {
  const S = Float32Array.from({ length: m * o }, (_, e) =>
    (Math.floor(e / o / 2) * 7) % 20 < share * 20 ? 1 : -1,
  )
  const W = new Float32Array(o * k).fill(1)
  const V = Float32Array.from({ length: k * n }, (_, e) => (e % 5) - 2)
  const R = Float32Array.from({ length: m * n }, (_, e) => {
    const [i, j] = [Math.floor(e / n), e % n]
    if (S[i * o]! < 0) return 0
    return o * Array.from({ length: k }, (_, q) => V[q * n + j]!).reduce((a, b) => a + b, 0)
  })
  return { tensors: { S: dense([m, o], S), W: dense([o, k], W), V: dense([k, n], V) }, S, R }
}
const rightAt = async (b: Binding, R: Float32Array) => expect((await b.get('R')).values).toEqual(R)

const SIZES = { m: 40, n: 6, k: 8, o: 3 }

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  test('inputs that alternate between 5 % and 90 % take the right branch in 40 of 40 runs', async () => {
    const fn = await (await load(layer(TWO()))).kernel().build(on[kind])
    const b = await fn.bind(data(SIZES, 0.05).tensors)
    expect([b.selection!.text, b.selection!.alternatives!.map((a) => a.text)]).toEqual([
      'found',
      ['found', 'whole'],
    ])
    const taken: string[] = []
    for (let run = 0; run < 40; run++) {
      const { S, R } = data(SIZES, run % 2 ? 0.9 : 0.05)
      await b.set('S', S)
      await b.run()
      await rightAt(b, R)
      await b.awaitMeasurements()
      const { text, fillRatios, reason } = b.selection!
      taken.push(text)
      expect(Object.values(fillRatios)).toMatchObject([{ measured: run % 2 ? 0.9 : 0.05 }])
      expect(reason).toBe(run % 2 ? 'otherwise' : 'fill_ratio(H, blocks(2, 2)) < 0.5')
    }
    expect(taken).toEqual(Array.from({ length: 20 }, () => ['found', 'whole']).flat())
    expect((await b.verify()).problems).toEqual([])
    // Recorded runs decide, too.
    const graph = await b.graph()
    for (const share of [0.9, 0.05, 0.9]) {
      const { S, R } = data(SIZES, share)
      await b.set('S', S)
      graph.launch()
      await graph.finish()
      await rightAt(b, R)
    }
    graph.free()
    b.free()
  })

  test('lists beyond their capacity take the next branch in the same run', async () => {
    for (const capacity of ['capacity 3', 'capacity 30 in all\n fuse (second.io, second.jo) -> g']) {
      const fn = await (await load(layer(TWO(capacity, 2)))).kernel().build(on[kind])
      const b = await fn.bind(data(SIZES, 0.9).tensors)
      for (const share of [0.9, 0, 0.9, 0.05]) {
        const { S, R } = data(SIZES, share)
        await b.set('S', S)
        await b.run()
        await rightAt(b, R)
        await b.awaitMeasurements()
        // A block of rows has k / 2 = 4 blocks.
        const fits = capacity === 'capacity 3' ? share === 0 : share < 0.3
        expect([b.selection!.text, b.selection!.overflowedSchedule]).toEqual(
          fits ? ['found', null] : ['whole', 'found'],
        )
      }
      b.free()
    }
  })

  test('several formats are compared in each run; equal work is done once', async () => {
    const text = layer(`schedule layer.tiles { H as blocks(2, 2) live in place }
schedule layer.rows { H as panels(2, 1) live in place }
schedule layer.whole {}
schedule layer.auto choose {
  when (n < 0) whole
  when (fill_ratio(H, blocks(2, 2)) < 0.3 and fill_ratio(H, blocks(2, 2)) <= fill_ratio(H, panels(2, 1))) tiles
  when (fill_ratio(H, panels(2, 1)) < 0.6) rows
  otherwise whole
}`)
    const fn = await (await load(text)).kernel().build(on[kind])
    const b = await fn.bind(data(SIZES, 0.05).tensors)
    for (const [share, expected] of [
      [0.05, 'tiles'],
      [0.5, 'rows'],
      [0.9, 'whole'],
      [0.05, 'tiles'],
    ] as const) {
      const { S, R } = data(SIZES, share)
      await b.set('S', S)
      await b.run()
      await rightAt(b, R)
      await b.awaitMeasurements()
      expect(b.selection!.text).toBe(expected)
    }
    const plan = writePlan(b.code.program.plan)
    const writing = (name: string) =>
      plan.steps.filter((s) => 'launch' in s && s.writes.includes(name)).length
    expect([writing('T'), writing('H')]).toEqual([1, 1])
    b.free()
  })

  test('lists are built by the branch that uses them; others only count', async () => {
    const fn = await (await load(layer(TWO()))).kernel().build(on[kind])
    const b = await fn.bind(data(SIZES, 0.05).tensors)
    const launches = writePlan(b.code.program.plan).steps.flatMap((s) => ('launch' in s ? [s] : []))
    const writers = (array: RegExp) => launches.filter((s) => s.writes.some((w) => array.test(w)))
    expect(writers(/_of_H$/).map((s) => s.when?.alternative)).toEqual([0])
    expect(writers(/^counts_H$/).map((s) => s.when?.alternative)).toEqual([undefined, 0])
    b.free()
    fn.release()
  })

  test('the plan has the conditions, and runs when it is loaded from JSON', async () => {
    const fn = await (await load(layer(TWO()))).kernel().build(on[kind])
    const b = await fn.bind(data(SIZES, 0.05).tensors)
    const plan = JSON.parse(JSON.stringify(writePlan(b.code.program.plan))) as Plan
    expect(plan.branches).toEqual({
      choice: 'choice',
      schedules: [{ text: 'found', when: 'fill_ratio(H, blocks(2, 2)) < 0.5' }, { text: 'whole' }],
      fillRatios: [{ text: 'fill_ratio(H, blocks(2, 2))', format: 0, elements: ['mul', 'm', 'k'] }],
    })
    const conditional = plan.steps.flatMap((s) => ('launch' in s && s.when ? [s.when.alternative] : []))
    expect([...new Set(conditional)]).toEqual([0, 1])
    expect(plan.steps.every((s) => !('clear' in s) || s.clear !== 'R')).toBe(true)
    expect(fn.plan).toEqual(plan)
    const loaded = await loadPlan(plan, on[kind])
    const again = await loaded.bind(data(SIZES, 0.05).tensors)
    const selected = async (): Promise<unknown> => {
      await again.awaitMeasurements()
      const { dispatch, text, reason, alternatives } = again.selection!
      return [dispatch, text, reason, alternatives?.length]
    }
    expect(await selected()).toEqual(['auto', 'found or whole', 'each run decides on the device', 2])
    for (const share of [0.9, 0.05]) {
      const { S, R } = data(SIZES, share)
      await again.set('S', S)
      await again.run()
      await rightAt(again, R)
      expect(await selected()).toEqual(
        share > 0.5
          ? ['auto', 'whole', 'otherwise', 2]
          : ['auto', 'found', 'fill_ratio(H, blocks(2, 2)) < 0.5', 2],
      )
      const [measured] = Object.entries(again.selection!.fillRatios)
      const ratio = {
        value: expect.closeTo(share, 6),
        source: 'last run',
        measured: expect.closeTo(share, 6),
      }
      expect(measured).toEqual(['fill_ratio(H, blocks(2, 2))', ratio])
    }
    again.free()
    const { steps } = await b.explain({ time: false })
    expect(steps.filter((s) => s.kind === 'launch' && s.alternative !== null).length).toBe(conditional.length)
    b.free()
  })
})

test('any sizes, shares, formats and capacities: results are right, and the branch is that of the data', async () => {
  const size = (max: number) => fc.integer({ min: 1, max })
  const cases = fc.record({
    sizes: fc.record({ m: size(9), n: size(5), k: size(70), o: size(3) }),
    format: fc.constantFrom('blocks(2, 2)', 'panels(2, 1)', 'panels(1, 3)'),
    capacity: fc.constantFrom('', 'capacity 1', 'capacity k'),
    below: fc.constantFrom(0.3, 0.7, 2),
    shares: fc.array(fc.constantFrom(0, 0.05, 0.5, 1), { minLength: 1, maxLength: 4 }),
  })
  const holds = async (
    device: Device,
    {
      sizes,
      format,
      capacity,
      below,
      shares,
    }: (typeof cases)['generate'] extends (...a: never[]) => { value: infer V } ? V : never,
  ) => {
    const text = layer(`schedule layer.found { H as ${format} live in place ${capacity} }
schedule layer.whole {}
schedule layer.auto choose { when (fill_ratio(H, ${format}) < ${below}) found otherwise whole }`)
    const b = await (await (await load(text)).kernel().build(device)).bind(data(sizes, shares[0]!).tensors)
    for (const share of shares) {
      const { S, R } = data(sizes, share)
      await b.set('S', S)
      await b.run()
      await rightAt(b, R)
      await b.awaitMeasurements()
      const { text: taken, fillRatios, overflowedSchedule } = b.selection!
      const isBelow = Object.values(fillRatios)[0]!.measured! < below
      expect([taken, overflowedSchedule]).toEqual(
        !isBelow ? ['whole', null] : taken === 'found' ? ['found', null] : ['whole', 'found'],
      )
      if (capacity !== 'capacity 1') expect(overflowedSchedule).toBe(null)
    }
    b.free()
  }
  await fc.assert(
    fc.asyncProperty(cases, (c) => holds(on.cpu, c)),
    { numRuns: costly(12) },
  )
  await fc.assert(
    fc.asyncProperty(cases, (c) => holds(on.webgpu, c)),
    { numRuns: costly(1) },
  )
})

const ON_INPUT = (condition: string) => `${LIVE.blocks.text}
${LIVE.panels.text}
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer V: f32[q, j] in
  buffer R: f32[i, j] out
  iterate mul [i, q, j] as SRS { R[i, j] += A[i, q] * V[q, j] }
}
schedule product.found { A as blocks(2, 2) live in place }
schedule product.whole { split mul.j by 4 }
schedule product.pick choose { when (${condition}) found otherwise whole }`

test('a fill ratio of 0 can be a divisor, on the host and in runs', async () => {
  const zeros = {
    tensors: { A: dense([4, 8], new Float32Array(32)), V: dense([8, 2], new Float32Array(16)) },
  }
  const kernel = (await load(ON_INPUT('1.0 / fill_ratio(A, blocks(2, 2)) > 3.0'))).kernel()
  const b = await (await kernel.schedule('pick').build(on.cpu)).bind(zeros.tensors)
  expect(b.selection!.text).toBe('found')
  await b.run()
  await b.awaitMeasurements()
  expect(b.selection!.text).toBe('found')
  b.free()
  const other = (await load(ON_INPUT('1.0 / fill_ratio(A, panels(2, 1)) > 3.0'))).kernel()
  const { selection } = await other.schedule('pick').choose(on.cpu, zeros.tensors)
  expect(selection.text).toBe('found')
})

test('a condition over a format that no schedule builds at run time gives a warning', async () => {
  const warnings = async (condition: string) =>
    [...(await load(ON_INPUT(condition))).kernel().declaredDispatches.values()].flatMap((d) => d.warnings)
  expect(await warnings('fill_ratio(A, blocks(2, 2)) < 0.5')).toEqual([])
  expect(await warnings('fill_ratio(A, panels(2, 1)) < 0.5')).toMatchObject([
    {
      code: 'check/bound-fill-ratio',
      severity: 'warning',
      message: 'fill_ratio(A, panels(2, 1)) is computed when A is bound, and no later run selects by it',
      hint: 'compare a format of A that a schedule of the dispatch builds, or add a schedule with A as panels(2, 1) live in place',
    },
  ])
})
