/** What a device cannot hold or launch: folded where that helps, else refused by name before anything runs. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { emit } from '../../src/backends/targets/index.ts'
import { int, lt, variable } from '../../src/ir/expressions/expr.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import type { Body } from '../../src/ir/statements/tree.ts'
import { type Diagnostic, dense, devices, load, SptError } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'

let device: Device
beforeAll(async () => {
  device = await devices.webgpu()
})
afterAll(() => device.dispose())

async function refusal(run: () => Promise<unknown>): Promise<Diagnostic> {
  const e: unknown = await run().catch((x: unknown) => x)
  expect(e).toBeInstanceOf(SptError)
  return (e as SptError).diagnostics[0]!
}

const ROWS = `kernel rows(m: size, n: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(n)
  buffer x: f32[i, f] in
  buffer y: f32[i, f] out
  iterate body [i, f] as SS { y[i, f] = x[i, f] + i }
}`

describe('grids', () => {
  test('more blocks than one dimension of the device holds', async () => {
    const m = device.limits.maxGridDim[0] + 4321
    const x = Float32Array.from({ length: m }, (_, k) => k % 1000)
    const compiled = await (await load(ROWS)).kernel().bind({ i: 'block.x' }).build(device)
    const { y } = await compiled({ x: dense([m, 1], x) })
    expect(y!.values).toEqual(x.map((v, k) => v + k))
  })

  test('three logical dimensions, of which one is longer than the device allows', async () => {
    const source = `kernel box(a: size, b: size, c: size) {
  axis i = dense_fixed(a)
  axis j = dense_fixed(b)
  axis k = dense_fixed(c)
  buffer y: i32[i, j, k] out
  iterate body [i, j, k] as SSS { y[i, j, k] = (i * 1000 + j) * 10 + k }
}`
    const kernel = (await load(source)).kernel()
    for (const [a, b, c] of [
      [3, 5, 7],
      [70_001, 2, 3],
      [2, 70_001, 3],
      [2, 3, 70_001],
      [1, 9, 1],
    ] as const)
      for (const axes of [
        { i: 'block.x', j: 'block.y', k: 'block.z' },
        { i: 'block.z', j: 'block.x', k: 'block.y' },
      ] as const) {
        const compiled = await kernel.bind(axes).build(device)
        const { y } = await compiled({ a, b, c })
        const got = y!.values!
        let wrong = 0
        for (let p = 0; p < got.length; p++) {
          const [i, j, k] = [Math.floor(p / (b * c)), Math.floor(p / c) % b, p % c]
          if (got[p] !== (i * 1000 + j) * 10 + k) wrong++
        }
        expect({ sizes: [a, b, c], axes, wrong }).toEqual({ sizes: [a, b, c], axes, wrong: 0 })
        compiled.release()
      }
  })

  test('too many blocks are rejected with the launch and the number', async () => {
    const source = `kernel wide(a: size, b: size) {
  axis i = dense_fixed(a)
  axis j = dense_fixed(b)
  buffer y: f32[] out
  iterate body [i, j] as RR { y[] += 1 }
}`
    const kernel = (await load(source)).kernel().atomic('y').bind({ i: 'block.x', j: 'block.y' })
    const compiled = await kernel.build(device)
    const d = await refusal(() => compiled.bind({ a: 2 ** 20, b: 2 ** 12 }))
    expect(d.code).toBe('plan/grid-too-large')
    expect(d.message).toContain(`wide_1 needs ${2 ** 32} blocks`)
  })
})

describe('memory', () => {
  test('a buffer over the limit of a binding is rejected by name, before anything is uploaded', async () => {
    const source = `kernel ones(n: size) {
  axis i = dense_fixed(n)
  buffer giant: f32[i] out
  iterate body [i] as S { giant[i] = 1 }
}`
    const compiled = await (await load(source)).kernel().build(device)
    const n = Math.floor(device.limits.maxBindingBytes / 4) + 1
    const d = await refusal(() => compiled.bind({ n }))
    expect(d.code).toBe('device/buffer-too-large')
    expect(d.message).toContain('giant')
    expect((await refusal(() => compiled.bind({ n: 2 ** 31 - 1 }))).code).toBe('device/buffer-too-large')
  })

  test('more elements than 32-bit addresses reach need wide indices', async () => {
    const source =
      'kernel square(n: size) { axis i = dense_fixed(n) axis j = dense_fixed(n) buffer y: u8[i, j] out iterate b [i, j] as SS { y[i, j] = 1 } }'
    const cpu = await (await load(source)).kernel().build(await devices.cpu())
    expect(cpu.estimateBytes({ n: 46_341 })).toBe(2_147_488_281)
    const large = await refusal(async () => cpu.estimateBytes({ n: 100_000 }))
    expect(large.code).toBe('device/buffer-too-large')
  })

  test('a temporary with too many elements runs in registers, and is rejected elsewhere', async () => {
    const source = `kernel row_sums(n: size, m: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(m)
  axis q = dense_fixed(m)
  buffer X: f32[i] in
  buffer T: f32[i, j, q] local
  buffer Y: f32[i] out
  iterate put [i, j, q] as SSS { T[i, j, q] = X[i] }
  iterate add [i, j, q] as SRR { Y[i] += T[i, j, q] }
}
schedule row_sums.registers { compute_at put at add.q cache_write T at add.q in register }`
    const kernel = (await load(source)).kernel()
    const cpu = await devices.cpu()
    const inputs = { tensors: { X: dense([1], Float32Array.of(1)) }, params: { m: 46_341 } }
    await (await kernel.schedule('registers').build(cpu)).bind(...flatInputs(inputs))
    const whole = await refusal(async () => (await kernel.build(cpu)).bind(...flatInputs(inputs)))
    expect(whole.code).toBe('device/buffer-too-large')
    expect(whole.message).toContain('T needs 8589953124 bytes')
  })

  const cached = (width: number): string => `kernel reuse(m: size) {
  axis i = dense_fixed(m)
  axis c = dense_fixed(${width})
  axis o = dense_fixed(4)
  buffer x: f32[i, c] in
  buffer w: f32[c, o] in
  buffer y: f32[i, o] out
  iterate body [i, o, c] as SSR { y[i, o] += x[i, c] * w[c, o] }
}`

  test('shared memory over the limit is rejected when compiling, with the names and the bytes', async () => {
    const words = device.limits.maxSharedBytes / 4
    const schedule = async (width: number) =>
      (await load(cached(width)))
        .kernel()
        .bind({ i: 'block.x', o: 'thread.x' })
        .cacheRead('x', 'i', 'shared', 'tile')
    const d = await refusal(async () => (await schedule(words + 1)).build(device))
    expect(d.code).toBe('plan/shared-too-large')
    expect(d.message).toContain(
      `reuse_0 needs ${4 * words + 4} bytes of shared memory (tile ${4 * words + 4})`,
    )
    const prepared = await (await (await schedule(words / 16)).build(device)).bind({ m: 2 }, { seed: 1 })
    expect((await prepared.verify()).ok).toBe(true)
    prepared.free()
  })

  test('blocks of too many threads are rejected when compiling', async () => {
    const threads = device.limits.maxThreadsPerBlock + 1
    const kernel = (await load(ROWS))
      .kernel()
      .split('i', threads, ['io', 'ii'])
      .bind({ io: 'block.x', ii: 'thread.x' })
    const d = await refusal(() => kernel.build(device))
    expect(d.code).toBe('plan/block-too-large')
    expect(d.message).toContain(`${threads} × 1 × 1`)
    expect(d.expected).toContain(`at most ${device.limits.maxThreadsPerBlock} threads in total`)
  })

  test('the exceeded limit of a block is named', async () => {
    const most = device.limits.maxBlockDim[2]
    const threads = most + 1
    const kernel = (await load(ROWS))
      .kernel()
      .split('i', threads, ['io', 'ii'])
      .bind({ io: 'block.x', ii: 'thread.z' })
    const d = await refusal(() => kernel.build(device))
    expect(d).toMatchObject({ code: 'plan/block-too-large', expected: `at most ${most} threads in z` })
    expect(d.hint).toContain('thread.z')
  })

  test('loops nested deeper than WGSL allows are rejected at their location', async () => {
    let k = (await load(ROWS)).kernel()
    for (let n = 0; n < 31; n++) k = k.split(n === 0 ? 'i' : `o${n - 1}`, 2, [`o${n}`, `p${n}`])
    const d = await refusal(() => k.build(device, { auto: false }))
    expect(d).toMatchObject({ code: 'emit/too-deep', span: { source: 'text.spt' } })
    expect(await refusal(async () => k.emit('wgsl'))).toEqual(d)
    const fits = k.undo()
    expect(fits.emit('wgsl').length).toBe(1)
    ;(await fits.build(device, { auto: false })).release()
  })

  test('loops and conditions up to the limit of WGSL are printed', async () => {
    const { plan } = (await load(ROWS)).kernel().compilation
    const within = (conditions: number) => {
      const around = (body: Body): Body => [when(lt(int(0), variable('m')), body)]
      const steps = plan.steps.map((s) =>
        s.kind === 'launch'
          ? {
              ...s,
              body: Array(conditions)
                .fill(around)
                .reduce((b, f) => f(b), s.body),
            }
          : s,
      )
      return () => emit({ ...plan, steps }, 'wgsl')
    }
    // In two loops.
    expect(within(60)().length).toBe(1)
    expect(within(61)).toThrow('emit/too-deep')
  })

  test('f64 is rejected with an alternative', async () => {
    const source =
      'kernel wide(n: size) { axis i = dense_fixed(n) buffer precise: f64[i] out iterate b [i] as S { precise[i] = 1 } }'
    const d = await refusal(async () => (await load(source)).kernel().build(device))
    expect(d).toMatchObject({ code: 'emit/no-f64', message: expect.stringContaining('precise is f64') })
    const scalar =
      'kernel scaled(n: size, alpha: f64) { axis i = dense_fixed(n) buffer y: f32[i] out iterate b [i] as S { y[i] = f32(alpha) } }'
    expect((await refusal(async () => (await load(scalar)).kernel().build(device))).message).toContain(
      'alpha is f64',
    )
    const inside =
      'kernel cast(n: size) { axis i = dense_fixed(n) buffer y: f32[i] out iterate b [i] as S { y[i] = f32(f64(i) / 3) } }'
    expect((await refusal(async () => (await load(inside)).kernel().build(device))).code).toBe('emit/no-f64')
  })
})

test('empty outputs, empty inputs and empty grids', async () => {
  for (const d of [device, await devices.cpu()]) {
    const compiled = await (await load(ROWS)).kernel().build(d)
    for (const [m, n] of [
      [0, 3],
      [3, 0],
      [0, 0],
    ] as const) {
      const { y } = await compiled({ x: dense([m, n], []) })
      expect(y).toMatchObject({ shape: [m, n], values: new Float32Array(0) })
    }
    compiled.release()
  }
})
