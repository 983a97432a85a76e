/** `sparsetile/runtime` on plans written by hand: inputs, memory, errors. */
import { afterAll, describe, expect, test } from 'vitest'
import type { Expression, Plan, PlanBuffer, PlanFamily } from '../../src/plan/schema.ts'
import { type Functions, type InstantiateOptions, instantiate, PlanError } from '../../src/web/runtime.ts'
import { ownDevice } from './own-device.ts'

const gpu = await ownDevice()
afterAll(() => gpu.destroy())

const buffer = (name: string, role: PlanBuffer['role'], more: Partial<PlanBuffer> = {}): PlanBuffer => ({
  name,
  dtype: 'f32',
  role,
  length: 'n',
  storage: 'native',
  ...more,
})
const needs = {
  features: [],
  buffersPerLaunch: 4,
  threadsPerBlock: 64,
  block: [64, 1, 1],
  sharedBytes: 0,
} as const
const binding = { name: 'axpy', params: [], axes: [], buffers: [], reformats: [], visited: [] }

/** y = alpha x + y, for each device. */
const axpy = (device: 'cpu' | 'webgpu', more: Partial<Plan> = {}): Plan => ({
  schema: 'sparsetile-plan/1',
  kernel: 'axpy',
  schedule: null,
  device,
  index: 32,
  target: device === 'cpu' ? 'js' : 'wgsl',
  needs,
  sizes: [{ name: 'n', from: 'caller' }],
  scalars: [{ name: 'alpha', dtype: 'f32' }],
  buffers: [buffer('x', 'in'), buffer('y', 'inout')],
  modules: [
    {
      name: 'axpy',
      sha256: '',
      text:
        device === 'cpu'
          ? 'export function axpy_0(x, y, alpha, n) { for (let i = 0; i < n; i++) y[i] += alpha * x[i] }'
          : `struct Params { alpha: f32, n: i32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
@compute @workgroup_size(64) fn axpy_0(@builtin(workgroup_id) b: vec3<u32>, @builtin(num_workgroups) g: vec3<u32>, @builtin(local_invocation_id) t: vec3<u32>) {
  let i = i32((b.y * g.x + b.x) * 64 + t.x);
  if (i < p.n) { y[i] += p.alpha * x[i]; }
}`,
    },
  ],
  steps: [
    {
      launch: 'axpy_0',
      module: 0,
      grid: [['div', ['add', 'n', 63], 64], 1, 1],
      block: [64, 1, 1],
      reads: ['x', 'y'],
      writes: ['y'],
      args: [
        { buffer: 'x', dtype: 'f32', access: 'read' },
        { buffer: 'y', dtype: 'f32', access: 'read_write' },
        { scalar: 'alpha', dtype: 'f32' },
        { scalar: 'n', dtype: 'i32' },
      ],
    },
  ],
  checks: [{ most: ['mul', 64, 'n'], what: 'an index of y', launch: 'axpy_0', text: '64 * n', names: ['n'] }],
  binding,
  ...more,
})

const own = (device: 'cpu' | 'webgpu'): InstantiateOptions => (device === 'webgpu' ? { device: gpu } : {})
const codeOf = async (work: () => unknown): Promise<string> => {
  try {
    await work()
    return 'none'
  } catch (e) {
    if (e instanceof PlanError) return e.diagnostics[0].code
    throw e
  }
}

describe.each(['cpu', 'webgpu'] as const)('on %s', (device) => {
  const x = Float32Array.from({ length: 100 }, (_, k) => k)
  const y = new Float32Array(100).fill(1)

  test('a call infers sizes, and returns the outputs', async () => {
    const fn = await instantiate(axpy(device), own(device))
    const out = await fn({ x, y, alpha: 2 })
    expect([...out.y!]).toEqual([...x].map((v) => 2 * v + 1))
    expect([...y]).toEqual(new Array(100).fill(1))
  })

  test('a binding runs again, and takes new values before `set` returns', async () => {
    const fn = await instantiate(axpy(device), own(device))
    const b = await fn.bind({ x, y, alpha: 1 })
    const values = new Float32Array(100).fill(3)
    b.set('x', values)
    values.fill(9)
    await Promise.all([b.run(), b.run()])
    expect([...(await b.get('y'))]).toEqual(new Array(100).fill(7))
    expect(b.sizes).toEqual({ n: 100, alpha: 1 })
    b.free()
    b.free()
    expect(await codeOf(() => b.run())).toBe('device/freed-buffer')
    expect(await codeOf(() => b.get('y'))).toBe('device/freed-buffer')
  })

  test('no elements: nothing is launched', async () => {
    const fn = await instantiate(axpy(device), own(device))
    expect((await fn({ x: new Float32Array(0), y: new Float32Array(0), alpha: 1 })).y!.length).toBe(0)
    expect((await fn({ n: 0, alpha: 1 })).y!.length).toBe(0)
  })

  test('clears, and writes of targets that hold no element', async () => {
    const plan = axpy(device, {
      buffers: [
        buffer('x', 'in'),
        buffer('y', 'inout'),
        buffer('lost', 'local', { dtype: 'i32', length: 2 }),
      ],
      lostWrites: { buffer: 'lost', targets: ['y', 'z'] },
    })
    const fine = { ...plan, steps: [{ clear: 'lost' }, { clear: 'y' }, ...plan.steps] }
    const fn = await instantiate(fine, own(device))
    expect([...(await fn({ x, y, alpha: 1 })).y!]).toEqual([...x])
    const lost = {
      ...fine,
      buffers: fine.buffers.map((b) => (b.name === 'lost' ? { ...b, role: 'in' as const } : b)),
    }
    const wrong = await instantiate({ ...lost, steps: plan.steps }, own(device))
    const inputs = { x, y, alpha: 1, lost: Int32Array.of(0, 1) }
    await expect(wrong(inputs)).rejects.toThrow(
      'run/lost-writes: axpy writes elements of z that do not exist',
    )
  })

  test('a list beyond its capacity', async () => {
    const part = {
      label: '',
      instance: { text: 'csr' },
      buffer: 'x',
      axis: 'j',
      counts: 'counts',
      lists: 2,
      width: 4,
      extent: 9,
      slots: 1,
    }
    const fn = await instantiate(
      axpy(device, {
        buffers: [
          buffer('x', 'in'),
          buffer('y', 'inout'),
          buffer('counts', 'in', { dtype: 'i32', length: 2 }),
        ],
        runtimeFormats: [
          {
            tensor: 'A',
            args: [],
            parts: [{ ...part, capacity: { counts: 'counts', width: 4, capacity: ['div', 'n', 50] } }],
          },
        ],
      }),
      own(device),
    )
    await fn({ x, y, alpha: 1, counts: Int32Array.of(0, 8) })
    const tooLong = { x, y, alpha: 1, counts: Int32Array.of(3, 9) }
    await expect(fn(tooLong)).rejects.toThrow(
      'run/overflow: axpy has 3 positions of j (A) (expected: at most 2)',
    )
  })

  test.each([
    ['bind/missing-buffer', { y, alpha: 1 }],
    ['bind/missing-scalar', { x, y }],
    ['bind/missing-size', { alpha: 1 }],
    ['bind/values-length', { x, y: new Float32Array(99), alpha: 1 }],
    ['bind/values-length', { x, y, alpha: 1, n: 101 }],
    ['bind/value-type', { x: new Float64Array(100), y, alpha: 1 }],
    ['bind/value-type', { x: [1, 2] as unknown as Float32Array, y, alpha: 1 }],
    ['bind/value-type', { x: null as unknown as Float32Array, y, alpha: 1 }],
    ['bind/size-range', { x, y, alpha: 1, n: -1 }],
    ['bind/size-range', { x, y, alpha: 1, n: 2.5 }],
    ['bind/scalar-range', { x, y, alpha: x }],
    ['bind/scalar-range', { x, y, alpha: undefined as unknown as number }],
    ['bind/scalar-range', { x, y, alpha: '1' as unknown as number }],
    ['bind/scalar-range', { x, y, alpha: 1n as unknown as number }],
    ['bind/scalar-range', { x, y, alpha: true }],
    ['bind/scalar-range', { x, y, alpha: 1e300 }],
    ['bind/size-range', { x, y, alpha: 1, n: '100' as unknown as number }],
    ['bind/missing-size', null as unknown as Record<string, number>],
    ['bind/missing-size', undefined as unknown as Record<string, number>],
    ['none', { x, y, alpha: NaN }],
    ['none', { x, y, alpha: -Infinity }],
    ['bind/unknown-name', { x, y, alpha: 1, Y: y }],
    ['plan/overflow', { n: 2 ** 25, x, y, alpha: 1 }],
    ['plan/too-large', { n: 2 ** 31, alpha: 1 }],
  ])('%s', async (code, inputs) => {
    const fn = await instantiate(axpy(device), own(device))
    // Lengths are checked first; a plan without them reaches the ranges.
    const plan = code === 'plan/overflow' ? axpy(device, { buffers: [], steps: [] }) : null
    const sizes = Object.fromEntries(Object.entries(inputs ?? {}).filter(([name]) => !/[xy]/.test(name)))
    expect(
      await codeOf(async () => (plan ? (await instantiate(plan, own(device)))(sizes) : fn(inputs))),
    ).toBe(code)
  })

  test('requirements on sizes', async () => {
    const fact = { size: 'n', relation: 'multiple', by: 8 } as const
    const fn = await instantiate(axpy(device, { facts: [fact] }), own(device))
    const message = 'run/requirement: the schedule of axpy requires n % 8 == 0'
    await expect(fn({ x, y, alpha: 1 })).rejects.toThrow(message)
  })

  test('other schemas, devices and texts', async () => {
    const later = { ...axpy(device), schema: 'sparsetile-plan/2' } as unknown as Plan
    expect(await codeOf(() => instantiate(later, own(device)))).toBe('plan/version')
    expect(await codeOf(() => instantiate(null as unknown as Plan))).toBe('plan/version')
    expect(await codeOf(() => instantiate({ ...axpy(device), device: 'cuda' }))).toBe('plan/other-device')
    for (const change of [{ device: 'metal' }, { modules: undefined }, { steps: 5 }, { steps: [null] }])
      expect(
        await codeOf(() => instantiate({ ...axpy(device), ...change } as unknown as Plan, own(device))),
      ).toBe('device' in change ? 'plan/other-device' : 'plan/malformed')
    let length: Expression = 'n'
    for (let k = 0; k < 20_000; k++) length = ['neg', length]
    const deep = await instantiate(axpy(device, { buffers: [buffer('x', 'in', { length })] }), own(device))
    expect(await codeOf(() => deep({ x, y, alpha: 1 }))).toBe('plan/malformed')
    const [module] = axpy(device).modules
    const broken = axpy(device, { modules: [{ ...module!, text: 'nothing of the kind(' }] })
    expect(await codeOf(() => instantiate(broken, own(device)))).toBe('device/compile')
    const fn = await instantiate(axpy(device), own(device))
    const b = await fn.bind({ x, y, alpha: 1 })
    expect(await codeOf(() => b.get('Y'))).toBe('bind/unknown-name')
    expect(await codeOf(() => b.set('y', new Float32Array(3)))).toBe('bind/values-length')
    b.free()
  })

  test('a family selects its plan by sizes and statistics', async () => {
    const clears = axpy(device, { steps: [{ clear: 'y' }] })
    const family = {
      schema: 'sparsetile-plan/1',
      kernel: 'axpy',
      choose: {
        schedule: 'auto',
        binding: axpy(device).binding,
        statistics: { 'nnz(x)': { kind: 'nnz', of: 'x' } },
        branches: [
          {
            when: [
              ['gt', 'nnz(x)', 50],
              ['lt', 'n', 200],
            ],
            schedule: 'fast',
            plan: 1,
          },
          { when: [['lt', 'n', 200]], schedule: 'clear', plan: 0 },
        ],
      },
      plans: [axpy(device), clears],
    } as const
    const fn = await instantiate(family, own(device))
    expect((await fn({ x, y, alpha: 1, 'nnz(x)': 50 })).y![3]).toBe(4)
    expect((await fn({ x, y, alpha: 1, 'nnz(x)': 51 })).y![3]).toBe(0)
    expect(await codeOf(() => fn({ x, y, alpha: 1 }))).toBe('choose/unknown-statistic')
    expect(await codeOf(() => fn({ x, y, alpha: 1, 'nnz(x)': NaN }))).toBe('choose/unknown-statistic')
    expect(await codeOf(() => fn({ alpha: 1, 'nnz(x)': 60 }))).toBe('bind/missing-size')
    const long = new Float32Array(200)
    expect(await codeOf(() => fn({ x: long, y: long, alpha: 1, 'nnz(x)': 0 }))).toBe('choose/no-match')
  })
})

test('conditions of a family may have fractions', async () => {
  const mean = ['var', 'f64', 'mean(x)'] as const
  const when = (e: Expression): PlanFamily => ({
    schema: 'sparsetile-plan/1',
    kernel: 'axpy',
    choose: {
      schedule: 'auto',
      binding,
      statistics: { 'mean(x)': { kind: 'mean', of: 'x' } },
      branches: [{ when: [e], schedule: 'clear', plan: 0 }],
    },
    plans: [axpy('cpu', { steps: [{ clear: 'y' }] })],
  })
  const inputs = { x: Float32Array.of(1), y: Float32Array.of(1), alpha: 1, 'mean(x)': 2.5 }
  for (const [e, holds] of [
    [['gt', mean, ['const', 'f64', 2.4]], true],
    [['gt', mean, 'n'], true],
    [['eq', ['div', mean, 2], ['const', 'f64', 1.25]], true],
    [['eq', ['div', ['cast', 'i32', mean], 2], 1], true],
    [['eq', ['div', 5, ['cast', 'f64', 2]], ['const', 'f64', 2.5]], true],
    [['eq', ['div', 5, ['select', ['lt', mean, 0], 1, 2]], 2], true],
    [['not', ['and', ['lt', mean, 3], 'n']], false],
  ] as const) {
    const fn = await instantiate(when(e))
    expect(await codeOf(() => fn(inputs)), JSON.stringify(e)).toBe(holds ? 'none' : 'choose/no-match')
  }
  const wrong = await instantiate(when(['round', mean]))
  expect(await codeOf(() => wrong(inputs))).toBe('plan/malformed')
})

test('options of another device, unknown options, and what is no device', async () => {
  const functions = { axpy_0: () => {} }
  const device = {} as GPUDevice
  for (const [kind, options] of [
    ['cpu', { device }],
    ['cpu', { signal: AbortSignal.abort() } as object],
    ['webgpu', { functions, device: gpu }],
    ['webgpu', { devise: gpu } as object],
  ] as const)
    expect(await codeOf(() => instantiate(axpy(kind), options))).toBe('api/unknown-option')
  expect(await codeOf(() => instantiate(axpy('cpu'), { functions, device: undefined }))).toBe('none')
  expect(await codeOf(() => instantiate(axpy('webgpu'), { device }))).toBe('api/argument')
  const wrong = { axpy_0: 5 } as unknown as Functions
  expect(await codeOf(() => instantiate(axpy('cpu'), { functions: wrong }))).toBe('device/unknown-entry')
})

test('functions instead of texts, which a page may forbid to import', async () => {
  const functions = { axpy_0: (_x: unknown, y: unknown) => (y as Float32Array).fill(5) }
  const [module] = axpy('cpu').modules
  const plan = axpy('cpu', { modules: [{ ...module!, text: '' }] })
  const fn = await instantiate(plan, { functions: functions as never })
  expect([...(await fn({ x: Float32Array.of(1), y: Float32Array.of(1), alpha: 1 })).y!]).toEqual([5])
  expect(await codeOf(() => instantiate(plan, { functions: {} }))).toBe('device/unknown-entry')
})

describe('on webgpu', () => {
  const STORAGE = 0x80 | 0x4 | 0x8

  test('buffers of the caller, and its encoder', async () => {
    const y = gpu.createBuffer({ size: 400, usage: STORAGE })
    gpu.queue.writeBuffer(y, 0, new Float32Array(100).fill(1))
    const fn = await instantiate(axpy('webgpu'), { device: gpu })
    const b = await fn.bind({ x: new Float32Array(100).fill(2), y, alpha: 3, n: 100 })
    const encoder = gpu.createCommandEncoder()
    b.record(encoder)
    b.record(encoder)
    gpu.queue.submit([encoder.finish()])
    expect(b.buffer('y')).toBe(y)
    expect([...(await b.get('y'))]).toEqual(new Array(100).fill(13))
    expect(await codeOf(() => b.set('y', new Float32Array(100)))).toBe('run/resident')
    b.free()
    const again = await fn.bind({ x: new Float32Array(100), y, alpha: 3 })
    expect((await again.get('y'))[99]).toBe(13)
    again.free()
    expect(await codeOf(() => fn.bind({ x: new Float32Array(101), y, alpha: 3 }))).toBe('bind/values-length')
  })

  test('grids above the limit are folded', async () => {
    const n = 64 * 65_535 + 65
    const fn = await instantiate(axpy('webgpu'), { device: gpu })
    const { y } = await fn({ x: new Float32Array(n).fill(1), y: new Float32Array(n), alpha: 2 })
    expect([y![0], y![n - 1], y!.every((v) => v === 2)]).toEqual([2, 2, true])
  })

  test('words, packed arrays and bases', async () => {
    const types = ['f16', 'bf16', 'i8', 'u8', 'bool'] as const
    for (const dtype of types) {
      const word = dtype === 'f16' || dtype === 'bf16' ? 'f32' : dtype === 'i8' ? 'i32' : 'u32'
      const plan: Plan = {
        ...axpy('webgpu'),
        scalars: [],
        sizes: [
          { name: 'n', from: 'caller' },
          { name: 'base_x', from: 'packed' },
          { name: 'base_w', from: 'packed' },
        ],
        buffers: [
          buffer('arena', 'in', { dtype, storage: 'word', length: ['add', 4, ['add', 'n', 'n']] }),
          buffer('y', 'out', { dtype, storage: 'word' }),
        ],
        packed: [
          { ...buffer('x', 'in', { dtype, storage: 'word' }), in: 'arena', base: 'base_x', at: 0 },
          {
            ...buffer('w', 'in', { dtype, storage: 'word' }),
            in: 'arena',
            base: 'base_w',
            at: ['add', 'n', 4],
          },
        ],
        modules: [
          {
            name: 'copy',
            sha256: '',
            text: `struct Params { base_w: i32, n: i32 }
@group(0) @binding(0) var<storage, read> x: array<${word}>;
@group(0) @binding(1) var<storage, read_write> y: array<${word}>;
@group(0) @binding(2) var<uniform> p: Params;
@compute @workgroup_size(64) fn copy(@builtin(global_invocation_id) t: vec3<u32>) {
  if (i32(t.x) < p.n) { y[t.x] = x[i32(t.x) + p.base_w]; }
}`,
          },
        ],
        steps: [
          {
            launch: 'copy',
            module: 0,
            grid: [1, 1, 1],
            block: [64, 1, 1],
            reads: ['arena'],
            writes: ['y'],
            args: [
              { buffer: 'arena', dtype, access: 'read' },
              { buffer: 'y', dtype, access: 'read_write' },
              { scalar: 'base_w', dtype: 'i32' },
              { scalar: 'n', dtype: 'i32' },
            ],
          },
        ],
      }
      const fn = await instantiate(JSON.parse(JSON.stringify(plan)), { device: gpu })
      const values = {
        f16: [0x3c00, 0x0001, 0xfbff],
        bf16: [0x3f80, 0x8001, 0x7f7f],
        i8: [-128, 127, -1],
        u8: [0, 255, 7],
        bool: [0, 1, 1],
      }[dtype]
      const array =
        dtype === 'i8' ? Int8Array : dtype === 'f16' || dtype === 'bf16' ? Uint16Array : Uint8Array
      const b = await fn.bind({ x: new array(3).fill(1), w: array.from(values) })
      await b.run()
      expect([...(await b.get('y'))], dtype).toEqual(values)
      expect([...(await b.get('w'))], dtype).toEqual(values)
      expect([...(await b.get('x'))], dtype).toEqual([1, 1, 1])
      b.set('x', new array(3))
      expect([...(await b.get('w')), ...(await b.get('x'))], dtype).toEqual([...values, 0, 0, 0])
      expect(await codeOf(() => b.get('arena')), dtype).toBe('bind/unknown-name')
      b.free()
    }
  })

  test('features and limits of the device', async () => {
    const features = { ...axpy('webgpu'), needs: { ...needs, features: ['no-such-feature'] } }
    expect(await codeOf(() => instantiate(features, { device: gpu }))).toBe('plan/missing-feature')
    const limits = { ...axpy('webgpu'), needs: { ...needs, sharedBytes: 2 ** 30 } }
    expect(await codeOf(() => instantiate(limits, { device: gpu }))).toBe('plan/limit')
    const most = gpu.limits.maxStorageBufferBindingSize / 4
    const fn = await instantiate(axpy('webgpu', { checks: [] }), { device: gpu })
    if (most < 2 ** 31 - 1) {
      const y = gpu.createBuffer({ size: 16, usage: STORAGE })
      expect(await codeOf(() => fn.bind({ x: y, y, n: most + 1, alpha: 1 }))).toBe('device/buffer-too-large')
    }
    expect(await codeOf(() => instantiate(axpy('webgpu')))).toBe('device/absent')
  })

  test('a lost device is reported, and errors of WebGPU are', async () => {
    const device = await ownDevice()
    const fn = await instantiate(axpy('webgpu'), { device })
    const b = await fn.bind({ x: new Float32Array(8), y: new Float32Array(8), alpha: 1 })
    const uniform = device.createBuffer({ size: 400, usage: 0x40 })
    expect(await codeOf(() => fn.bind({ x: uniform, y: new Float32Array(100), alpha: 1 }))).toBe(
      'device/validation',
    )
    device.destroy()
    await device.lost
    expect(await codeOf(() => b.run())).toBe('device/lost')
    expect(await codeOf(() => b.get('y'))).toBe('device/lost')
    expect(await codeOf(() => instantiate(axpy('webgpu'), { device }))).toBe('device/lost')
    b.free()
  })

  test('a plan of the CPU has no device memory', async () => {
    const fn = await instantiate(axpy('cpu'))
    const b = await fn.bind({ n: 1, x: Float32Array.of(1), y: Float32Array.of(1), alpha: 1 })
    expect(await codeOf(() => b.buffer('y'))).toBe('plan/other-device')
  })
})
