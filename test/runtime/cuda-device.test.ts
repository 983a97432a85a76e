import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { load } from '../../src/node.ts'
import type { Command, DeviceBuffer } from '../../src/runtime/device.ts'
import { property } from '../support/property.ts'
import { buffer, FAKE_CHIP, type FakeKernel, fakeDevice, fakeModule, scalar } from './cuda-fake.ts'

const code = async (body: () => unknown): Promise<string> => {
  try {
    await body()
  } catch (error) {
    if (error instanceof SptError) return error.diagnostics[0]!.code
    throw error
  }
  return 'nothing refused'
}
const messageOf = async (body: () => unknown): Promise<string> => {
  try {
    await body()
  } catch (error) {
    return (error as Error).message
  }
  return ''
}

/** y[0] = 10 y[0] + k: tells the order of launches. */
const append: FakeKernel = ({ slot, memory }) => {
  const y = memory(slot(0).getBigUint64(0, true))
  const view = new DataView(y.buffer, y.byteOffset)
  view.setInt32(0, 10 * view.getInt32(0, true) + slot(1).getInt32(0, true), true)
  return undefined
}

async function withKernels(kernels: Record<string, FakeKernel>, sync = false) {
  const parts = fakeDevice(sync)
  const launch: Record<string, (...args: (DeviceBuffer | number)[]) => Command> = {}
  for (const [name, kernel] of Object.entries(kernels)) {
    parts.driver.kernels.set(name, kernel)
    const module = await parts.device.compile(fakeModule(name, [buffer('y'), scalar('k')]))
    launch[name] = (...args) => ({ kind: 'launch', module, entry: name, grid: [1, 1, 1], args })
  }
  return { ...parts, launch }
}

test('device properties for dispatch: multiprocessors and features', async () => {
  const { device } = fakeDevice()
  const text = `kernel k(m: size) {
    axis i = dense_fixed(m)
    buffer C: f32[i] out
    iterate set [i] as S { C[i] = 1 }
  }
  schedule k.lots(n) { split i by n }
  schedule k.auto choose {
    when (capability != 9.0 or not has(f16) or not has(bf16) or not has(f64) or not has(subgroups)) lots(1)
    when (not has(subgroup_size(32)) or not has(lanes(32)) or has(lanes(64))) lots(2)
    when (not has(async_copy) or not has(clusters) or not has(tensor_maps)) lots(3)
    when (has(subgroup_matrix(16, 16, 16, f16, f32))) lots(5)
    otherwise lots(100 * processors)
  }`
  const { selection } = await (await load(text)).kernel().choose(device, {})
  expect(selection.text).toBe(`lots(${100 * FAKE_CHIP.multiprocessors})`)
})

describe('memory', () => {
  property([fc.uint8Array({ maxLength: 300 }), fc.nat(40), fc.nat(40)])(
    'data uploaded at an offset are read back',
    async (data, before, after) => {
      const { device } = fakeDevice()
      const b = device.alloc(before + data.length + after, 'b')
      await device.upload(b, data, before)
      const back = new Uint8Array(await device.download(b))
      expect([...back.subarray(before, before + data.length)]).toEqual([...data])
      expect([...back.subarray(0, before)].every((v) => v === 0xa5)).toBe(true)
      expect((await device.download(b, before)).byteLength).toBe(before)
    },
  )

  property([fc.integer({ min: -8, max: 24 }), fc.integer({ min: 0, max: 24 })])(
    'a range is accepted exactly if it is inside',
    async (offset, bytes) => {
      const { device } = fakeDevice()
      const b = device.alloc(16, 'b')
      const got = await code(() => device.upload(b, new Uint8Array(bytes), offset))
      expect(got).toBe(offset >= 0 && offset + bytes <= 16 ? 'nothing refused' : 'device/range')
    },
  )

  test('empty buffers are valid', async () => {
    const { device, driver } = fakeDevice()
    const b = device.alloc(0, 'empty')
    await device.upload(b, new Float32Array(0))
    await device.run([{ kind: 'clear', buffer: b }])
    expect((await device.download(b)).byteLength).toBe(0)
    expect(driver.held).toBe(256)
    b.free()
    b.free()
    expect(driver.held).toBe(0)
  })

  test('too much memory is rejected with the numbers', async () => {
    const { device } = fakeDevice()
    const total = FAKE_CHIP.memoryBytes
    const first = device.alloc(total - 1000, 'first')
    const text = await messageOf(() => device.alloc(2000, 'second'))
    expect(text).toBe(
      "device/out-of-memory: no device memory for 'second': 2000 bytes requested, 1000 bytes free of 1048576 bytes " +
        '(1.0 MiB), 1047576 bytes held by this program',
    )
    expect(await code(() => device.alloc(total + 1, 'huge'))).toBe('device/buffer-too-large')
    for (const bytes of [-1, 0.5, NaN, Infinity]) {
      expect(await code(() => device.alloc(bytes, 'odd'))).toBe('api/argument')
    }
    first.free()
    device.alloc(2000, 'second')
    expect(await messageOf(() => device.alloc(total, 'third'))).toContain('2000 bytes held by this program')
  })

  test('freed buffers and those of another device are rejected', async () => {
    const { device } = fakeDevice()
    const other = fakeDevice().device.alloc(4, 'theirs')
    const gone = device.alloc(4, 'gone')
    gone.free()
    expect(await code(() => device.download(other))).toBe('device/foreign-buffer')
    expect(await code(() => device.upload(gone, new Uint8Array(1)))).toBe('device/freed-buffer')
  })
})

describe('running', () => {
  property([fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 8 })])(
    'commands run in order',
    async (digits) => {
      const { device, launch } = await withKernels({ append })
      const y = device.alloc(4, 'y')
      await device.run([{ kind: 'clear', buffer: y }, ...digits.map((k) => launch.append!(y, k))])
      expect(new Int32Array(await device.download(y))[0]).toBe(Number(digits.join('') || '0'))
    },
  )

  test('run resolves when the stream is idle, without blocking JavaScript', async () => {
    const { device, driver, launch } = await withKernels({ append })
    const y = device.alloc(4, 'y')
    driver.busy = Infinity
    const done = device.run([launch.append!(y, 1)])
    setTimeout(() => {
      driver.busy = 0
    }, 60)
    const first = await Promise.race([
      done.then(() => 'run'),
      new Promise((r) => setTimeout(() => r('timer'), 30)),
    ])
    expect(first).toBe('timer')
    await done
  })

  test('grid, block and dynamic shared memory reach the launch', async () => {
    const { device, driver } = fakeDevice()
    let seen: unknown
    driver.kernels.set('k', ({ grid, block, sharedBytes }) => {
      seen = { grid, block, sharedBytes }
      return undefined
    })
    const module = await device.compile(fakeModule('k', [], { block: [8, 4, 2], sharedBytes: 100_000 }))
    expect(driver.log.filter((c) => c === 'cuFuncSetAttribute').length).toBe(1)
    await device.run([{ kind: 'launch', module, entry: 'k', grid: [7, 5, 3], args: [] }])
    expect(seen).toEqual({ grid: [7, 5, 3], block: [8, 4, 2], sharedBytes: 100_000 })
    expect(module.resources!.k).toMatchObject({ registers: 32, maxThreads: 1024 })
  })

  test('a rejected command keeps the previous ones done', async () => {
    const { device, launch } = await withKernels({ append })
    const y = device.alloc(4, 'y')
    await device.upload(y, Int32Array.of(0))
    const bad = { ...launch.append!(y, 2), grid: [0, 1, 1] } as Command
    expect(await code(() => device.run([launch.append!(y, 1), bad]))).toBe('device/grid')
    expect(new Int32Array(await device.download(y))[0]).toBe(1)
  })

  property([
    fc.array(fc.oneof(fc.integer({ min: -2, max: 70000 }), fc.double()), { minLength: 3, maxLength: 3 }),
  ])('a grid is rejected exactly if the device cannot run it', async (grid) => {
    const { device, launch } = await withKernels({ append })
    const y = device.alloc(4, 'y')
    const command = { ...launch.append!(y, 1), grid } as unknown as Command
    const fits = grid.every((n, d) => Number.isInteger(n) && n >= 1 && n <= FAKE_CHIP.maxGridDim[d]!)
    expect(await code(() => device.run([command]))).toBe(fits ? 'nothing refused' : 'device/grid')
  })

  test('time gives one figure per repeat and reuses its events', async () => {
    const { device, driver, launch } = await withKernels({ append })
    const y = device.alloc(4, 'y')
    expect(await device.time([launch.append!(y, 0)], 300)).toHaveLength(300)
    await device.time([], 300)
    // Pairs for 128 repeats, and the one with which queues wait for each other.
    expect(driver.log.filter((c) => c === 'cuEventCreate')).toHaveLength(257)
    expect(driver.log.filter((c) => c === 'cuLaunchKernel')).toHaveLength(300)
    expect(await code(() => device.time([], 0))).toBe('device/arguments')
  })
})

describe('modules', () => {
  test('a missing entry, a block and shared memory that do not fit', async () => {
    const { device, driver } = fakeDevice()
    driver.kernels.set('k', () => undefined)
    driver.attributes.set(0, 512)
    expect(await code(() => device.compile(fakeModule('other', [])))).toBe('device/no-entry')
    expect(await messageOf(() => device.compile(fakeModule('k', [], { block: [1024, 1, 1] })))).toContain(
      'with 32 registers a thread',
    )
    expect(await code(() => device.compile(fakeModule('k', [], { block: [1, 1, 65] })))).toBe(
      'device/over-limit',
    )
    expect(await code(() => device.compile(fakeModule('k', [], { sharedBytes: 232449 })))).toBe(
      'device/over-limit',
    )
    driver.attributes.set(1, 232448)
    expect(await code(() => device.compile(fakeModule('k', [], { sharedBytes: 1 })))).toBe(
      'device/over-limit',
    )
    expect(driver.log.filter((c) => c === 'cuModuleLoadData')).toHaveLength(5)
    expect(driver.log.filter((c) => c === 'cuModuleUnload')).toHaveLength(5)
    expect(await code(() => device.compile({ ...fakeModule('k', []), target: 'wgsl' }))).toBe('device/target')
  })

  test('a cached image that the driver rejects is compiled again, once', async () => {
    const { device, driver, compiler } = fakeDevice()
    driver.kernels.set('k', () => undefined)
    compiler.cached = true
    driver.failing.set('cuModuleLoadData', 200)
    await device.compile(fakeModule('k', []))
    expect(compiler.images).toEqual([
      { name: 'k', fresh: false },
      { name: 'k', fresh: true },
    ])
    compiler.cached = false
    driver.failing.set('cuModuleLoadData', 200)
    expect(await code(() => device.compile(fakeModule('k', [])))).toBe('device/cuda')
  })

  test('released modules and those of other devices are rejected', async () => {
    const mine = await withKernels({ append })
    const theirs = await withKernels({ append })
    const y = mine.device.alloc(4, 'y')
    const command = mine.launch.append!(y, 1) as Extract<Command, { kind: 'launch' }>
    expect(await code(() => mine.device.run([{ ...command, entry: 'appent' }]))).toBe('device/unknown-entry')
    expect(await code(() => mine.device.run([theirs.launch.append!(y, 1)]))).toBe('device/foreign-module')
    command.module.release()
    command.module.release()
    expect(await messageOf(() => mine.device.run([command]))).toContain('has been released')
  })
})

describe('faults', () => {
  const wild: FakeKernel = () => 700

  test('name the kernels in flight, and the device is lost', async () => {
    const { device, driver, launch } = await withKernels({ append, wild })
    const y = device.alloc(4, 'y')
    await device.run([launch.append!(y, 1)])
    expect(await messageOf(() => device.run([launch.wild!(y, 1), launch.append!(y, 1)]))).toBe(
      "device/fault: CODE_700: a kernel read or wrote memory that is not allocated; kernel 'wild' " +
        '(the only kernel in flight)',
    )
    for (const use of [
      () => device.alloc(4, 'after'),
      () => device.run([]),
      () => device.time([], 1),
      () => device.download(y),
      () => device.compile(fakeModule('append', [])),
    ]) {
      expect(await code(use)).toBe('device/lost')
    }
    y.free()
    await device.dispose()
    expect(driver.log.at(-1)).toBe('cuDevicePrimaryCtxRelease_v2')
  })

  test('detected while waiting name all kernels since the stream was idle', async () => {
    const { device, driver, launch } = await withKernels({ append, other: () => undefined })
    const y = device.alloc(4, 'y')
    driver.failing.set('cuStreamQuery', 716)
    const text = await messageOf(() => device.run([launch.append!(y, 1), launch.other!(y, 1)]))
    expect(text).toContain("one of the kernels in flight: 'append', 'other'")
    expect(text).toContain('not aligned')
  })

  test('with a wait after each launch name the failing kernel', async () => {
    const { device, launch } = await withKernels({ append, wild }, true)
    const y = device.alloc(4, 'y')
    const text = await messageOf(() => device.run([launch.append!(y, 1), launch.wild!(y, 1)]))
    expect(text).toContain(
      "device/fault: CODE_700: a kernel read or wrote memory that is not allocated; kernel 'wild'",
    )
    expect(text).not.toContain('append')
  })

  test('an error without a fault keeps the device usable', async () => {
    const { device, driver, launch } = await withKernels({ append })
    const y = device.alloc(4, 'y')
    driver.failing.set('cuLaunchKernel', 1)
    expect(await messageOf(() => device.run([launch.append!(y, 1)]))).toContain("launching kernel 'append'")
    await device.run([launch.append!(y, 1)])
  })
})

test('disposing releases everything, once, and ends the device', async () => {
  const { device, driver, launch } = await withKernels({ append })
  const y = device.alloc(4, 'y')
  await device.time([launch.append!(y, 1)], 2)
  driver.log.length = 0
  await device.dispose()
  await device.dispose()
  const count = (name: string): number => driver.log.filter((c) => c === name).length
  expect(driver.held).toBe(0)
  expect(count('cuEventDestroy_v2')).toBe(5)
  expect(count('cuModuleUnload')).toBe(1)
  expect(count('cuStreamDestroy_v2')).toBe(1)
  expect(count('cuDevicePrimaryCtxRelease_v2')).toBe(1)
  expect(await code(() => device.alloc(4, 'late'))).toBe('device/disposed')
  y.free()
})
