/** Long calls end with the reason of their signal, leave nothing allocated, and can be repeated. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Progress, runSync, Work, type WorkOptions } from '../../src/ast/work.ts'
import {
  bindResident,
  convert,
  convertForKernel,
  measure,
  releaseConversions,
  storageFormat,
  upload,
} from '../../src/device.ts'
import {
  type Binding,
  coords,
  type Device,
  dense,
  devices,
  load,
  loadPlan,
  readTensor,
} from '../../src/node.ts'
import type { PlanFamily } from '../../src/plan/schema.ts'
import { expectedOf } from '../../src/run/bind/results/reference-inputs.ts'
import type { DeviceBuffer } from '../../src/runtime/device.ts'

const SPMM = 'sparsetile/kernels/spmm.spt'

/** A device that counts the bytes it holds. */
async function counted(open: () => Promise<Device>): Promise<{ device: Device; held: () => number }> {
  const device = await open()
  let bytes = 0
  const alloc = device.alloc.bind(device)
  device.alloc = (size, label): DeviceBuffer => {
    const b = alloc(size, label)
    const free = b.free.bind(b)
    bytes += size
    let isFreed = false
    b.free = () => {
      if (!isFreed) bytes -= size
      isFreed = true
      free()
    }
    return b
  }
  return { device, held: () => bytes }
}

/** Options that abort at the n-th part of a call, and the parts that began. */
function abortAt(n: number) {
  const controller = new AbortController()
  const parts: Progress[] = []
  const onProgress = (p: Progress): void => {
    parts.push(p)
    if (parts.length === n) controller.abort()
  }
  return { options: { signal: controller.signal, onProgress }, parts, controller }
}

const DISPATCH = `kernel k(m: size) {
  axis i = dense_fixed(m)
  buffer X: f32[i] in
  buffer Y: f32[i] out
  iterate c [i] as S { Y[i] = X[i] + 1 }
}
schedule k.two { split i by 2 }
schedule k.three { split i by 3 }
schedule k.pick choose { when (m > 100) two otherwise three }`

const A = coords(
  [3, 3],
  [
    [0, 1, 2],
    [2, 0, 1],
  ],
  new Float32Array([1, 2, 3]),
)
const B = dense([3, 4], new Float32Array(12).fill(1))

/** Aborts a call at each of its parts, and returns the number of parts. */
async function abortEverywhere(
  call: (options: ReturnType<typeof abortAt>['options']) => Promise<unknown>,
  after: () => void = () => {},
): Promise<number> {
  for (let n = 1; ; n++) {
    const { options, parts, controller } = abortAt(n)
    const error: unknown = await call(options).then(
      () => null,
      (e: unknown) => e,
    )
    after()
    if (!controller.signal.aborted) {
      expect(error).toBe(null)
      return parts.length
    }
    // An abort at the last part may come after the end of the work.
    if (error !== null) expect(error).toBe(controller.signal.reason)
    else return parts.length
    expect((error as DOMException).name).toBe('AbortError')
  }
}

/** The long calls of a binding, with options. */
const callsOf = (b: Binding, device: Device): ((options: WorkOptions) => Promise<unknown>)[] => [
  (o) => b.run(o),
  (o) => b.set('B', B, o),
  (o) => b.get('C', o),
  (o) => b.outputs(o),
  (o) => b.time(2, o),
  (o) => b.explain({ ...o, time: false }),
  (o) => b.precompile(o),
  (o) => b.awaitMeasurements(o),
  async (o) => (await b.graph(o)).free(),
  async (o) => (await b.rebuild(device, o)).free(),
  (o) => b.verifyAgainst(expectedOf(b.code.compilation.source, b.executable.bound, {}), o),
]

test('a family with one bad plan, and a dispatch with one bad schedule, leave no module', async () => {
  const device = await devices.cpu()
  const held = new Set<unknown>()
  const compile = device.compile.bind(device)
  device.compile = async (...args) => {
    const module = await compile(...args)
    const release = module.release.bind(module)
    held.add(module)
    module.release = () => {
      held.delete(module)
      release()
    }
    return module
  }
  const fn = await (await load(DISPATCH)).kernel().schedule('pick').build(device)
  const plan = structuredClone(fn.plan) as PlanFamily
  expect(held.size).toBe(2)
  fn.release()
  await vi.waitFor(() => expect(held.size).toBe(0))
  const [good, bad] = plan.plans
  for (const plans of [
    [good!, { ...bad!, target: 'wgsl', device: 'webgpu' }],
    [good!, { ...bad!, needs: { ...bad!.needs, features: ['none'] } }],
  ]) {
    await expect(loadPlan({ ...plan, plans } as PlanFamily, device)).rejects.toThrow()
    await vi.waitFor(() => expect(held.size).toBe(0))
  }
  const illegal = DISPATCH.replace('split i by 3', 'split q by 3')
  await expect((await load(illegal)).kernel().schedule('pick').build(device)).rejects.toThrow()
  expect(held.size).toBe(0)
  await device.dispose()
})

for (const [name, open] of [
  ['cpu', devices.cpu],
  ['webgpu', devices.webgpu],
] as const)
  describe(`aborted calls on ${name}`, () => {
    let device: Device
    let held: () => number
    beforeAll(async () => {
      ;({ device, held } = await counted(() => open({})))
    })
    afterAll(() => device.dispose())

    test('build, bind, call, verify and measure', async () => {
      const kernel = (await load(SPMM)).kernel('spmm').schedule(name === 'cpu' ? 'cpu' : 'gpu', 8)
      expect(await abortEverywhere((o) => kernel.build(device, o))).toBeGreaterThanOrEqual(2)
      const fn = await kernel.build(device)
      const before = held()
      const unchanged = (): void => expect(held()).toBe(before)
      const bound = await abortEverywhere(async (o) => (await fn.bind({ A, B }, o)).free(), unchanged)
      expect(bound).toBeGreaterThanOrEqual(3)
      expect(await abortEverywhere((o) => fn({ A, B }, o), unchanged)).toBeGreaterThan(bound)
      const { plan } = fn
      expect(await abortEverywhere((o) => loadPlan(plan, device, o))).toBe(1)
      const binding = await fn.bind({ A, B })
      const size = held()
      const same = (): void => expect(held()).toBe(size)
      expect(await abortEverywhere((o) => binding.verify(o), same)).toBe(2)
      expect(await abortEverywhere((o) => binding.measure({ ...o, repeats: 3, warmups: 1 }), same)).toBe(2)
      for (const call of callsOf(binding, device)) {
        expect(await abortEverywhere(call, same)).toBeGreaterThanOrEqual(1)
        await binding.run()
      }
      expect((await binding.verify()).ok).toBe(true)
      binding.free()
      unchanged()
    })
  })

test('build and choose of a dispatch', async () => {
  const device = await devices.cpu()
  const kernel = (await load(DISPATCH)).kernel().schedule('pick')
  const X = dense([3], Float32Array.of(1, 2, 3))
  const whole: string[] = []
  await kernel.build(device, { onProgress: ({ phase }) => whole.push(phase) })
  expect(whole).toEqual(['select', 'lower', 'compile', 'lower', 'compile'])
  expect(await abortEverywhere((o) => kernel.build(device, o))).toBe(5)
  expect(await abortEverywhere((o) => kernel.build(device, { ...o, sizes: { m: 3 } }))).toBe(2)
  const fn = await kernel.build(device)
  expect(await abortEverywhere((o) => fn.choose({ X }, o))).toBe(2)
  expect(await abortEverywhere((o) => kernel.choose(device, { X }, o))).toBe(1)
})

test('load and readTensor', async () => {
  expect(await abortEverywhere((o) => load(SPMM, o))).toBeGreaterThan(3)
  const file = join(mkdtempSync(join(tmpdir(), 'spt-')), 'a.mtx')
  writeFileSync(file, '%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3.5\n')
  expect(await abortEverywhere((o) => readTensor(file, o))).toBe(1)
})

/** Aborts a call at each of its allocations and downloads on a device, and returns the number of calls that ended by that. */
async function abortInDevice(
  device: Device,
  call: (options: WorkOptions) => Promise<unknown>,
): Promise<number> {
  const { alloc, download } = device
  let ended = 0
  for (let n = 1; ; n++) {
    const controller = new AbortController()
    let operations = 0
    const counting =
      <F extends (...args: never[]) => unknown>(operation: F) =>
      (...args: Parameters<F>) => {
        if (++operations === n) controller.abort()
        return operation.apply(device, args)
      }
    Object.assign(device, { alloc: counting(alloc), download: counting(download) })
    const error: unknown = await call({ signal: controller.signal }).then(
      () => null,
      (e: unknown) => e,
    )
    Object.assign(device, { alloc, download })
    if (error !== null) {
      expect(error).toBe(controller.signal.reason)
      ended++
    }
    if (!controller.signal.aborted) return ended
  }
}

test('upload, convert, convertForKernel and bindResident', async () => {
  const { device, held } = await counted(() => devices.cpu())
  const before = held()
  const fn = await (await load(SPMM)).kernel('spmm').schedule('hyb', 2, 3).build(device)
  const uploading = async (o: WorkOptions) => (await upload(device, A, undefined, o)).free()
  expect(await abortEverywhere(uploading)).toBe(1)
  const tensor = await upload(device, A)
  const to = storageFormat(fn, 'A')
  const sizes = new Map([
    ['m', A.shape[0]!],
    ['n', A.shape[1]!],
  ])
  const given = { sizes, extents: new Map(), lists: new Map(), sets: new Map() }
  const converting = async (o: WorkOptions) => (await convertForKernel(fn, 'A', tensor, {}, o)).free()
  expect(await abortEverywhere(converting)).toBe(1)
  expect(await abortEverywhere(async (o) => (await convert(device, tensor, to, given, 0, o)).free())).toBe(1)
  expect(await abortInDevice(device, converting)).toBeGreaterThan(0)
  const parts = await convertForKernel(fn, 'A', tensor)
  const binding = async (o: WorkOptions) => (await bindResident(fn, { A: parts, B }, o)).free()
  expect(await abortEverywhere(binding)).toBeGreaterThanOrEqual(2)
  expect(await abortInDevice(device, binding)).toBeGreaterThan(0)
  const bound = await bindResident(fn, { A: parts, B })
  await bound.run()
  expect((await bound.verify()).ok).toBe(true)
  bound.free()
  for (const t of [tensor, parts]) t.free()
  await releaseConversions(device)
  fn.release()
  expect(held()).toBe(before)
})

test('a signal that has aborted rejects every call at once; other values are not signals', async () => {
  const reason = new Error('enough')
  const signal = AbortSignal.abort(reason)
  const device = await devices.cpu()
  const dispatch = (await load(DISPATCH)).kernel().schedule('pick')
  const kernel = (await load(SPMM)).kernel('spmm').schedule('cpu', 8)
  const fn = await kernel.build(device)
  const binding = await fn.bind({ A, B })
  for (const call of [
    () => load(SPMM, { signal }),
    () => kernel.build(device, { signal }),
    () => fn({ A, B }, { signal }),
    () => fn.bind({ A, B }, { signal }),
    () => fn.choose({ A, B }, { signal }),
    () => dispatch.choose(device, { A, B }, { signal }),
    () => dispatch.build(device, { signal }),
    () => loadPlan(fn.plan, device, { signal }),
    ...callsOf(binding, device).map((call) => () => call({ signal })),
    () => binding.verify({ signal }),
    () => binding.measure({ signal }),
    () => measure(device, binding.commands, { signal }),
    () => readTensor('nowhere.mtx', { signal }),
  ])
    await expect(call()).rejects.toBe(reason)
  for (const call of callsOf(binding, device))
    await expect(call({ strange: 1 } as never)).rejects.toThrow(
      /api\/unknown-option: .* has no option strange/,
    )
  await expect(fn.bind({ A, B }, { signal: 5 as never })).rejects.toThrow(/signal/)
  await expect(kernel.build(device, { onProgress: 5 as never })).rejects.toThrow(/onProgress/)
})

test('timers run during long host work, and a signal ends it', async () => {
  const controller = new AbortController()
  function* spin() {
    for (;;) {
      const start = performance.now()
      while (performance.now() - start < 5);
      yield
    }
  }
  setTimeout(() => controller.abort())
  const work = new Work({ signal: controller.signal })
  await expect(work.run(spin())).rejects.toThrow('aborted')
  function* cleaned(log: string[]) {
    try {
      yield
      yield
    } finally {
      log.push('end')
    }
  }
  const log: string[] = []
  await expect(work.run(cleaned(log))).rejects.toBe(controller.signal.reason)
  expect(log).toEqual(['end'])
  runSync(cleaned(log))
  expect(log).toHaveLength(2)
})
