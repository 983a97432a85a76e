/** Prepared kernels as graphs, and where faults say that a kernel comes from. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Binding, Built, Device } from '../../src/node.ts'
import { coords, dense, devices, load } from '../../src/node.ts'
import { codeOf, failure } from '../support/device-suite.ts'
import { fakeDevice } from './cuda-fake.ts'

const PROGRAM = `kernel twice(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer s: f32[i] local
  buffer t: f32[i] out
  iterate sums [i, j] as SR {
    s[i] += A[i, j]
  }
  iterate doubled [i] as S {
    t[i] = 2.0 * s[i]
  }
}
`
const A = coords(
  [3, 4],
  [
    [0, 0, 2],
    [1, 3, 2],
  ],
  Float32Array.of(1, 2, 5),
)

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  let compiled: Built
  let prepared: Binding
  beforeAll(async () => {
    device = await devices[kind]()
    compiled = await (await load(PROGRAM, { name: 'twice.spt' })).kernel().build(device, { auto: false })
    prepared = await compiled.bind({ A })
  })
  afterAll(() => device.dispose())

  const t = async (): Promise<number[]> => [...(await prepared.get('t')).values!]

  test('a graph gives the results of a run, for values written between replays', async () => {
    const graph = await prepared.graph()
    graph.launch()
    await graph.finish()
    expect(await t()).toEqual([6, 0, 10])
    await prepared.set('A', [10, 20, 30])
    graph.launch()
    expect(await t()).toEqual([60, 0, 60])
    expect(await graph.time(2, await prepared.graph())).toHaveLength(2)
    graph.free()
    expect(await codeOf(() => graph.launch())).toBe('device/freed')
  })

  test('several kernels make one graph', async () => {
    const other = await compiled.bind({ A: dense([3, 4], new Array(12).fill(1)) })
    const graph = await device.graph([...prepared.commands, ...other.commands])
    await prepared.set('A', [1, 1, 1])
    graph.launch()
    await device.finish()
    expect(await t()).toEqual([4, 0, 2])
    expect([...(await other.get('t')).values!]).toEqual([8, 8, 8])
  })

  test('measures', async () => {
    const { times } = await prepared.measure({ repeats: 3, warmups: 1, batch: 2 })
    expect(times).toHaveLength(3)
    expect(await codeOf(() => prepared.measure({ repeats: 0 }))).toBe('measure/options')
  })

  test('entries have the location of their first statement', () => {
    const places = compiled.program.plan.texts.flatMap((text) => text.entries.map((e) => e.place))
    expect(places).toEqual(['twice.spt:8', 'twice.spt:11'])
  })
})

test('a fault on cuda names the kernel and the line of its statement', async () => {
  const { device, driver } = fakeDevice()
  const kernel = (await load(PROGRAM, { name: 'twice.spt' })).kernel().parallel()
  const entries = kernel.emit('cuda')[0]!.entries.map((e) => e.name)
  expect(entries).toHaveLength(2)
  driver.kernels.set(entries[0]!, () => undefined)
  driver.kernels.set(entries[1]!, () => 700)
  const prepared = await (await kernel.build(device)).bind({ A })
  driver.streams.lazy = true
  const graph = await prepared.graph()
  graph.launch()
  const [fault] = await failure(() => graph.finish())
  expect(fault).toMatchObject({ code: 'device/fault' })
  expect(fault!.message).toContain(`'${entries[0]}' in twice.spt:8, '${entries[1]}' in twice.spt:11`)
})

test('a replay that loses writes is reported at its wait', async () => {
  const text = `kernel scatter(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis k = dense_fixed(n)
  buffer A: f32[i, k] in
  buffer B: f32[i, j] out
  iterate store [i, k] as SS {
    B[i, k] = A[i, k]
  }
}
`
  const device = await devices.cpu()
  const compiled = await (await load(text)).kernel().build(device)
  const tensors = { A: dense([3, 4], new Array(12).fill(1)), B: { ...A, values: null } }
  const prepared = await compiled.bind(tensors)
  const graph = await prepared.graph()
  graph.launch()
  expect(await codeOf(() => graph.finish())).toBe('run/lost-writes')
  expect(await codeOf(() => graph.time(1))).toBe('run/lost-writes')
})
