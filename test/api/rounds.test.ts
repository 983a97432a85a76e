/** `examples/iterative/` on small data against plain JavaScript in f64, limits on rounds, graphs and plans. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { loadPlan } from '../../src/api/plans/loaded-plan.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Plan } from '../../src/plan/schema.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { instantiate } from '../../src/web/runtime.ts'
import { spt } from '../cli/support.ts'

const text = readFileSync('examples/iterative/iterative.spt', 'utf8')
const cpu = createCpuDevice()
const devices: Record<string, Device> = { cpu }
beforeAll(async () => {
  devices.webgpu = await createNodeWebGpu()
})
afterAll(async () => {
  await devices.webgpu!.dispose()
})

const N = 30
/** A symmetric positive definite matrix with ones on the diagonal. */
const entries = Array.from({ length: N }, (_, i) => i).flatMap((i): [number, number, number][] => [
  ...(i >= 3 ? [[i, i - 3, -0.3] as [number, number, number]] : []),
  [i, i, 1],
  ...(i + 3 < N ? [[i, i + 3, -0.3] as [number, number, number]] : []),
])
const A = coords(
  [N, N],
  [Int32Array.from(entries, (e) => e[0]), Int32Array.from(entries, (e) => e[1])],
  Float32Array.from(entries, (e) => e[2]),
)
const product = (x: readonly number[]): number[] => {
  const y = new Array<number>(N).fill(0)
  for (const [i, j, a] of entries) y[i]! += Math.fround(a) * x[j]!
  return y
}
const vector = (n: number, seed: number): Float32Array =>
  Float32Array.from({ length: n }, (_, k) => Math.sin(seed + 3 * k))

type Inputs = Parameters<Awaited<ReturnType<ReturnType<typeof bound>['build']>>['bind']>[0]
const bound = (kernel: string) => parseProgram(text).kernel(kernel)

async function run(
  kernel: string,
  device: Device,
  inputs: Inputs,
  names: readonly string[],
): Promise<Record<string, readonly number[]>> {
  const prepared = await (await bound(kernel).build(device)).bind(inputs)
  await prepared.run()
  // A second run starts anew.
  await prepared.run()
  const out: Record<string, readonly number[]> = {}
  for (const name of names) out[name] = Array.from((await prepared.get(name)).values as Float32Array)
  return out
}

function close(got: readonly number[] | undefined, want: readonly number[], by = 1e-5): void {
  expect(got).toHaveLength(want.length)
  for (const [k, x] of want.entries()) expect(Math.abs(got![k]! - x), `element ${k}`).toBeLessThan(by)
}

const damped = (x: readonly number[]): number[] => product(x).map((y) => 0.6 / N + 0.4 * y)

describe.each(['cpu', 'webgpu'])('%s', (name) => {
  test('PageRank with a fixed number of rounds', async () => {
    let x = new Array<number>(N).fill(1 / N)
    for (let t = 0; t < 7; t++) x = damped(x)
    const out = await run('pagerank', devices[name]!, { A, rounds: 7, damping: 0.4 }, ['x'])
    close(out.x, x)
  })

  test('PageRank until it converges', async () => {
    let x = new Array<number>(N).fill(1 / N)
    let count = 0
    for (let change = Infinity; change > 0.01; count++) {
      const z = damped(x)
      const before = x
      change = z.reduce((s, v, k) => s + Math.abs(v - before[k]!), 0)
      x = z
    }
    const out = await run('pagerank_until', devices[name]!, { A, damping: 0.4, eps: 0.01 }, ['x', 'count'])
    expect(count).toBeGreaterThan(2)
    expect(out.count).toEqual([count])
    close(out.x, x)
  })

  test.each([0, 3, 100])('conjugate gradients, at most %i rounds', async (limit) => {
    const b = vector(N, 1)
    let [x, r, p] = [new Array<number>(N).fill(0), [...b], [...b]]
    const dot = (u: readonly number[], v: readonly number[]): number =>
      u.reduce((s, e, k) => s + e * v[k]!, 0)
    let [rr, count] = [dot(r, r), 0]
    while (count < limit && rr > 1e-3) {
      const q = product(p)
      const [alpha, old] = [rr / dot(p, q), p]
      x = x.map((e, k) => e + alpha * old[k]!)
      r = r.map((e, k) => e - alpha * q[k]!)
      const next = dot(r, r)
      const beta = next / rr
      p = r.map((e, k) => e + beta * old[k]!)
      rr = next
      count++
    }
    const inputs = { A, b: dense([N], b), limit, eps: 1e-3 }
    const out = await run('cg', devices[name]!, inputs, ['x', 'count'])
    expect(out.count).toEqual([count])
    close(out.x, x, 1e-4)
  })

  test('a recurrent network of LSTM cells', async () => {
    const [steps, inputs, units] = [5, 3, 4]
    const [X, W] = [vector(steps * inputs, 2), vector(4 * units * inputs, 3)]
    const [U, b] = [vector(4 * units * units, 4), vector(4 * units, 5)]
    const sigmoid = (v: number): number => 1 / (1 + Math.exp(-v))
    const want: number[] = []
    let [h, c] = [new Array<number>(units).fill(0), new Array<number>(units).fill(0)]
    for (let t = 0; t < steps; t++) {
      const before = h
      const a = (gate: number, u: number): number => {
        let s = b[gate * units + u]!
        for (let k = 0; k < inputs; k++) s += W[(gate * units + u) * inputs + k]! * X[t * inputs + k]!
        for (let g = 0; g < units; g++) s += U[(gate * units + u) * units + g]! * before[g]!
        return s
      }
      c = c.map((v, u) => sigmoid(a(1, u)) * v + sigmoid(a(0, u)) * Math.tanh(a(2, u)))
      h = c.map((v, u) => sigmoid(a(3, u)) * Math.tanh(v))
      want.push(...h)
    }
    const given = {
      X: dense([steps, inputs], X),
      W: dense([4, units, inputs], W),
      U: dense([4, units, units], U),
      b: dense([4, units], b),
    }
    const out = await run('lstm', devices[name]!, given, ['H'])
    close(out.H, want)
  })

  test('a graph replays a fixed number of rounds', async () => {
    const compiled = await bound('pagerank').build(devices[name]!)
    const prepared = await compiled.bind({ A, rounds: 5, damping: 0.4 })
    await prepared.run()
    const expected = await prepared.get('x')
    await prepared.executable.poison()
    const graph = await prepared.graph()
    graph.launch()
    await graph.finish()
    graph.free()
    expect((await prepared.get('x')).values).toEqual(expected.values)
  })
})

test('printed code marks the rounds', async () => {
  for (const target of ['cuda', 'wgsl', 'c']) {
    const file = 'examples/iterative/iterative.spt'
    const { out } = await spt(['emit', file, '--kernel', 'cg', '--target', target])
    const comments = out.split('\n').filter((l) => /^\/\/ (rounds|\}|cg_\d+\()/.test(l))
    expect(comments.filter((l) => /^\/\/ rounds step < limit while step_while/.test(l))).toHaveLength(1)
    expect(comments.at(-1)).toBe('// } rounds step')
  }
})

const halving = (rounds: string) =>
  parseProgram(`kernel k(n: size) {
    axis t = dense_fixed(n)
    buffer r: f32[] inout
    buffer count: i32[] out
    iterate step ${rounds} {
      r[] = r[] / 2
      count[] += 1
    }
  }`).kernel()
const r = dense([], Float32Array.of(64))

test('a condition that never fails is an error after the largest number of rounds', async () => {
  const compiled = await halving('[] while (r[] >= 0)').build(cpu)
  const bind = (maxRounds?: number) => compiled.bind({ r, n: 1 }, { maxRounds })
  await expect((await bind(20)).run()).rejects.toThrow('still holds after 20 rounds')
  const prepared = await bind()
  await expect(prepared.run()).rejects.toThrow('still holds after 10000 rounds')
  await expect(bind(0)).rejects.toThrow('maxRounds')
  await expect(prepared.graph()).rejects.toThrow('run/rounds')
})

test('the command takes the limit', async () => {
  const until = ['run', 'examples/iterative/iterative.spt', '--kernel', 'pagerank_until', '--size', 'n=20']
  const { code, err } = await spt([...until, '--size', 'damping=0.5', '--size', 'eps=0', '--max-rounds', '7'])
  expect(code).toBe(1)
  expect(err).toMatch(/run\/max-rounds.*still holds after 7 rounds/)
})

test('an axis and a condition limit rounds together', async () => {
  const compiled = await halving('[t] as T while (r[] > 1)').build(cpu)
  const counts: unknown[] = []
  for (const n of [0, 4, 100]) {
    const prepared = await compiled.bind({ r, n })
    await prepared.run()
    counts.push((await prepared.get('count')).values![0])
  }
  expect(counts).toEqual([0, 4, 6])
})

test('rounds with too many launches for a list run one by one', async () => {
  const prepared = await (await halving('[t] as T').build(cpu)).bind({ r, n: 70_000 })
  await prepared.run()
  expect((await prepared.get('count')).values![0]).toBe(70_000)
  expect(() => prepared.commands).toThrow('run/rounds')
})

test('a plan has its rounds, and pages reject it', async () => {
  const plan = (await bound('pagerank').build(cpu)).plan as Plan
  expect(plan.rounds).toEqual([{ name: 'step', from: 1, to: 3, count: 'rounds' }])
  const inputs = { A, rounds: 7, damping: 0.4 }
  const loaded = await (await loadPlan(JSON.parse(JSON.stringify(plan)), cpu)).bind(inputs)
  await loaded.run()
  const expected = await run('pagerank', cpu, inputs, ['x'])
  expect(Array.from((await loaded.get('x')).values as Float32Array)).toEqual(expected.x)
  await expect(instantiate(plan)).rejects.toThrow('pagerank has rounds')
  const damaged = (rounds: object) => loadPlan({ ...plan, rounds: [rounds] } as Plan, cpu)
  await expect(damaged({ name: 'step', from: 2, to: 1, count: 'rounds' })).rejects.toThrow('rounds[0].to')
  await expect(damaged({ name: 'step', from: 1, to: 3 })).rejects.toThrow('rounds[0] of the plan is')
  await expect(damaged({ name: 'step', from: 1, to: 3, while: 'missing' })).rejects.toThrow('rounds[0].while')
})
