/** f16 in WGSL: words where a device lacks it, f16 where it has it; the bits that conversions round to. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emit } from '../../src/backends/targets/index.ts'
import { helperCall } from '../../src/backends/targets/wgsl/helpers.ts'
import { fromF16, toF16 } from '../../src/ir/values/half.ts'
import { type Device, devices, type Kernel, load } from '../../src/node.ts'
import { createWebGpuDevice } from '../../src/runtime/webgpu/open.ts'
import { isWord, storedBytes } from '../../src/runtime/webgpu/widened-elements.ts'
import { wgsl } from '../support/wgsl-texts.ts'
import { nullGpu, wgslErrors } from '../support/wgsl-valid.ts'

const TEXT = `
kernel copy(m: size) {
  axis i = dense_fixed(m)
  axis k = dense_fixed(8)
  buffer A: f16[i, k] in
  buffer B: bf16[i, k] in
  buffer C: f16[i, k] out
  iterate body [i, k] as SS { C[i, k] = f16(f32(A[i, k]) + f32(B[i, k])) }
}
kernel moved(m: size) {
  axis i = dense_fixed(m)
  axis k = dense_fixed(8)
  buffer A: f16[i, k] in
  buffer B: f16[i, k] out
  buffer C: f16[i, k] out
  iterate same [i, k] as SS { B[i, k] = A[i, k] }
  iterate twice [i, k] as SS { C[i, k] = A[i, k] * 2 }
}
kernel columns(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f16[i, j] in
  buffer y: f16[c] out accumulate f16
  iterate body [i, j] as RR { y[j] += A[i, j] }
}
kernel tile(m: size) {
  axis i = dense_fixed(m)
  axis c = dense_fixed(64)
  axis o = dense_fixed(16)
  buffer x: f16[i, c] in
  buffer w: f16[c, o] in
  buffer y: f16[i, o] out
  iterate body [i, o, c] as SSR { y[i, o] += x[i, c] * w[c, o] }
}`
const SCHEDULES: Readonly<Record<string, (k: Kernel) => Kernel>> = {
  copy: (k) => k.unroll('k').bind({ i: 'block.x' }),
  moved: (k) => k.cacheRead('A', 'same.i', 'register').bind({ 'same.i': 'block.x', 'twice.i': 'block.x' }),
  columns: (k) => k.atomic('y').bind({ i: 'block.x' }),
  tile: (k) => k.bind({ i: 'block.x', o: 'thread.x' }).cacheRead('x', 'i', 'shared'),
}
const texts = async (name: string, f16: boolean): Promise<readonly string[]> => {
  const { plan } = SCHEDULES[name]!((await load(TEXT)).kernel(name)).compilation
  return emit(plan, 'wgsl', { f16 }).map((m) => m.text)
}
const text = async (name: string, f16: boolean): Promise<string> => (await texts(name, f16)).join('\n')

describe.each(Object.keys(SCHEDULES))('%s', (name) => {
  test('is valid with f16 and without', async () => {
    for (const words of await texts(name, false)) {
      expect(await wgslErrors(words)).toEqual([])
      expect(words).not.toMatch(/\bf16\b/)
    }
    for (const halves of await texts(name, true)) {
      expect(await wgslErrors(halves)).toEqual([])
      expect(halves.startsWith('enable f16;\n')).toBe(true)
    }
  })
})

test('arrays hold f16, four at a time where neighbours are', async () => {
  expect(await text('tile', true)).toContain('var<storage, read> w: array<f16>;')
  expect(await text('tile', true)).toContain('var<workgroup> x_shared: array<f16, 64>;')
  const copy = await text('copy', true)
  expect(copy).toContain('var<storage, read> A: array<vec4<f16>>;')
  expect(copy).toContain('var<storage, read> B: array<vec4<f32>>;')
  expect(copy).toMatch(/C\[.*\] = vec4<f16>\(to_f16\(/)
})

test('launches on arrays of any length are valid', async () => {
  const device = await createWebGpuDevice(nullGpu())
  expect(device.features.has('f16')).toBe(true)
  for (const name of Object.keys(SCHEDULES)) {
    const compiled = await SCHEDULES[name]!((await load(TEXT)).kernel(name)).build(device)
    expect(compiled.program.plan.texts[0]!.text).toContain('enable f16;')
    for (const m of [1, 3, 8]) {
      const params = name === 'columns' ? { m, n: 5 } : { m }
      const prepared = await compiled.bind(params, { seed: 1 })
      await prepared.run()
      expect((await prepared.get(name === 'copy' || name === 'moved' ? 'C' : 'y')).dtype).toBe('f16')
      prepared.free()
    }
    compiled.release()
  }
  await device.dispose()
})

test('f16 values are stored without conversion', async () => {
  const moved = await text('moved', true)
  expect(moved).toMatch(/ B\[.*\] = f16\(A_register/)
  expect(moved).toMatch(/ C\[.*\] = to_f16\(/)
})

test('sums in registers are f32, and are rounded when stored', async () => {
  const k = (await load(TEXT)).kernel('tile').cacheWrite('y', 'o', 'register')
  const [stored] = emit(k.compilation.plan, 'wgsl', { f16: true }).map((m) => m.text)
  expect(stored).toMatch(/ y\[.*\] = to_f16\(/)
})

test('atomic updates replace one half of a word', async () => {
  const columns = await text('columns', true)
  expect(columns).toContain('var<storage, read_write> y: array<atomic<u32>>;')
  expect(columns).toMatch(/y\[\(.*\) >> 1u\], old_word, with_half\(old_word, /)
})

test('types stored as words depend on the device', () => {
  const device = (...features: string[]) => ({ storage: 'words' as const, features: new Set(features) })
  expect(isWord(device(), 'f16')).toBe(true)
  expect(isWord(device('shader-f16'), 'f16')).toBe(false)
  expect(isWord(device('shader-f16'), 'bf16')).toBe(true)
  expect(storedBytes(device('shader-f16'), 'f16')).toBe(2)
  expect(storedBytes(device(), 'f16')).toBe(4)
  expect(storedBytes({ features: new Set() }, 'i8')).toBe(1)
})

describe('half_bits', () => {
  let device: Device
  beforeAll(async () => {
    device = await devices.webgpu()
  })
  afterAll(() => device.dispose())

  /** Every f16, the f32 just below, above and between each two, and what has no f16. */
  function samples(): Float32Array {
    const out: number[] = [
      Number.NaN,
      Infinity,
      -Infinity,
      65519,
      65520,
      1e10,
      -1e10,
      2 ** -25,
      2 ** -24,
      -(2 ** -26),
    ]
    const near = new Float32Array(1)
    const bits = new Int32Array(near.buffer)
    for (let h = 0; h < 0x7c00; h++) {
      const [x, above] = [fromF16(h), fromF16(h + 1)]
      if (x < 2 ** -14 && h % 37 !== 0) continue
      for (const y of [x, Number.isFinite(above) ? (x + above) / 2 : x])
        for (const d of [-1, 0, 1]) {
          near[0] = y
          // SwiftShader takes f32 that are not normal for zero.
          if (y !== 0) bits[0] = bits[0]! + d
          out.push(near[0]!, -near[0]!)
        }
    }
    return Float32Array.from(out)
  }

  test('is the nearest f16, ties to even', async () => {
    const values = samples()
    const helpers = new Map<string, string>()
    helperCall(helpers, 'half_bits', 'x')
    const code = `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
${[...helpers.values()].join('\n')}
@compute @workgroup_size(64) fn bits(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = half_bits(x[id.x]); }
}`
    const args = [
      { kind: 'buffer', name: 'x', dtype: 'f32', access: 'read' },
      { kind: 'buffer', name: 'y', dtype: 'u32', access: 'read_write' },
    ] as const
    const module = await device.compile(wgsl('bits', code, { bits: args }))
    const [x, y] = ['x', 'y'].map((n) => device.alloc(4 * values.length, n))
    await device.upload(x!, values)
    const groups = Math.ceil(values.length / 64)
    const grid = [Math.min(groups, 60000), Math.ceil(groups / 60000), 1] as const
    await device.run([{ kind: 'launch', module, entry: 'bits', grid, args: [x!, y!] }])
    const got = new Uint32Array(await device.download(y!))
    const wrong = Array.from(values, (v, k) => [v, got[k], toF16(v)]).filter(
      ([v, a, b]) => a !== b && !(Number.isNaN(v) && (a! & 0x7c00) === 0x7c00 && (a! & 0x3ff) !== 0),
    )
    expect(wrong.slice(0, 5)).toEqual([])
    for (const b of [x!, y!]) b.free()
    module.release()
  })
})
