/** What graphs, streams and events do on every device; data are integers. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Command, CompiledModule, Device, DeviceBuffer } from '../../src/runtime/device.ts'
import { measure } from '../../src/runtime/measure.ts'
import { codeOf, type SuiteTexts } from '../support/device-suite.ts'

const N = 100

export function workSuite(name: string, makeDevice: () => Promise<Device>, texts: SuiteTexts): void {
  describe(`${name}: queued work`, () => {
    let device: Device
    let scale: CompiledModule
    let steps: CompiledModule
    beforeAll(async () => {
      device = await makeDevice()
      scale = await device.compile(texts.scale.module)
      steps = await device.compile(texts.steps.module)
    })
    afterAll(async () => {
      await device.dispose()
    })

    const scaled = (x: DeviceBuffer, alpha: number, y: DeviceBuffer): Command => ({
      kind: 'launch',
      module: scale,
      entry: 'scale',
      grid: texts.scale.grid(N),
      args: [x, alpha, y, N],
    })
    const step = (entry: 'increment' | 'double', y: DeviceBuffer): Command => ({
      kind: 'launch',
      module: steps,
      entry,
      grid: texts.steps.grid(N),
      args: [y, N],
    })
    const alloc = (): DeviceBuffer => device.alloc(4 * N, 'b')
    const read = async (b: DeviceBuffer): Promise<Float32Array> => new Float32Array(await device.download(b))
    const all = (value: number): Float32Array => new Float32Array(N).fill(value)

    test('a graph replays its commands with the current data', async () => {
      const [x, y, z] = [alloc(), alloc(), alloc()]
      const graph = await device.graph([
        { kind: 'clear', buffer: z },
        scaled(x, 3, y),
        step('increment', z),
        step('double', z),
        scaled(y, 5, x),
      ])
      for (const v of [1, 2, 7]) {
        await device.upload(x, all(v))
        graph.launch()
        expect(await read(y)).toEqual(all(3 * v))
        expect(await read(z)).toEqual(all(2))
        expect(await read(x)).toEqual(all(15 * v))
      }
      graph.launch()
      graph.launch()
      await device.finish()
      expect(await read(x)).toEqual(all(15 * 15 * 15 * 7))
      graph.free()
    })

    test('graphs have separate scalars, also from commands that run in between', async () => {
      const [x, y, z] = [alloc(), alloc(), alloc()]
      await device.upload(x, all(1))
      const [two, three] = [await device.graph([scaled(x, 2, y)]), await device.graph([scaled(x, 3, z)])]
      two.launch()
      await device.run([scaled(x, 9, z)])
      expect(await read(y)).toEqual(all(2))
      expect(await read(z)).toEqual(all(9))
      three.launch()
      two.launch()
      expect(await read(z)).toEqual(all(3))
      expect(await read(y)).toEqual(all(2))
    })

    test('events order streams', async () => {
      const y = alloc()
      const [a, b] = [device.stream('a'), device.stream('b')]
      const made = device.event()
      const [first, second] = [
        await device.graph([{ kind: 'clear', buffer: y }, step('increment', y)]),
        await device.graph([step('double', y), step('increment', y)]),
      ]
      first.launch(a)
      a.record(made)
      b.wait(made)
      second.launch(b)
      await b.finish()
      expect(await read(y)).toEqual(all(3))
      a.free()
      expect(await codeOf(() => a.record(made))).toBe('device/freed')
      expect(await codeOf(() => a.wait(made))).toBe('device/freed')
      made.free()
      expect(await codeOf(() => first.launch(a))).toBe('device/freed')
      expect(await codeOf(() => b.record(made))).toBe('device/freed')
    })

    test('events and graphs report times', async () => {
      const y = alloc()
      const graph = await device.graph([step('increment', y)])
      const stream = device.stream('s')
      const [start, end] = [device.event(), device.event()]
      expect(await codeOf(() => end.since(start))).toBe('device/not-recorded')
      stream.record(start)
      graph.launch(stream)
      stream.record(end)
      expect(await end.since(start)).toBeGreaterThanOrEqual(0)
      expect(await graph.time(3)).toHaveLength(3)
      await device.run([{ kind: 'clear', buffer: y }])
      expect(await graph.time(4, await device.graph([step('double', y)]))).toHaveLength(4)
      // Each sample runs what comes between once before it.
      expect(await read(y)).toEqual(all(15))
    })

    test('measuring runs as often as requested', async () => {
      const y = alloc()
      for (const by of ['graph', 'launches'] as const) {
        await device.run([{ kind: 'clear', buffer: y }])
        const { times, floor } = await measure(device, [step('increment', y)], {
          warmups: 4,
          repeats: 3,
          batch: 2,
          by,
        })
        expect(times).toHaveLength(3)
        expect(floor).toBeGreaterThanOrEqual(0)
        expect(await read(y)).toEqual(all(4 + 3 * 2))
      }
    })

    test('freed objects and those of another device are rejected', async () => {
      const y = alloc()
      const graph = await device.graph([step('increment', y)])
      const other = await makeDevice()
      expect(await codeOf(() => graph.launch(other.stream('theirs')))).toBe('device/foreign')
      expect(await codeOf(() => device.stream('s').record(other.event()))).toBe('device/foreign')
      expect(await codeOf(async () => graph.time(1, await other.graph([])))).toBe('device/foreign')
      await other.dispose()
      expect(await codeOf(() => other.stream('s'))).toBe('device/disposed')
      expect(await codeOf(() => other.event())).toBe('device/disposed')
      y.free()
      expect(await codeOf(() => graph.launch())).toBe('device/freed-buffer')
      graph.free()
      graph.free()
      expect(await codeOf(() => graph.launch())).toBe('device/freed')
    })
  })
}
