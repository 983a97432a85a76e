import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu, findAdapter, reportWebGpu } from '../../src/runtime/webgpu/node.ts'
import { createWebGpuDevice } from '../../src/runtime/webgpu/open.ts'
import { Session } from '../../src/runtime/webgpu/session.ts'
import { ARGS, codeOf, deviceSuite, failure, iota } from '../support/device-suite.ts'
import { WGSL_TEXTS, wgsl } from '../support/wgsl-texts.ts'
import { workSuite } from './work-suite.ts'

deviceSuite('webgpu', () => createNodeWebGpu(), WGSL_TEXTS)
workSuite('webgpu', () => createNodeWebGpu(), WGSL_TEXTS)

/** A device whose `GPUDevice` the test can reach, on an adapter without the features `hide`. */
async function openDevice(hide: readonly string[] = []): Promise<{ device: Device; raw: GPUDevice }> {
  const found = await findAdapter()
  if ('reason' in found) throw new Error(found.reason)
  const { adapter, gpu } = found
  let raw: GPUDevice | undefined
  const seen = {
    features: new Set([...adapter.features].filter((f) => !hide.includes(f))),
    limits: adapter.limits,
    info: adapter.info,
    requestDevice: async (d: GPUDeviceDescriptor) => (raw = await adapter.requestDevice(d)),
  }
  const device = await createWebGpuDevice(gpu, {}, seen as unknown as GPUAdapter)
  return { device, raw: raw! }
}

describe('behaviour specific to WebGPU', () => {
  let device: Device
  beforeAll(async () => {
    device = await createNodeWebGpu()
  })
  afterAll(async () => {
    await device.dispose()
  })

  test('gets all limits of the adapter, beyond the default limits', async () => {
    const found = await findAdapter()
    if ('reason' in found) throw new Error(found.reason)
    const { limits, features } = found.adapter
    expect(device.limits.maxBufferBytes).toBe(limits.maxBufferSize)
    expect(device.limits.maxBindingBytes).toBe(limits.maxStorageBufferBindingSize)
    expect(device.limits.maxBuffersPerLaunch).toBe(limits.maxStorageBuffersPerShaderStage)
    expect(device.limits.maxSharedBytes).toBe(limits.maxComputeWorkgroupStorageSize)
    for (const f of ['shader-f16', 'subgroups', 'timestamp-query'])
      expect(device.features.has(f)).toBe(features.has(f))
    expect(device.storage).toBe('words')
  })

  test('submitted buffers may be freed; unsubmitted ones are reported by name', async () => {
    const text = `kernel k(m: size) { axis i = dense_fixed(m) buffer X: f32[i] in buffer Y: f32[i] out
      iterate a [i] as S { Y[i] = X[i] } }`
    const compiled = await parseProgram(text).kernel().build(device)
    const inputs = { tensors: { X: [1, 2] } }
    const first = await compiled.bind(...flatInputs(inputs))
    const run = first.run()
    first.free()
    await run
    const second = await compiled.bind(...flatInputs(inputs))
    const times = second.time(2)
    second.free()
    expect(await codeOf(() => times)).toBe('device/freed-buffer')
    compiled.release()
    expect(await codeOf(() => compiled.bind(...flatInputs(inputs)))).toBe('device/released-module')
  })

  test('a graph that is freed while it is timed is not replayed', async () => {
    const text = `kernel k(m: size) { axis i = dense_fixed(m) buffer X: f32[i] in buffer Y: f32[i] out
      iterate a [i] as S { Y[i] = X[i] } }`
    const prepared = await (await parseProgram(text).kernel().build(device)).bind({ X: [1, 2] })
    const graph = await prepared.graph()
    const times = graph.time(3)
    graph.free()
    expect(await codeOf(() => times)).toBe('device/freed')
    prepared.free()
  })

  test('rejects f64 arguments by name', async () => {
    const module = wgsl('wide', '', { k: [{ kind: 'buffer', name: 'A', dtype: 'f64', access: 'read' }] })
    const [d] = await failure(() => device.compile(module))
    expect(d!.code).toBe('device/no-f64')
    expect(d!.message).toContain('k: A')
  })

  test('rejects more buffers than a launch may have', async () => {
    const n = device.limits.maxBuffersPerLaunch + 1
    const args = Array.from({ length: n }, (_, k) => ({ ...ARGS.blocks[0], name: `b${k}` }))
    expect(await codeOf(() => device.compile(wgsl('many', '', { k: args })))).toBe('device/over-limit')
  })

  test('reports a missing entry point, and bindings that do not match, as compile errors', async () => {
    const { text } = WGSL_TEXTS.blocks.module
    const [missing] = await failure(() => device.compile(wgsl('m', text, { absent: ARGS.blocks })))
    expect(missing!.code).toBe('device/compile')
    expect(missing!.message).toContain('absent')
    const [read] = await failure(() =>
      device.compile(wgsl('m', text, { blocks: [{ ...ARGS.blocks[0], access: 'read' }] })),
    )
    expect(read!.code).toBe('device/compile')
    expect(read!.message).toContain('kernel blocks')
  })

  test('shows the wrong line with a caret under the place', async () => {
    const [d] = await failure(() => device.compile(WGSL_TEXTS.broken.module))
    expect(d).toMatchInlineSnapshot(`
      {
        "code": "device/compile",
        "expected": "WGSL that this device compiles",
        "hint": "\`spt emit --target wgsl\` prints the text",
        "message": "WGSL of broken, line 5, column 17: unresolved value 'nowhere'",
        "notes": [
          "3 | fn blocks() {
      4 |   let fine = 1.0;
      5 |   y[0] = fine + nowhere;
        |                 ^^^^^^^
      6 | }",
        ],
      }
    `)
  })

  test('rejects one buffer under two names if it is written, and allows it if it is only read', async () => {
    const { module } = WGSL_TEXTS.scale
    const m = await device.compile(module)
    const b = device.alloc(4, 'both')
    const run = (args: Parameters<Device['run']>[0][number]) => device.run([args])
    const [d] = await failure(() =>
      run({ kind: 'launch', module: m, entry: 'scale', grid: [1, 1, 1], args: [b, 1, b, 1] }),
    )
    expect(d!.code).toBe('device/aliased-arguments')
    expect(d!.message).toContain('x and y')
    const text = `@group(0) @binding(0) var<storage, read> p: array<f32>;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn twice() { y[0] = p[0] + q[0]; }`
    const args = [ARGS.scale[0], ARGS.scale[0], ARGS.blocks[0]]
    const twice = await device.compile(wgsl('twice', text, { twice: args }, [1, 1, 1]))
    const y = device.alloc(4, 'y')
    await device.upload(b, Float32Array.of(21))
    await run({ kind: 'launch', module: twice, entry: 'twice', grid: [1, 1, 1], args: [b, b, y] })
    expect(new Float32Array(await device.download(y))[0]).toBe(42)
    b.free()
    y.free()
  })

  test('a vector view covers the last elements of a buffer that is not a multiple of 16 bytes', async () => {
    const text = `@group(0) @binding(0) var<storage, read_write> y: array<vec4f>;
@compute @workgroup_size(1) fn blocks() { y[arrayLength(&y) - 1u] += vec4f(1.0); }`
    const m = await device.compile(wgsl('vectors', text, { blocks: ARGS.blocks }, [1, 1, 1]))
    const y = device.alloc(4 * 6, 'y')
    await device.upload(y, iota(6))
    await device.run([{ kind: 'launch', module: m, entry: 'blocks', grid: [1, 1, 1], args: [y] }])
    expect(new Float32Array(await device.download(y))).toEqual(Float32Array.of(0, 1, 2, 3, 5, 6))
    y.free()
  })

  test('clears all of a buffer between launches, however large', async () => {
    const text = `@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn last() { y[arrayLength(&y) - 1u] += 1.0; }`
    const m = await device.compile(wgsl('last', text, { last: ARGS.blocks }, [1, 1, 1]))
    for (const n of [4, 1000, 4 * 256, 4 * 256 + 4, 300_000]) {
      const y = device.alloc(4 * n, 'y')
      const last = { kind: 'launch', module: m, entry: 'last', grid: [1, 1, 1], args: [y] } as const
      const zeros = { kind: 'clear', buffer: y } as const
      const once = new Float32Array(n)
      once[n - 1] = 1
      for (const list of [
        [zeros, last],
        [last, zeros, last],
      ]) {
        await device.upload(y, iota(n))
        await device.run(list)
        const got = new Float32Array(await device.download(y))
        expect([got.length, got.findIndex((x, k) => x !== once[k])]).toEqual([n, -1])
      }
      y.free()
    }
  })

  test('reports exhausted memory where the buffer is first needed, and continues without it', async () => {
    // SwiftShader has no single gibibyte although it allows buffers of that size; a GPU may run full instead.
    const { device, raw } = await openDevice()
    const create = raw.createBuffer.bind(raw)
    raw.createBuffer = (d) => create(d.label === 'full' ? { ...d, size: raw.limits.maxBufferSize } : d)
    const buffers = []
    try {
      let seen: Awaited<ReturnType<typeof failure>> | undefined
      for (let k = 0; k < 4096 && !seen; k++) {
        const b = device.alloc(4, 'full')
        buffers.push(b)
        seen = await failure(() => device.download(b)).catch(() => undefined)
      }
      expect(seen![0]!.code).toBe('device/out-of-memory')
      expect(seen![0]!.message).toContain('full')
      const last = buffers.at(-1)!
      expect(await codeOf(() => device.run([{ kind: 'clear', buffer: last }]))).toBe('device/out-of-memory')
      expect(await codeOf(() => device.upload(last, new Float32Array(1)))).toBe('device/out-of-memory')
      for (const b of buffers) b.free()
      const x = device.alloc(4, 'x')
      await device.upload(x, Float32Array.of(7))
      expect(new Float32Array(await device.download(x))[0]).toBe(7)
    } finally {
      await device.dispose()
    }
  })

  test('uses a wall clock if there are no timestamps', async () => {
    const { device } = await openDevice(['timestamp-query'])
    expect(device.features.has('timestamp-query')).toBe(false)
    const y = device.alloc(4096, 'y')
    const times = await device.time([{ kind: 'clear', buffer: y }], 3)
    expect(times.length).toBe(3)
    for (const t of times) expect(t).toBeGreaterThan(0)
    await device.dispose()
  })

  test('a lost device ends commands in flight and rejects later ones, naming the kernel', async () => {
    const { device, raw } = await openDevice()
    const m = await device.compile(WGSL_TEXTS.steps.module)
    const y = device.alloc(4 * 2 ** 20, 'y')
    const n = 2 ** 20
    const step = {
      kind: 'launch',
      module: m,
      entry: 'increment',
      grid: WGSL_TEXTS.steps.grid(n),
      args: [y, n],
    } as const
    await device.run([step])
    const running = failure(() => device.run(Array.from({ length: 20 }, () => step)))
    const reading = failure(() => device.download(y))
    await Promise.resolve()
    raw.destroy()
    const [d] = await running
    expect(d!.code).toBe('device/lost')
    expect(d!.message).toContain('increment')
    expect((await reading)[0]!.code).toBe('device/lost')
    expect(await codeOf(() => device.run([step]))).toBe('device/lost')
    expect(await codeOf(() => device.alloc(4, 'x'))).toBe('device/lost')
    expect(await codeOf(() => device.compile(WGSL_TEXTS.blocks.module))).toBe('device/lost')
    y.free()
    await device.dispose()
  })

  test('a wait that the API never settles ends with the device', async () => {
    const never = new Promise(() => {})
    for (const end of ['lost', 'disposed'] as const) {
      const { device, raw } = await openDevice()
      const session = new Session(raw, 'it')
      const waiting = failure(() => session.wait(never, 'read x'))
      if (end === 'lost') raw.destroy()
      else await session.dispose()
      expect((await waiting)[0]!.code).toBe(`device/${end}`)
      expect(await codeOf(() => session.wait(never, 'read x'))).toBe(`device/${end}`)
      await device.dispose()
    }
  })

  test('dispose ends commands in flight', async () => {
    const { device } = await openDevice()
    const y = device.alloc(2 ** 24, 'y')
    await device.run([{ kind: 'clear', buffer: y }])
    const reading = failure(() => device.download(y))
    await device.dispose()
    expect((await reading)[0]!.code).toBe('device/disposed')
  })

  test('a GPU without adapters is an error with a hint', async () => {
    const gpu = { requestAdapter: async () => null } as unknown as GPU
    const [d] = await failure(() => createWebGpuDevice(gpu))
    expect(d!.code).toBe('device/absent')
    expect(d!.hint).toBeTruthy()
  })
})

describe('adapter selection', () => {
  test('the report names the adapter and how it was reached', async () => {
    const report = await reportWebGpu()
    expect(report).toMatchObject({ kind: 'webgpu', available: true, facts: { selection: 'auto' } })
    expect(report.name).toBeTruthy()
    expect(report.facts.driver).toBeTruthy()
  })

  test('the software driver can be requested', async () => {
    const report = await reportWebGpu({ adapter: 'swiftshader' })
    expect(report.available).toBe(true)
    expect(report.facts).toMatchObject({ software: 'yes', driver: expect.stringContaining('SwiftShader') })
  })

  test('the GPU can be required: then there is one', async () => {
    const report = await reportWebGpu({ adapter: 'hardware' })
    if (report.available) expect(report.facts.software).toBe('no')
    else {
      expect(report.reason).toBeTruthy()
      expect(report.hint).toContain('SPT_WEBGPU=auto')
      expect(await codeOf(() => createNodeWebGpu({ adapter: 'hardware' }))).toBe('device/absent')
    }
  })

  test('another value is rejected', async () => {
    const report = await reportWebGpu({ adapter: 'lavapipe' as never })
    expect(report).toMatchObject({ available: false, reason: expect.stringContaining('lavapipe') })
    expect(await codeOf(() => createNodeWebGpu({ adapter: 'lavapipe' as never }))).toBe(
      'device/unknown-choice',
    )
  })
})
