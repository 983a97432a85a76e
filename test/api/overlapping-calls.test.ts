/** Calls on one prepared kernel that nobody awaits in between. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Binding, type Built, type Device, devices, load } from '../../src/node.ts'
import { Turns } from '../../src/run/execution/call-queue.ts'
import { complaint } from './support.ts'

describe('call queues', () => {
  test('each call begins after the previous one has ended, the first at once', async () => {
    const turns = new Turns()
    const log: string[] = []
    const work = (name: string) => async () => {
      log.push(`${name} begins`)
      await new Promise((done) => setTimeout(done, 1))
      log.push(`${name} ends`)
      return name
    }
    const all = ['a', 'b', 'c'].map((name) => turns.take(work(name)))
    expect(log).toEqual(['a begins'])
    expect(await Promise.all(all)).toEqual(['a', 'b', 'c'])
    expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
    const later = turns.take(work('d'))
    expect(log.at(-1)).toBe('d begins')
    await later
  })

  test('a failure is reported to its caller only', async () => {
    const turns = new Turns()
    const failing = (message: string) => async (): Promise<void> => {
      throw new Error(message)
    }
    const [a, b, c] = [turns.take(failing('first')), turns.take(async () => 1), turns.take(failing('third'))]
    await expect(a).rejects.toThrow('first')
    expect(await b).toBe(1)
    await expect(c).rejects.toThrow('third')
    expect(await turns.take(async () => 2)).toBe(2)
  })

  test('methods of an object run one at a time; nested calls do not wait', async () => {
    class Counter {
      #n = 0
      get n(): number {
        return this.#n
      }
      async add(by: number): Promise<number> {
        const before = this.#n
        await null
        this.#n = before + by
        return this.#n
      }
      async twice(by: number): Promise<number> {
        await this.add(by)
        return this.add(by)
      }
      clear(): void {
        this.#n = 0
      }
    }
    const counter = new Turns().of(new Counter(), ['clear'])
    expect(await Promise.all([counter.twice(1), counter.add(10), counter.twice(100)])).toEqual([2, 12, 212])
    expect(counter).toBeInstanceOf(Counter)
    counter.clear()
    expect(counter.n).toBe(0)
  })
})

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  let compiled: Built
  beforeAll(async () => {
    device = await devices[kind]()
    const program = await load(`kernel k(n: size) {
  axis i = dense_fixed(n)
  buffer x: f32[i] in
  buffer y: f32[i] inout
  iterate s [i] as S { y[i] = y[i] + x[i] }
}`)
    compiled = await program.kernel().build(device)
  })
  afterAll(() => device.dispose())

  const prepare = (): Promise<Binding> =>
    compiled.bind({ x: Float32Array.of(1, 10), y: Float32Array.of(100, 200) })
  const y = async (p: Binding): Promise<number[]> => [...(await p.get('y')).values!]

  test.each<[string, (p: Binding) => Promise<unknown>[], number[]]>([
    ['write, run', (p) => [p.set('x', [0, 0]), p.run()], [100, 200]],
    ['run, write, run', (p) => [p.run(), p.set('x', [0, 0]), p.run()], [101, 210]],
    ['run, verify, run', (p) => [p.run(), p.verify(), p.run()], [102, 220]],
    ['verify, write, run', (p) => [p.verify(), p.set('x', [2, 2]), p.run()], [102, 202]],
    ['verify, write y, verify', (p) => [p.verify(), p.set('y', [7, 7]), p.verify()], [7, 7]],
    ['verify, time', (p) => [p.verify(), p.time(2)], [102, 220]],
    ['explain, run', (p) => [p.explain(), p.run()], [101, 210]],
    ['verify, outputs, run', (p) => [p.verify(), p.outputs(), p.run()], [101, 210]],
    ['graph, run', (p) => [p.graph().then((g) => g.free()), p.run()], [101, 210]],
    ['run, reset, run', (p) => [p.run(), p.executable.reset(), p.run()], [101, 210]],
    [
      'measure, write, run',
      (p) => [p.measure({ repeats: 2, warmups: 1 }), p.set('y', [0, 0]), p.run()],
      [1, 10],
    ],
    [
      'verify, executable.write, run',
      (p) => [p.verify(), p.executable.write('y', Float32Array.of(3, 3)), p.run()],
      [4, 13],
    ],
  ])('%s', async (_, calls, wanted) => {
    const prepared = await prepare()
    await Promise.all(calls(prepared))
    expect(await y(prepared)).toEqual(wanted)
    prepared.free()
  })

  test('reads see exactly the calls before them', async () => {
    const p = await prepare()
    const [, first, , second, , outputs] = await Promise.all([
      p.run(),
      y(p),
      p.run(),
      p.executable.values('y'),
      p.run(),
      p.outputs(),
    ])
    expect([first, [...second], [...outputs.y!.values!]]).toEqual([
      [101, 210],
      [102, 220],
      [103, 230],
    ])
    p.free()
  })

  test('verifications do not disturb each other', async () => {
    const p = await prepare()
    const found = await Promise.all([p.verify(), p.verify(), p.set('x', [5, 5]), p.verify()])
    expect(found.map((v) => v?.ok)).toEqual([true, true, undefined, true])
    p.free()
  })

  test('a failed call does not affect later calls', async () => {
    const p = await prepare()
    const [wrong, , late] = await Promise.all([
      complaint(() => p.set('x', [1])),
      p.run(),
      complaint(() => p.get('z')),
      p.run(),
    ])
    expect(wrong).toContain('bind/values-length')
    expect(late).toContain('api/unknown-buffer')
    expect(await y(p)).toEqual([102, 220])
    p.free()
  })

  test('calls that have not begun when memory is freed are rejected', async () => {
    const p = await prepare()
    const first = p.run()
    const calls = [p.get('y'), p.set('x', [1, 1]), p.run()].map((call) => complaint(() => call))
    p.free()
    await first.catch(() => {})
    for (const said of await Promise.all(calls)) expect(said).toContain('device/freed-buffer')
  })
})
