/** What launches do wrong without a fault comes out of whatever waits for them, however they were queued. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Binding, type Device, dense, devices, load } from '../../src/node.ts'
import { Workspace } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { codeOf } from '../support/device-suite.ts'
import { fakeDevice } from './cuda-fake.ts'

const TEXT = `import "sparsetile/kernels/formats.spt"
kernel rows(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate sum [i, j] as SR { C[i] += A[i, j] }
}
kernel twice(m: size) {
  axis i = dense_fixed(m)
  buffer C: f32[i] in
  buffer D: f32[i] out
  iterate double [i] as S { D[i] = 2 * C[i] }
}
schedule rows.live { A as csr live in place capacity 2 }
`
const FITS = [1, 0, 0, 2, 0, 0, 0, 3]
const OVERFLOWS = [1, 1, 1, 1, 0, 0, 0, 3]

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  let make: () => Promise<Binding>
  let follow: (of: Binding) => Promise<Binding>
  beforeAll(async () => {
    device = await devices[kind]()
    const program = await load(TEXT)
    const rows = await program.kernel('rows').schedule('live').build(device)
    const twice = await program.kernel('twice').build(device)
    make = () => rows.bind({ A: dense([2, 4], FITS) })
    follow = (of) => twice.bind({ C: of.output('C') })
  })
  afterAll(() => device.dispose())

  const OVERFLOW = 'run/overflow'
  const failed = (call: () => Promise<unknown>): Promise<string | undefined> =>
    call().then(
      () => undefined,
      (e) => e.diagnostics[0].code,
    )

  /** How it is queued, and what then tells. */
  const QUEUED = ['graph', 'two kernels', 'commands', 'time', 'measure'] as const
  const TOLD = ['device.finish', 'stream.finish', 'read', 'outputs', 'download', 'read of the next'] as const

  test('the first wait reports lists over capacity, once', async () => {
    const stream = device.stream('s')
    const [first, other] = [await make(), await make()]
    const next = await follow(first)
    const graphs = {
      graph: await first.graph(),
      'two kernels': await device.graph([...first.commands, ...other.commands, ...next.commands]),
    }
    const told: Record<(typeof TOLD)[number], () => Promise<unknown>> = {
      'device.finish': () => device.finish(),
      'stream.finish': () => stream.finish(),
      read: () => first.get('C'),
      outputs: () => first.outputs(),
      download: () => first.output('C').download(),
      'read of the next': () => next.get('D'),
    }
    const cases = fc.record({
      fits: fc.boolean(),
      queued: fc.constantFrom(...QUEUED),
      told: fc.constantFrom(...TOLD),
      again: fc.constantFrom(...TOLD),
    })
    await fc.assert(
      fc.asyncProperty(cases, async (c) => {
        await first.set('A', c.fits ? FITS : OVERFLOWS)
        const expected = c.fits ? undefined : OVERFLOW
        if (c.queued === 'commands') expect(await failed(() => device.run(first.commands))).toBe(expected)
        else if (c.queued === 'time')
          expect(await failed(() => device.time(first.commands, 2))).toBe(expected)
        else if (c.queued === 'measure')
          expect(await failed(() => first.measure({ repeats: 1, warmups: 0 }))).toBe(expected)
        else {
          graphs[c.queued].launch(stream)
          expect(await failed(told[c.told])).toBe(expected)
        }
        expect(await failed(told[c.again])).toBe(undefined)
        if (c.fits) expect((await first.get('C')).values).toEqual(Float32Array.of(3, 3))
        expect(await failed(() => graphs[c.fits ? 'graph' : 'two kernels'].time(1))).toBe(expected)
      }),
      { numRuns: runs(kind === 'cpu' ? 60 : 15) },
    )
  })

  test('each unfreed kernel of a graph reports its own errors', async () => {
    const [first, other] = [await make(), await make()]
    for (const p of [first, other]) await p.set('A', OVERFLOWS)
    const graph = await device.graph([...first.commands, ...other.commands])
    graph.launch()
    expect(await failed(() => other.get('C'))).toBe(OVERFLOW)
    expect(await failed(() => device.finish())).toBe(OVERFLOW)
    expect(await failed(() => device.finish())).toBe(undefined)
    graph.launch()
    expect(await failed(() => device.finish())).toBe(OVERFLOW)
    expect(await failed(() => device.finish())).toBe(OVERFLOW)
    expect(await failed(() => device.finish())).toBe(undefined)
    graph.launch()
    first.free()
    other.free()
    expect(await failed(() => device.finish())).toBe(undefined)
  })
})

test('the status is not in memory that kernels of a workspace share', async () => {
  const device = await devices.cpu()
  const kernel = (await load(TEXT)).kernel('rows')
  const shared = new Workspace(device, kernel, { A: dense([2, 4], FITS) }, { shareOutputs: true })
  const compiled = await kernel.schedule('live').build(device, { auto: false })
  const [one, other] = [await shared.bind(compiled), await shared.bind(compiled)]
  const { counts } = one.code.program.plan.runtimeLists![0]!.parts[0]!.capacity!
  const isOne = (name: string) => one.executable.memory.get(name) === other.executable.memory.get(name)
  expect([isOne('C'), isOne(counts)]).toEqual([true, false])
})

test('on cuda a stream reports errors of its own launches', async () => {
  const { device, driver } = fakeDevice()
  const kernel = (await load(TEXT)).kernel('rows').schedule('live')
  for (const text of kernel.emit('cuda'))
    for (const e of text.entries) driver.kernels.set(e.name, () => undefined)
  const prepared = await (await kernel.build(device)).bind({ A: dense([2, 4], FITS) })
  for (const b of prepared.executable.memory.values()) await device.upload(b, new Uint8Array(b.bytes).fill(9))
  const graph = await prepared.graph()
  const [a, b] = [device.stream('a'), device.stream('b')]
  graph.launch(a)
  await b.finish()
  expect(await codeOf(() => a.finish())).toBe('run/overflow')
  graph.launch(b)
  expect(await codeOf(() => device.finish())).toBe('run/overflow')
  await device.finish()
  expect(await codeOf(() => device.run(prepared.commands))).toBe('run/overflow')
  expect(await codeOf(() => device.time(prepared.commands, 1))).toBe('run/overflow')
})
