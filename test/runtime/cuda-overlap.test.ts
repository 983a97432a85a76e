/** Launches that overlap, on the fake driver: which ones, what becomes of fills, and drivers that refuse them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { coords, load } from '../../src/node.ts'
import { canOverlap } from '../../src/runtime/cuda/chip.ts'
import type { Command, DeviceBuffer } from '../../src/runtime/device.ts'
import { codeOf, failure } from '../support/device-suite.ts'
import { property } from '../support/property.ts'
import { buffer, type FakeKernel, fakeDevice, fakeModule, scalar } from './cuda-fake.ts'

/** A device with kernels that append a digit to y, with and without a wait of their own, and what was launched. */
async function overlapping(syncEachLaunch = false, overlap = true) {
  const parts = fakeDevice(syncEachLaunch, overlap)
  const { driver, device } = parts
  const launched: string[] = []
  const noting =
    (name: string, kernel: FakeKernel): FakeKernel =>
    (launch) => {
      launched.push(`${name}${launch.overlaps ? ' early' : ''}`)
      return kernel(launch)
    }
  const append: FakeKernel = ({ slot, memory }) => {
    const y = memory(slot(0).getBigUint64(0, true))
    const view = new DataView(y.buffer, y.byteOffset)
    view.setInt32(0, 10 * view.getInt32(0, true) + slot(1).getInt32(0, true), true)
    return undefined
  }
  const make = async (name: string, waits: boolean) => {
    driver.kernels.set(name, noting(name, append))
    const module = await device.compile(fakeModule(name, [buffer('y'), scalar('k')], waits ? { waits } : {}))
    return (y: DeviceBuffer, k: number, follows: boolean): Command => ({
      kind: 'launch',
      module,
      entry: name,
      grid: [1, 1, 1],
      args: [y, k],
      follows,
    })
  }
  const fill = driver.kernels.get('fill_zero')!
  driver.kernels.set('fill_zero', (l) => noting(`fill ${l.grid[1]}`, fill)(l))
  const y = device.alloc(4, 'y')
  const number = async (): Promise<number> => new Int32Array(await device.download(y))[0]!
  const clear: Command = { kind: 'clear', buffer: y }
  const [plain, waiting] = [await make('plain', false), await make('waiting', true)]
  const memsets = (): number => driver.log.filter((c) => c === 'cuMemsetD8Async').length
  return { ...parts, launched, plain, waiting, y, number, clear, memsets }
}

/** Commands by themselves, and from a graph. */
const WAYS = {
  run: (device: ReturnType<typeof fakeDevice>['device'], list: readonly Command[]) => device.run(list),
  graph: async (device: ReturnType<typeof fakeDevice>['device'], list: readonly Command[]) => {
    const graph = await device.graph(list)
    graph.launch()
    await device.finish()
    graph.free()
  },
}

for (const [way, go] of Object.entries(WAYS))
  describe(`launches that overlap: ${way}`, () => {
    test('those that wait and follow a launch of their run, and no others', async () => {
      const { device, launched, plain, waiting, y } = await overlapping()
      const list = [waiting(y, 1, true), waiting(y, 2, true), waiting(y, 3, false), plain(y, 4, true)]
      await go(device, [...list, waiting(y, 5, true)])
      expect(launched).toEqual(['waiting', 'waiting early', 'waiting', 'plain', 'waiting early'])
    })

    test('the first of a list never overlaps: the previous launch is not of its run', async () => {
      const { device, launched, waiting, y } = await overlapping()
      await go(device, [waiting(y, 1, true)])
      await go(device, [waiting(y, 2, true)])
      expect(launched).toEqual(['waiting', 'waiting'])
    })

    test('fills before such a launch are one launch, at most eight buffers each', async () => {
      const { device, launched, waiting, memsets } = await overlapping()
      const buffers = Array.from({ length: 10 }, (_, k) => device.alloc(4 * k, `b${k}`))
      for (const b of buffers) await device.upload(b, new Uint8Array(b.bytes).fill(7))
      const clears = buffers.map((b): Command => ({ kind: 'clear', buffer: b }))
      await go(device, [...clears, waiting(buffers[1]!, 3, true)])
      expect(launched).toEqual(['fill 8', 'fill 1 early', 'waiting early'])
      expect(memsets()).toBe(0)
      for (const [k, b] of buffers.entries()) {
        const words = [...new Int32Array(await device.download(b))]
        expect(words).toEqual(Array.from({ length: k }, () => (k === 1 ? 3 : 0)))
      }
    })

    test('other fills are left to the driver', async () => {
      const { device, launched, plain, waiting, y, clear, memsets } = await overlapping()
      await go(device, [waiting(y, 1, false), clear, plain(y, 2, true), clear, waiting(y, 3, false), clear])
      expect(launched).toEqual(['waiting', 'plain', 'waiting'])
      expect(memsets()).toBe(3)
    })

    test('nothing overlaps if it is disabled, or if each launch is awaited', async () => {
      for (const { device, launched, waiting, y, clear, memsets, compiler } of [
        await overlapping(false, false),
        await overlapping(true),
      ]) {
        await go(device, [clear, waiting(y, 1, true), waiting(y, 2, true)])
        expect(memsets()).toBeGreaterThan(0)
        expect(launched).toEqual(['waiting', 'waiting'])
        expect(compiler.images.map((i) => i.name)).not.toContain('fill_zero')
      }
    })

    for (const refuses of ['launches', 'recording'] as const)
      test(`a driver that rejects ${refuses} gets plain launches, and is not tried again`, async () => {
        const { device, driver, launched, waiting, y, number, clear } = await overlapping()
        driver.refuses = refuses
        const list = [clear, waiting(y, 1, true), waiting(y, 2, true)]
        await go(device, list)
        expect(await number()).toBe(12)
        const count = (): number => driver.log.filter((c) => c === 'cuLaunchKernelEx').length
        const before = count()
        await go(device, list)
        expect(count()).toBe(before)
        expect(launched.some((l) => l.endsWith('early'))).toBe(false)
        for (const kind of ['graph', 'executable'] as const) expect(driver.streams.live[kind].size).toBe(0)
      })
  })

property([fc.array(fc.tuple(fc.nat(3), fc.boolean()), { maxLength: 8 }), fc.boolean(), fc.boolean()])(
  'any list of fills and launches gives equal results with and without overlap',
  async (list, waits, follows) => {
    const of = async (overlap: boolean): Promise<number> => {
      const { device, clear, plain, waiting, y, number } = await overlapping(false, overlap)
      await device.upload(y, Int32Array.of(5))
      const make = waits ? waiting : plain
      const commands = list.map(([k, other]) =>
        k === 0 ? clear : (other ? waiting : make)(y, k, follows || other),
      )
      await WAYS.run(device, commands)
      return number()
    }
    expect(await of(true)).toBe(await of(false))
  },
)

test('unrelated errors are reported unchanged, and change nothing', async () => {
  const { device, driver, launched, waiting, y } = await overlapping()
  const list = [waiting(y, 1, false), waiting(y, 2, true)]
  const module = await device.compile(fakeModule('waiting', [buffer('y')]))
  const wrong: Command = { kind: 'launch', module, entry: 'waiting', grid: [0, 1, 1], args: [y] }
  expect(await codeOf(() => device.graph([...list, wrong]))).toBe('device/grid')
  await device.run(list)
  expect(launched).toEqual(['waiting', 'waiting early'])
  driver.kernels.set('wild', () => 700)
  const wild = await device.compile(fakeModule('wild', [buffer('y')], { waits: true, place: 'k.spt:4' }))
  const bad: Command = {
    kind: 'launch',
    module: wild,
    entry: 'wild',
    grid: [1, 1, 1],
    args: [y],
    follows: true,
  }
  expect((await failure(() => device.run([list[0]!, bad])))[0]!.message).toBe(
    'CODE_700: a kernel read or wrote memory that is not allocated; ' +
      "one of the kernels in flight: 'waiting', 'wild' in k.spt:4",
  )
})

const SUMS = `kernel sums(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer s: f32[i] local
  buffer y: f32[i] out
  iterate first [i, j] as SR { s[i] += A[i, j] }
  iterate second [i] as S { y[i] = 2 * s[i] }
}
schedule sums.gpu() { bind first.i to block.x, second.i to block.x }`

test('supported chips and drivers', () => {
  expect(canOverlap({ major: 9 }, 12030)).toBe(true)
  expect(canOverlap({ major: 9 }, 12020)).toBe(false)
  expect(canOverlap({ major: 8 }, 13000)).toBe(false)
})

test('a program’s commands state which follow a launch of their run, and run so', async () => {
  const { device, driver } = fakeDevice()
  const launched: [string, boolean][] = []
  for (const name of ['sums_0', 'sums_1'])
    driver.kernels.set(name, ({ overlaps }) => void launched.push([name, overlaps]) as undefined)
  const compiled = await (await load(SUMS)).kernel().schedule('gpu').build(device)
  const A = coords([2, 2], [Int32Array.of(0, 1), Int32Array.of(1, 0)], Float32Array.of(3, 4))
  const prepared = await compiled.bind({ A })
  expect(prepared.commands.map((c) => c.kind === 'launch' && c.follows)).toEqual([false, true])
  await device.run([...prepared.commands, ...prepared.commands])
  expect(launched).toEqual([
    ['sums_0', false],
    ['sums_1', true],
    ['sums_0', false],
    ['sums_1', true],
  ])
})
