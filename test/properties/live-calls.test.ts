/** Calls of one prepared plan, each with zeros elsewhere: compiled once, allocated once, and no word from the device before the end. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { type Device, dense, devices, load } from '../../src/node.ts'
import { fakeDevice } from '../runtime/cuda-fake.ts'
import { runs } from '../support/cases.ts'
import { KERNELS, LIVE } from './live-gen.ts'
import { asWritten, property, SCHEDULES } from './live-properties.ts'

const TEXT = `${LIVE.panels.text}
${KERNELS.relu}
schedule product.live { A as panels(4, 2) live in place }
schedule product.fused { A as panels(4, 2) live in place fuse (mul.io, mul.go) -> g }`
const [M, N, K] = [9, 2, 40]
const B = dense(
  [K, N],
  Float32Array.from({ length: K * N }, (_, e) => (e % 7) - 3),
)

/** None, all, one panel alone, single elements, a column: −0 and what is below 0 hold nothing. */
const patternOf = (call: number): Float32Array =>
  Float32Array.from({ length: M * K }, (_, e) => {
    const [i, q] = [Math.floor(e / K), e % K]
    const isHeld = [
      false,
      true,
      Math.floor(i / 4) === call % 3,
      (e * 31 + call * 17) % 29 === 0,
      q === (call * 7) % K,
    ][call % 5]
    return isHeld ? ((e + call) % 5) + 1 : [-0, 0, -2, Number.NEGATIVE_INFINITY][(e + call) % 4]!
  })

const product = (X: Float32Array): readonly number[] =>
  Array.from({ length: M * N }, (_, e) => {
    let sum = 0
    for (let q = 0; q < K; q++)
      sum += Math.max(X[Math.floor(e / N) * K + q]!, 0) * Number(B.values![q * N + (e % N)])
    return sum + 0
  })

/** A device that counts the programs and buffers that are made on it. */
function counted(of: Device): { readonly device: Device; readonly made: { compile: number; alloc: number } } {
  const made = { compile: 0, alloc: 0 }
  const device = new Proxy(of, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        if (name === 'compile' || name === 'alloc') made[name]++
        return value.apply(target, args)
      }
    },
  })
  return { device, made }
}

test.each([false, true])(
  'one prepared plan accepts every pattern, on webgpu: %s',
  (gpu) =>
    property(gpu ? 2 : 8, async (s, choices) => {
      const kernel = parseProgram(s.text).kernel().schedule(choices.pick(SCHEDULES))
      const c = kernel.compilation
      // Nothing is told to the host: what is built is used where it is.
      expect(c.parallel().plan.buffers.filter((b) => b.name.includes('lost'))).toEqual([])
      const { device, made } = counted(await devices[gpu ? 'webgpu' : 'cpu']())
      const compiled = await kernel.build(device)
      const prepared = await compiled.bind(s.inputs.tensors!)
      await prepared.run()
      const first = { ...made }
      try {
        for (let run = 0; run < 10; run++) {
          const changed = { ...s.inputs.tensors![s.source]!, values: s.other() } as never
          await prepared.set(s.source, changed)
          await prepared.run()
          const { C } = asWritten(c, { tensors: { ...s.inputs.tensors, [s.source]: changed } }).expected
          const got = (await prepared.get('C')) as { values: ArrayLike<number> }
          expect(Array.from(got.values, (x) => x + 0)).toEqual(Array.from(C!.values, (x) => x + 0))
        }
        expect(made).toEqual(first)
        expect(Math.min(first.compile, first.alloc)).toBeGreaterThan(0)
      } finally {
        prepared.free()
        await device.dispose()
      }
    }),
  3_600_000,
)

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  const calls = { compile: 0, alloc: 0, download: 0 }
  beforeAll(async () => {
    device = await devices[kind]()
    for (const name of Object.keys(calls) as (keyof typeof calls)[]) {
      const own = device[name] as (...args: unknown[]) => unknown
      Object.assign(device, {
        [name]: (...args: unknown[]) => {
          calls[name]++
          return own.apply(device, args)
        },
      })
    }
  })
  afterAll(() => device.dispose())

  // Software compiles the nests for seconds.
  test.each(kind === 'cpu' ? ['live', 'fused'] : ['fused'])(
    'patterns that change with each call: %s',
    async (schedule) => {
      const compiled = await (await load(TEXT)).kernel().schedule(schedule).build(device)
      const prepared = await compiled.bind({ X: dense([M, K], patternOf(0)), B })
      await prepared.run()
      const first = { ...calls }
      for (let call = 0; call < (kind === 'cpu' ? 100 : runs(20)); call++) {
        const X = patternOf(call)
        await prepared.set('X', X)
        const before = { ...calls }
        await prepared.run()
        // Neither between building and computing nor behind it.
        expect(calls).toEqual(before)
        expect(Array.from((await prepared.get('C')).values!, (x) => Number(x) + 0)).toEqual(product(X))
      }
      expect([calls.compile, calls.alloc]).toEqual([first.compile, first.alloc])
      expect(prepared.commands.every((c) => c.kind === 'launch' || c.kind === 'clear')).toBe(true)
      prepared.free()
    },
  )
})

test.each(['live', 'fused'])(
  'on cuda a run has consecutive launches and a single wait: %s',
  async (schedule) => {
    const { device, driver } = fakeDevice()
    const kernel = (await load(TEXT)).kernel().schedule(schedule).parallel()
    const launched: string[] = []
    for (const { entries } of kernel.emit('cuda'))
      for (const { name } of entries)
        driver.kernels.set(name, () => {
          launched.push(name)
          return undefined
        })
    const compiled = await kernel.build(device)
    const prepared = await compiled.bind({ X: dense([M, K], patternOf(1)), B })
    driver.log.length = 0
    await prepared.run()
    const isLaunch = (call: string): boolean => call.startsWith('cuLaunchKernel')
    expect(launched.length).toBe(schedule === 'live' ? 4 : 5)
    // Between the first and the last nothing is asked, copied or waited for, and nothing is made at all.
    const { log } = driver
    const between = log.slice(log.findIndex(isLaunch), log.findLastIndex(isLaunch) + 1)
    expect(between.filter((call) => !isLaunch(call))).toEqual([])
    expect(log.filter((call) => /Memcpy|Alloc|Module/.test(call))).toEqual([])
    prepared.free()
  },
)
