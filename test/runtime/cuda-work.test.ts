/** Graphs, streams and events on the fake driver, which leaves undone what nobody has to wait for. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Command, DeviceBuffer, Entry } from '../../src/runtime/device.ts'
import { measure } from '../../src/runtime/measure.ts'
import { codeOf, failure } from '../support/device-suite.ts'
import { property } from '../support/property.ts'
import { buffer, type FakeKernel, fakeDevice, fakeModule, scalar } from './cuda-fake.ts'

/** y[0] = 10 y[0] + k, as long as that fits: tells the order of launches. */
const append: FakeKernel = ({ slot, memory }) => {
  const y = memory(slot(0).getBigUint64(0, true))
  const view = new DataView(y.buffer, y.byteOffset)
  view.setInt32(0, 10 * view.getInt32(0, true) + slot(1).getInt32(0, true), true)
  return undefined
}
const wild: FakeKernel = () => 700

async function lazyDevice(wait = false, change: Partial<Entry> = {}) {
  const parts = fakeDevice(wait)
  parts.driver.streams.lazy = true
  parts.driver.kernels.set('append', append)
  parts.driver.kernels.set('wild', wild)
  const args = [buffer('y'), scalar('k')]
  const launches = await Promise.all(
    ['append', 'wild'].map(async (name) => {
      const module = await parts.device.compile(
        fakeModule(name, args, { place: `k.spt:${name.length}`, ...change }),
      )
      return (y: DeviceBuffer, k: number): Command => ({
        kind: 'launch',
        module,
        entry: name,
        grid: [2, 1, 1],
        args: [y, k],
      })
    }),
  )
  const number = async (b: DeviceBuffer): Promise<number> =>
    new Int32Array(await parts.device.download(b))[0]!
  const zero = (label: string): { y: DeviceBuffer; clear: Command } => {
    const y = parts.device.alloc(4, label)
    return { y, clear: { kind: 'clear', buffer: y } }
  }
  return { ...parts, append: launches[0]!, wild: launches[1]!, number, zero }
}

describe('graphs', () => {
  property([fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }), fc.nat(2)])(
    'a replay equals running the commands, with the current data',
    async (digits, replays) => {
      const { device, append, number, zero, driver } = await lazyDevice()
      const { y, clear } = zero('y')
      const graph = await device.graph(digits.map((k) => append(y, k)))
      await device.run([clear])
      for (let i = 0; i < replays; i++) graph.launch()
      expect(await number(y)).toBe(Number(digits.join('').repeat(replays) || '0'))
      await device.upload(y, Int32Array.of(7))
      graph.launch()
      expect(await number(y)).toBe(Number(`7${digits.join('')}`))
      graph.free()
      graph.free()
      expect(driver.streams.live.graph.size + driver.streams.live.executable.size).toBe(0)
    },
  )

  test('recording runs nothing, and a replay is one call', async () => {
    const { device, append, number, zero, driver } = await lazyDevice()
    const { y, clear } = zero('y')
    await device.run([clear])
    const graph = await device.graph([append(y, 1), append(y, 2)])
    expect(await number(y)).toBe(0)
    driver.log.length = 0
    graph.launch()
    expect(driver.log).toEqual(['cuCtxSetCurrent', 'cuGraphLaunch'])
  })

  test('a rejected command ends the capture, without leftovers', async () => {
    const { device, append, number, zero, driver } = await lazyDevice()
    const { y, clear } = zero('y')
    const bad = { ...(append(y, 1) as Extract<Command, { kind: 'launch' }>), grid: [0, 1, 1] as const }
    expect(await codeOf(() => device.graph([append(y, 1), bad]))).toBe('device/grid')
    for (const call of ['cuGraphInstantiateWithFlags', 'cuGraphUpload'] as const) {
      driver.failing.set(call, 1)
      expect(await codeOf(() => device.graph([append(y, 1)]))).toBe('device/cuda')
    }
    expect(driver.streams.live.graph.size + driver.streams.live.executable.size).toBe(0)
    await device.run([clear, append(y, 3)])
    expect(await number(y)).toBe(3)
  })

  test('freed objects are rejected at replay', async () => {
    const { device, append, zero } = await lazyDevice()
    const [a, b] = [zero('a'), zero('b')]
    const command = append(b.y, 1) as Extract<Command, { kind: 'launch' }>
    const [first, second] = [await device.graph([a.clear]), await device.graph([command])]
    a.y.free()
    expect(await codeOf(() => first.launch())).toBe('device/freed-buffer')
    expect(await codeOf(() => first.time(1))).toBe('device/freed-buffer')
    command.module.release()
    expect(await codeOf(() => second.launch())).toBe('device/released-module')
    second.free()
    expect(await codeOf(() => second.launch())).toBe('device/freed')
    expect(await codeOf(() => second.time(1))).toBe('device/freed')
  })

  test('memory of replays in flight is not released', async () => {
    const { device, append, number, zero } = await lazyDevice()
    const [a, b] = [zero('a'), zero('b')]
    await device.run([a.clear, b.clear])
    const stream = device.stream('s')
    const graph = await device.graph([append(a.y, 1), append(b.y, 2)])
    graph.launch(stream)
    a.y.free()
    expect(await number(b.y)).toBe(2)
  })

  test('the time of a replay is that of its commands alone', async () => {
    const { device, append, zero } = await lazyDevice()
    const { y, clear } = zero('y')
    const graph = await device.graph([append(y, 1), append(y, 2), append(y, 3)])
    const between = await device.graph([clear])
    // The fake's clock: a millisecond for each piece of work.
    expect(await graph.time(4)).toEqual([3, 3, 3, 3])
    expect(await graph.time(2, between)).toEqual([3, 3])
    expect(await device.time([append(y, 1)], 2, between)).toEqual([1, 1])
    expect(await codeOf(async () => graph.time(1, await (await lazyDevice()).device.graph([])))).toBe(
      'device/foreign',
    )
  })
})

describe('streams', () => {
  /** Launches on streams, and which earlier launch each waits for. */
  const program = fc.array(
    fc.record({ stream: fc.nat(2), after: fc.option(fc.nat(5), { nil: undefined }) }),
    { maxLength: 6 },
  )

  property([program])('events and the order in a stream are kept; transfers see all of it', async (list) => {
    const { device, driver } = await lazyDevice()
    const order: number[] = []
    driver.kernels.set('note', ({ slot }) => void order.push(slot(0).getInt32(0, true)) as undefined)
    const module = await device.compile(fakeModule('note', [scalar('k')]))
    const streams = [0, 1, 2].map((k) => device.stream(`s${k}`))
    const done: { stream: number; event: ReturnType<typeof device.event> }[] = []
    const before: [number, number][] = []
    for (const [k, { stream, after }] of list.entries()) {
      const on = streams[stream]!
      if (after !== undefined && done[after]) {
        on.wait(done[after].event)
        before.push([after, k])
      }
      const graph = await device.graph([
        { kind: 'launch', module, entry: 'note', grid: [1, 1, 1], args: [k] },
      ])
      graph.launch(on)
      const event = device.event()
      on.record(event)
      for (const [j, d] of done.entries()) if (d.stream === stream) before.push([j, k])
      done.push({ stream, event })
    }
    await device.download(device.alloc(4, 'other'))
    expect([...order].sort()).toEqual(list.map((_, k) => k))
    for (const [a, b] of before) expect(order.indexOf(a)).toBeLessThan(order.indexOf(b))
  })

  test('without an event, streams are not ordered', async () => {
    const { device, append, number, zero } = await lazyDevice()
    const { y, clear } = zero('y')
    await device.run([clear])
    const [one, two] = [await device.graph([append(y, 1)]), await device.graph([append(y, 2)])]
    const [a, b] = [device.stream('a'), device.stream('b')]
    one.launch(a)
    two.launch(b)
    await b.finish()
    await device.finish()
    expect(await number(y)).toBe(21)
  })

  test('run and uploads come after what was queued on streams', async () => {
    const { device, append, number, zero } = await lazyDevice()
    const { y, clear } = zero('y')
    const stream = device.stream('s')
    const graph = await device.graph([clear, append(y, 4)])
    graph.launch(stream)
    await device.run([append(y, 5)])
    expect(await number(y)).toBe(45)
    graph.launch(stream)
    await device.upload(y, Int32Array.of(8))
    await device.finish()
    expect(await number(y)).toBe(8)
  })

  test('freed streams and those of other devices are rejected', async () => {
    const [mine, theirs] = [(await lazyDevice()).device, (await lazyDevice()).device]
    const stream = mine.stream('gone')
    const event = mine.event()
    expect(await codeOf(() => stream.record(theirs.event()))).toBe('device/foreign')
    expect(await codeOf(async () => (await mine.graph([])).launch(theirs.stream('t')))).toBe('device/foreign')
    stream.free()
    stream.free()
    event.free()
    event.free()
    expect(await codeOf(() => stream.record(mine.event()))).toBe('device/freed')
    expect(await codeOf(() => mine.stream('s').record(event))).toBe('device/freed')
    expect(await codeOf(() => stream.finish())).toBe('device/freed')
  })

  test('events measure the time between them', async () => {
    const { device, append, zero } = await lazyDevice()
    const { y, clear } = zero('y')
    const graph = await device.graph([clear, append(y, 1)])
    const stream = device.stream('s')
    const [start, end] = [device.event(), device.event()]
    expect(await codeOf(() => end.since(start))).toBe('device/not-recorded')
    stream.record(start)
    expect(await codeOf(() => end.since(start))).toBe('device/not-recorded')
    expect(await codeOf(() => start.since(end))).toBe('device/not-recorded')
    graph.launch(stream)
    graph.launch(stream)
    stream.record(end)
    expect(await end.since(start)).toBe(4)
  })

  test('disposal releases all of them', async () => {
    const { device, driver, append, zero } = await lazyDevice()
    const { y } = zero('y')
    const graph = await device.graph([append(y, 1)])
    const stream = device.stream('s')
    stream.record(device.event())
    graph.launch(stream)
    await graph.time(1)
    await device.dispose()
    for (const handles of Object.values(driver.streams.live)) expect(handles.size).toBe(0)
    graph.free()
    stream.free()
    expect(await codeOf(() => graph.launch())).toBe('device/freed')
    expect(await codeOf(() => device.event())).toBe('device/disposed')
  })
})

describe('faults name the kernel and its line', () => {
  const message = async (call: () => unknown): Promise<string> => (await failure(call))[0]!.message

  test('in a graph on a stream', async () => {
    const { device, append, wild, zero } = await lazyDevice()
    const { y } = zero('y')
    const graph = await device.graph([append(y, 1), wild(y, 1)])
    graph.launch(device.stream('s'))
    expect(await message(() => device.finish())).toBe(
      'CODE_700: a kernel read or wrote memory that is not allocated; ' +
        "one of the kernels in flight: 'append' in k.spt:6, 'wild' in k.spt:4",
    )
    expect(await codeOf(() => graph.launch())).toBe('device/lost')
    graph.free()
    await device.dispose()
  })

  test('exactly, if each kernel is awaited', async () => {
    const { device, append, wild, zero } = await lazyDevice(true)
    const { y } = zero('y')
    const graph = await device.graph([append(y, 1), wild(y, 1), append(y, 2)])
    expect(await message(() => graph.launch())).toContain("kernel 'wild' in k.spt:4")
  })

  test('kernels of an earlier, finished replay are not suspected', async () => {
    const { device, append, wild, zero } = await lazyDevice()
    const { y } = zero('y')
    const graph = await device.graph([append(y, 1)])
    graph.launch()
    await device.finish()
    expect(await message(() => device.run([wild(y, 1)]))).toContain(
      "kernel 'wild' in k.spt:4 (the only kernel in flight)",
    )
  })

  test('that cannot be launched', async () => {
    const { device, driver, append, zero } = await lazyDevice()
    const { y } = zero('y')
    driver.failing.set('cuLaunchKernel', 701)
    expect(await message(() => device.run([append(y, 1)]))).toBe(
      "launching kernel 'append' in k.spt:6: a block needs more registers or threads than a multiprocessor has " +
        '(cuLaunchKernel: CODE_701, 701)',
    )
  })
})

describe('clusters', () => {
  test('reach the launch, with their grid, block, shared memory and stream', async () => {
    const { device, driver } = fakeDevice()
    let seen: unknown
    driver.kernels.set(
      'k',
      ({ slot, memory, ...shape }) => void (seen = { ...shape, k: slot(0).getInt32(0, true) }) as undefined,
    )
    const module = await device.compile(
      fakeModule('k', [scalar('k')], { block: [8, 4, 2], sharedBytes: 640, cluster: [4, 1, 2] }),
    )
    await device.run([{ kind: 'launch', module, entry: 'k', grid: [8, 3, 4], args: [5] }])
    const shape = { grid: [8, 3, 4], block: [8, 4, 2], sharedBytes: 640, cluster: [4, 1, 2] }
    expect(seen).toEqual({ ...shape, overlaps: false, k: 5 })
    const grid = [6, 3, 4] as const
    const refused = (): Promise<void> => device.run([{ kind: 'launch', module, entry: 'k', grid, args: [5] }])
    expect(await codeOf(refused)).toBe('device/grid')
  })

  test('more than 8 blocks are requested explicitly, more than 16 are rejected', async () => {
    const { device, driver } = fakeDevice()
    driver.kernels.set('k', () => undefined)
    const compile = (n: number) => device.compile(fakeModule('k', [], { cluster: [n, 1, 1] }))
    const asked = (): number => driver.log.filter((c) => c === 'cuFuncSetAttribute').length
    await compile(8)
    expect(asked()).toBe(0)
    await compile(16)
    expect(asked()).toBe(1)
    expect(await codeOf(() => compile(17))).toBe('device/over-limit')
    expect(await codeOf(() => compile(0))).toBe('device/over-limit')
  })
})

describe('measuring', () => {
  test('samples, batches, floors; nothing is left', async () => {
    const { device, driver, append, zero } = await lazyDevice()
    const { y } = zero('y')
    const list = [append(y, 1), append(y, 2)]
    const held = driver.held
    for (const by of ['graph', 'launches'] as const) {
      for (const options of [{ batch: 5 }, { flush: true }, { warmups: 0 }]) {
        const { times, floor } = await measure(device, list, { repeats: 7, by, ...options })
        expect(times).toEqual(new Array(7).fill(2))
        expect(floor).toBe(0)
      }
    }
    expect(driver.held).toBe(held)
    expect(driver.streams.live.executable.size).toBe(0)
    for (const options of [{ repeats: 0 }, { batch: 0.5 }, { warmups: -1 }, { flush: true, batch: 2 }])
      expect(await codeOf(() => measure(device, list, options))).toBe('measure/options')
  })
})
