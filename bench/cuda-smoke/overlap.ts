/** Launches that begin before the one before them has finished: chains of them, right every time, and what it saves. */
import { coords, load } from '../../src/node.ts'
import { type CudaDevice, createCudaDevice } from '../../src/runtime/cuda/index.ts'
import type { Command, DeviceBuffer } from '../../src/runtime/device.ts'
import { measure } from '../../src/runtime/measure.ts'
import { check, equal, expect, I32, launcher, median, put } from './harness.ts'
import { KERNELS } from './kernels.ts'

/** A sum, what is made of it, and where it goes: each step reads what the one before wrote, the last adds to a fill. */
const CHAIN = `kernel chain(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer s: f32[i] local
  buffer t: f32[i] local
  buffer y: f32[c] out
  buffer z: f32[i] out
  iterate sums [i, j] as SR { s[i] += A[i, j] }
  iterate twice [i] as S { t[i] = 2 * s[i] }
  iterate spread [i, j] as RR { y[j] += A[i, j] * t[i] }
  iterate last [i] as S { z[i] = t[i] + s[i] }
}
schedule chain.gpu() {
  atomic y
  bind sums.i to block.x, twice.i to block.x, spread.i to block.x, last.i to block.x
}`

const LINKS = 1000

export async function overlap(device: CudaDevice): Promise<void> {
  await check('overlap: a chain of 1000 launches, on a stream and in a graph', async () => {
    const relay = await relays(device, KERNELS.relay)
    for (let round = 0; round < 10; round++) {
      await relay.reset()
      await device.run(relay.commands)
      equal(await relay.result(), relay.expected)
      await relay.reset()
      const graph = await device.graph(relay.commands)
      graph.launch()
      equal(await relay.result(), relay.expected)
      graph.free()
    }
    const rushed = await relays(device, KERNELS.rushed)
    await rushed.reset()
    await device.run(rushed.commands)
    const got = await rushed.result()
    const wrong = got.filter((v, k) => v !== rushed.expected[k]).length
    return `without the waits ${wrong} of ${got.length} elements are wrong${wrong === 0 ? ': nothing overlapped' : ''}`
  })
  await check('overlap: a compiled chain with fills, 500 replays and runs', () => compiledChain(device))
  await check('figures: with and without overlap', async () => {
    const other = await createCudaDevice({ cacheDir: false, overlap: false })
    const said: string[] = []
    for (const n of [1, 2, 10]) {
      const [by, without] = [await linkTime(device, n), await linkTime(other, n)]
      said.push(`a fill and ${n} launches ${by} µs, ${without} without`)
    }
    await other.dispose()
    return said.join('; ')
  })
}

async function relays(device: CudaDevice, text: typeof KERNELS.relay) {
  const [n, stride] = [device.chip.multiprocessors * 256 * 2, 12345]
  const start = Int32Array.from({ length: n }, (_, k) => (k * 7) % 1000)
  const pair = [device.alloc(4 * n, 'a'), device.alloc(4 * n, 'b')] as const
  const launch = await launcher(device, text)
  const commands = Array.from({ length: LINKS }, (_, k): Command => {
    const [x, y] = [pair[k % 2]!, pair[(k + 1) % 2]!]
    const command = launch([device.chip.multiprocessors * 2, 1, 1], x, y, n, stride)
    return command.kind === 'launch' ? { ...command, follows: k > 0 } : command
  })
  const expected = new Int32Array(n)
  for (let k = 0; k < n; k++) expected[(k + stride * LINKS) % n] = start[k]! + LINKS
  return {
    commands,
    expected,
    reset: () => device.upload(pair[0], start),
    result: () => I32(device, pair[LINKS % 2]!),
  }
}

async function compiledChain(device: CudaDevice): Promise<string> {
  const [m, n, each] = [3000, 500, 5]
  const [rows, columns] = [new Int32Array(m * each), new Int32Array(m * each)]
  const values = new Float32Array(m * each)
  const [y, sums] = [new Float32Array(n), new Float32Array(m)]
  for (let e = 0; e < m * each; e++) {
    rows[e] = Math.floor(e / each)
    columns[e] = (rows[e]! + 17 * (e % each)) % n
    values[e] = (e % 3) + 1
    sums[rows[e]!]! += values[e]!
  }
  for (let e = 0; e < m * each; e++) y[columns[e]!]! += values[e]! * 2 * sums[rows[e]!]!
  const z = sums.map((s) => 3 * s)
  const compiled = await (await load(CHAIN)).kernel().schedule('gpu').build(device)
  const A = coords([m, n], [rows, columns], values)
  const prepared = await compiled.bind({ A })
  const waiting = compiled.program.plan.texts.flatMap((t) => t.entries.filter((e) => e.waits))
  expect(
    waiting.length === compiled.program.plan.texts[0]!.entries.length,
    'all launches wait, for the fill at least',
  )
  const graph = await prepared.graph()
  for (let round = 0; round < 20; round++) {
    for (let k = 0; k < 25; k++) graph.launch()
    await graph.finish()
    equal((await prepared.get('y')).values!, y)
    equal((await prepared.get('z')).values!, z)
    await device.run(Array.from({ length: 5 }, () => prepared.commands).flat())
    equal((await prepared.get('y')).values!, y)
  }
  graph.free()
  const { times } = await prepared.measure({ batch: 20 })
  prepared.free()
  compiled.release()
  return `${(1000 * median([...times])).toFixed(2)} µs a run`
}

/** Microseconds of a fill and launches of a few blocks, in a graph, back to back. */
async function linkTime(device: CudaDevice, count: number): Promise<string> {
  const n = 4096
  const [x, y] = [await put(device, new Int32Array(n), 'x'), device.alloc(4 * n, 'y')]
  const quick = await launcher(device, KERNELS.relay)
  const pair: readonly DeviceBuffer[] = [x, y]
  const links = Array.from({ length: count }, (_, k): Command => {
    const command = quick([3, 1, 1], pair[k % 2]!, pair[(k + 1) % 2]!, n, 1)
    return command.kind === 'launch' ? { ...command, follows: true } : command
  })
  const { times } = await measure(device, [{ kind: 'clear', buffer: y }, ...links], { repeats: 100 })
  for (const b of pair) b.free()
  return (1000 * median([...times])).toFixed(2)
}
