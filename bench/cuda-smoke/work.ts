/** Graphs, streams, events, clusters, and what queueing costs. */
import { coords, load } from '../../src/node.ts'
import type { CudaDevice } from '../../src/runtime/cuda/index.ts'
import type { Command } from '../../src/runtime/device.ts'
import { measure } from '../../src/runtime/measure.ts'
import { check, equal, expect, F32, I32, iota, launcher, median, put, refused } from './harness.ts'
import { KERNELS } from './kernels.ts'

const ONE = [1, 1, 1] as const

const PROGRAM = `kernel row_sums(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer t: f32[i] out
  iterate sums [i, j] as SR {
    t[i] += A[i, j]
  }
}
`

export async function work(device: CudaDevice): Promise<void> {
  await compiledKernel(device)
  await graphs(device)
  await streams(device)
  await events(device)
  await chipOnly(device)
}

async function compiledKernel(device: CudaDevice): Promise<void> {
  await check('a compiled kernel: graph, new values, measured, its line', async () => {
    const n = 1000
    const at = Int32Array.from({ length: n }, (_, i) => i)
    const A = coords([n, n], [at, at.map((i) => (7 * i) % n)], new Float32Array(n).fill(1))
    const compiled = await (await load(PROGRAM, { name: 'sums.spt' })).kernel().build(device)
    const prepared = await compiled.bind({ A })
    const graph = await prepared.graph()
    for (const v of [1, 5]) {
      await prepared.set('A', new Float32Array(n).fill(v))
      graph.launch()
      await graph.finish()
      equal((await prepared.get('t')).values!, new Float32Array(n).fill(v))
    }
    const places = compiled.program.plan.texts.flatMap((t) => t.entries.map((e) => e.place))
    expect(
      places.every((p) => p === 'sums.spt:7'),
      places.join(),
    )
    const { times, floor } = await prepared.measure({ batch: 50 })
    prepared.free()
    await refused('device/freed-buffer', () => graph.launch())
    graph.free()
    compiled.release()
    const us = (t: number) => (1000 * t).toFixed(2)
    return `${us(median([...times]))} µs each of 50 in a graph; an empty region ${us(floor)} µs`
  })
}

async function graphs(device: CudaDevice): Promise<void> {
  await check('graph: 500 replays of a clear and two kernels, new inputs in place', async () => {
    const n = 1000
    const [dx, dy, dz] = [device.alloc(4 * n, 'x'), device.alloc(4 * n, 'y'), device.alloc(4, 'z')]
    const scale = await launcher(device, KERNELS.scale)
    const sum = await launcher(device, KERNELS.sum)
    const graph = await device.graph([
      { kind: 'clear', buffer: dz },
      scale([4, 1, 1], dx, dy, n, 2),
      sum([4, 1, 1], dy, dz, n),
    ])
    for (let k = 0; k < 5; k++) {
      await device.upload(dx, new Float32Array(n).fill(k))
      for (let i = 0; i < 100; i++) graph.launch()
      equal(await F32(device, dz), [2 * k * n])
    }
    graph.free()
    await refused('device/freed', () => graph.launch())
    return undefined
  })
  await check('graph: buffers and modules that are gone are refused', async () => {
    const dy = await put(device, Int32Array.of(0), 'y')
    const module = await device.compile(KERNELS.step)
    const command: Command = { kind: 'launch', module, entry: 'step', grid: ONE, args: [dy, 0] }
    const [a, b] = [await device.graph([command]), await device.graph([command])]
    a.launch()
    equal(await I32(device, dy), [1])
    dy.free()
    await refused('device/freed-buffer', () => a.launch())
    module.release()
    a.free()
    b.free()
    const bad = await put(device, Int32Array.of(0), 'bad')
    await refused('device/released-module', () => device.graph([{ ...command, args: [bad, 0] }]))
    const step = await launcher(device, KERNELS.step)
    const good = await device.graph([step(ONE, bad, 0)])
    good.launch()
    return equal(await I32(device, bad), [1])
  })
}

async function streams(device: CudaDevice): Promise<void> {
  const spin = await launcher(device, KERNELS.spin)
  const step = await launcher(device, KERNELS.step)
  await check('streams: run beside each other', async () => {
    const [a, b] = [device.stream('a'), device.stream('b')]
    const graph = await device.graph([spin(ONE, device.alloc(4, 'y'), 40)])
    const start = performance.now()
    graph.launch(a)
    const other = await device.graph([spin(ONE, device.alloc(4, 'z'), 40)])
    other.launch(b)
    await device.finish()
    const ms = performance.now() - start
    expect(ms >= 40 && ms < 70, `${ms} ms for twice 40 ms`)
    a.free()
    b.free()
    return `${ms.toFixed(1)} ms`
  })
  await check('streams: events order them, transfers come after all', async () => {
    const dy = await put(device, Int32Array.of(0), 'y')
    const scratch = device.alloc(4, 'scratch')
    const [a, b] = [device.stream('a'), device.stream('b')]
    const [one, two] = [device.event(), device.event()]
    const slowly = async (k: number) => device.graph([spin(ONE, scratch, 5), step(ONE, dy, k)])
    const steps = [await slowly(0), await device.graph([step(ONE, dy, 1)]), await slowly(2)]
    steps[0]!.launch(a)
    a.record(one)
    b.wait(one)
    steps[1]!.launch(b)
    b.record(two)
    a.wait(two)
    steps[2]!.launch(a)
    equal(await I32(device, dy), [3])
    a.free()
    await refused('device/freed', () => steps[0]!.launch(a))
    return undefined
  })
}

async function events(device: CudaDevice): Promise<void> {
  const spin = await launcher(device, KERNELS.spin)
  await check('events: the time of a region', async () => {
    const graph = await device.graph([spin(ONE, device.alloc(4, 'y'), 20)])
    const stream = device.stream('timed')
    const [start, end] = [device.event(), device.event()]
    await refused('device/not-recorded', () => end.since(start))
    stream.record(start)
    graph.launch(stream)
    stream.record(end)
    const ms = await end.since(start)
    const [inside] = await graph.time(1)
    for (const t of [ms, inside!]) expect(t >= 20 && t < 22, `${t} ms for 20 ms`)
    return `${ms.toFixed(3)} ms on a stream, ${inside!.toFixed(3)} ms in the graph`
  })
  await check('measure: hot, flushed, a batch', async () => {
    const n = 2 ** 20
    const [x, y] = [await put(device, iota(4 * n), 'x'), device.alloc(16 * n, 'y')]
    const copy = await launcher(device, KERNELS.copy)
    const list = [copy([device.chip.multiprocessors * 4, 1, 1], x, y, n)]
    const hot = await measure(device, list)
    const cold = await measure(device, list, { flush: true })
    const batch = await measure(device, list, { batch: 20 })
    const plain = await measure(device, list, { by: 'launches' })
    const us = (t: readonly number[]) => (1000 * median([...t])).toFixed(2)
    expect(median([...cold.times]) > median([...hot.times]), 'a flushed cache was not slower')
    return (
      `16 MiB copied: hot ${us(hot.times)} µs, flushed ${us(cold.times)}, in a batch of 20 ${us(batch.times)}, ` +
      `launches ${us(plain.times)}; an empty region: graph ${us([hot.floor])} µs, launches ${us([plain.floor])}`
    )
  })
}

async function chipOnly(device: CudaDevice): Promise<void> {
  await check('all of the dynamic shared memory', async () => {
    const bytes = device.limits.maxSharedBytes
    const n = bytes / 4
    const [dx, dy] = [await put(device, iota(n), 'x'), device.alloc(bytes, 'y')]
    const { reverse } = KERNELS
    const text = { ...reverse, entries: [{ ...reverse.entries[0]!, sharedBytes: bytes }] }
    await device.run([(await launcher(device, text))(ONE, dx, dy, n)])
    equal(await F32(device, dy), iota(n).reverse())
    return `${bytes} bytes`
  })
  await check('clusters of blocks, launched and from a graph', async () => {
    if (!device.features.has('clusters')) return 'none here'
    const dy = device.alloc(4 * 32, 'y')
    const said: number[] = []
    for (const size of [2, 8, 16]) {
      const { cluster } = KERNELS
      const text = { ...cluster, entries: [{ ...cluster.entries[0]!, cluster: [size, 1, 1] as const }] }
      const launch = await launcher(device, text)
      await device.run([launch([32, 1, 1], dy)])
      equal(await I32(device, dy), new Int32Array(32).fill(size))
      const graph = await device.graph([{ kind: 'clear', buffer: dy }, launch([32, 1, 1], dy)])
      graph.launch()
      equal(await I32(device, dy), new Int32Array(32).fill(size))
      graph.free()
      if (size > 2) await refused('device/grid', () => device.run([launch([size + 1, 1, 1], dy)]))
      said.push(size)
    }
    return said.join(', ')
  })
}

/** What the host pays for queueing: nothing is waited for inside of what is measured. */
export async function queueing(device: CudaDevice): Promise<void> {
  const dy = await put(device, Int32Array.of(0), 'y')
  const step = await launcher(device, KERNELS.step)
  const empty = step(ONE, dy, -1)
  const best = async (n: number, queue: () => Promise<void> | void): Promise<number> => {
    const each: number[] = []
    for (let round = 0; round < 30; round++) {
      const start = performance.now()
      const done = queue()
      each.push(((performance.now() - start) / n) * 1000)
      await done
      await device.finish()
    }
    return median(each)
  }
  await check('figures: host cost', async () => {
    const list = Array.from({ length: 100 }, () => empty)
    const launches = await best(100, () => device.run(list))
    const of = async (n: number) => {
      const graph = await device.graph(Array.from({ length: n }, () => empty))
      const host = await best(50, () => {
        for (let i = 0; i < 50; i++) graph.launch()
      })
      const times = await graph.time(50)
      graph.free()
      return { host, device: (median(times) * 1000) / n }
    }
    const [one, ten, many] = [await of(1), await of(10), await of(1000)]
    return (
      `${launches.toFixed(2)} µs a launch, ${one.host.toFixed(2)} µs a replay of one launch, ` +
      `${ten.host.toFixed(2)} µs of ten; device time of an empty kernel in a graph of 1: ${one.device.toFixed(2)} µs, ` +
      `of 10: ${ten.device.toFixed(2)}, of 1000: ${many.device.toFixed(2)} each`
    )
  })
  await check('figures: empty regions and kernels by events', async () => {
    const us = (t: readonly number[]) => (1000 * median([...t])).toFixed(2)
    const plain = await measure(device, [empty], { by: 'launches', repeats: 100 })
    const graph = await measure(device, [empty], { repeats: 100 })
    const batch = await measure(device, [empty], { batch: 100 })
    return (
      `empty kernel: launches ${us(plain.times)} µs (region ${us([plain.floor])}), ` +
      `graph ${us(graph.times)} (region ${us([graph.floor])}), batch of 100 ${us(batch.times)}`
    )
  })
}
