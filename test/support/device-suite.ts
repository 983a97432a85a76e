/**
 * What every device must do, in terms of a few kernels that the caller writes in the device's own language.
 * Data are integers, so every comparison is exact.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Diagnostic, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type {
  ArgSpec,
  Command,
  CompiledModule,
  Device,
  HostArray,
  ModuleText,
} from '../../src/runtime/device.ts'

/** A kernel and how many blocks cover `n` elements (one, where a block handles them all). */
interface SuiteKernel {
  readonly module: ModuleText
  readonly grid: (n: number) => readonly [number, number, number]
}

/** The kernels, by what they do; `ARGS` below gives the signature of each, `n` the number of elements. */
export interface SuiteTexts {
  /** y[i] = alpha * x[i] for i < n. Entry `scale`. */
  readonly scale: SuiteKernel
  /** y[s] = the sum of x[64 s] … x[64 s + 63], through shared memory where there is any; n sums. Entry `sums`. */
  readonly sums: SuiteKernel
  /** y[0] = a, y[1] = f32(b), y[2] = f32(c), y[3] = f32(d), y[4] = e. Entry `scalars`. */
  readonly scalars: SuiteKernel
  /** y[i] += 1 for i < n in entry `increment`; y[i] *= 2 in entry `double`: one module, two entries. */
  readonly steps: SuiteKernel
  /** y[k] = the linear index of block k, on the grid 2 × 3 × 4. Entry `blocks`. */
  readonly blocks: SuiteKernel
  /** A module whose text has an error in line `line` (`null`: nobody can tell), at a name that occurs in `token`. */
  readonly broken: { readonly module: ModuleText; readonly line: number | null; readonly token: string }
}

const buffer = (name: string, access: 'read' | 'read_write'): Extract<ArgSpec, { kind: 'buffer' }> => ({
  kind: 'buffer',
  name,
  dtype: 'f32',
  access,
})
const scalar = (name: string, dtype: 'f32' | 'i32' | 'u32' | 'bool'): ArgSpec => ({
  kind: 'scalar',
  name,
  dtype,
})

/** The arguments of each kernel, in order. */
export const ARGS = {
  scale: [buffer('x', 'read'), scalar('alpha', 'f32'), buffer('y', 'read_write'), scalar('n', 'i32')],
  sums: [buffer('x', 'read'), buffer('y', 'read_write'), scalar('n', 'i32')],
  scalars: [
    scalar('a', 'f32'),
    buffer('y', 'read_write'),
    scalar('b', 'i32'),
    scalar('c', 'u32'),
    scalar('d', 'bool'),
    scalar('e', 'f32'),
  ],
  increment: [buffer('y', 'read_write'), scalar('n', 'i32')],
  double: [buffer('y', 'read_write'), scalar('n', 'i32')],
  blocks: [buffer('y', 'read_write')],
} as const satisfies Record<string, readonly ArgSpec[]>

export const iota = (n: number): Float32Array => Float32Array.from({ length: n }, (_, i) => i % 4096)

/** The diagnostics of a call that must fail. */
export async function failure(call: () => unknown): Promise<readonly Diagnostic[]> {
  try {
    await call()
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics
    throw e
  }
  throw new Error('the call succeeded')
}

export const codeOf = async (call: () => unknown): Promise<string> => (await failure(call))[0]!.code

export function deviceSuite(name: string, makeDevice: () => Promise<Device>, texts: SuiteTexts): void {
  describe(name, () => {
    let device: Device
    const modules = new Map<ModuleText, CompiledModule>()

    beforeAll(async () => {
      device = await makeDevice()
    })
    afterAll(async () => {
      await device.dispose()
    })

    const compiled = async (text: ModuleText): Promise<CompiledModule> => {
      const known = modules.get(text) ?? (await device.compile(text))
      modules.set(text, known)
      return known
    }
    const launch = async (
      kernel: SuiteKernel,
      entry: string,
      n: number,
      args: Extract<Command, { kind: 'launch' }>['args'],
    ): Promise<Command> => ({
      kind: 'launch',
      module: await compiled(kernel.module),
      entry,
      grid: kernel.grid(n),
      args,
    })
    const filled = async (data: HostArray, label: string) => {
      const b = device.alloc(data.byteLength, label)
      await device.upload(b, data)
      return b
    }
    const floats = async (b: Parameters<Device['download']>[0], bytes?: number) =>
      new Float32Array(await device.download(b, bytes))

    describe('memory', () => {
      test('downloads the uploaded data, for any length', async () => {
        for (const n of [1, 2, 3, 4, 5, 1023, 4096]) {
          const data = Uint8Array.from({ length: n }, (_, i) => (i * 7 + 1) % 256)
          const b = await filled(data, 'bytes')
          expect(b.bytes).toBe(n)
          expect(new Uint8Array(await device.download(b))).toEqual(data)
          b.free()
        }
      })

      test('uploads a part at an offset and keeps the rest alone', async () => {
        const expected = Uint8Array.from({ length: 40 }, (_, i) => i)
        const b = await filled(expected, 'bytes')
        for (const [offset, length] of [
          [8, 4],
          [3, 9],
          [5, 2],
          [17, 1],
          [37, 3],
          [0, 40],
        ] as const) {
          const part = Uint8Array.from({ length }, (_, i) => 100 + offset + i)
          expected.set(part, offset)
          await device.upload(b, part, offset)
          expect(new Uint8Array(await device.download(b))).toEqual(expected)
        }
        b.free()
      })

      test('uploads the elements of a view, not of the memory under it', async () => {
        const b = await filled(Float32Array.of(0, 1, 2, 3, 4, 5).subarray(2, 5), 'view')
        expect([...(await floats(b))]).toEqual([2, 3, 4])
        b.free()
      })

      test('downloads a prefix', async () => {
        const b = await filled(iota(100), 'x')
        expect(await floats(b, 12)).toEqual(iota(3))
        expect((await device.download(b, 0)).byteLength).toBe(0)
        b.free()
      })

      test('moves more than one piece of a large array', async () => {
        const n = 9 * 2 ** 20 + 3
        const data = Int32Array.from({ length: n }, (_, i) => i)
        const b = await filled(data, 'large')
        const back = new Int32Array(await device.download(b))
        expect(back.length).toBe(n)
        expect(back.findIndex((v, i) => v !== i)).toBe(-1)
        b.free()
      })

      test('clears', async () => {
        const b = await filled(iota(1001), 'y')
        await device.run([{ kind: 'clear', buffer: b }])
        expect(await floats(b)).toEqual(new Float32Array(1001))
        b.free()
      })

      test('has empty buffers', async () => {
        const empty = device.alloc(0, 'empty')
        expect(empty.bytes).toBe(0)
        await device.upload(empty, new Float32Array(0))
        expect((await device.download(empty)).byteLength).toBe(0)
        const y = await filled(Float32Array.of(5), 'y')
        await device.run([
          { kind: 'clear', buffer: empty },
          await launch(texts.scale, 'scale', 1, [empty, 2, y, 0]),
        ])
        expect(await floats(y)).toEqual(Float32Array.of(5))
        empty.free()
        y.free()
      })

      test('rejects a buffer over its limit, with the numbers', async () => {
        const limit = Math.min(device.limits.maxBufferBytes, device.limits.maxBindingBytes)
        const bytes = Number.isFinite(limit) ? limit + 4 : Number.MAX_SAFE_INTEGER + 1
        const [d] = await failure(() => device.alloc(bytes, 'giant'))
        expect(d!.code).toBe('device/buffer-too-large')
        expect(d!.message).toContain('giant')
        expect(d!.message).toContain(String(bytes))
        const { maxBufferBytes, maxBindingBytes } = device.limits
        expect(d!.message).toContain(
          maxBindingBytes < maxBufferBytes ? 'in one kernel argument' : 'in one buffer',
        )
      })

      test('rejects transfers that do not fit the buffer', async () => {
        const b = device.alloc(8, 'small')
        expect(await codeOf(() => device.upload(b, new Float32Array(3)))).toBe('device/range')
        expect(await codeOf(() => device.upload(b, new Float32Array(2), 4))).toBe('device/range')
        expect(await codeOf(() => device.upload(b, new Float32Array(1), -4))).toBe('device/range')
        expect(await codeOf(() => device.download(b, 12))).toBe('device/range')
        b.free()
      })
    })

    describe('kernels', () => {
      test('copy with a scale', async () => {
        for (const n of [1, 63, 64, 65, 1000]) {
          const x = await filled(iota(n), 'x')
          const y = await filled(new Float32Array(n + 1).fill(-1), 'y')
          await device.run([await launch(texts.scale, 'scale', n, [x, 3, y, n])])
          expect(await floats(y)).toEqual(Float32Array.from([...iota(n).map((v) => 3 * v), -1]))
          x.free()
          y.free()
        }
      })

      test('reduce within blocks', async () => {
        const x = await filled(iota(64 * 10), 'x')
        const y = device.alloc(40, 'y')
        await device.run([await launch(texts.sums, 'sums', 10, [x, y, 10])])
        const expected = Float32Array.from({ length: 10 }, (_, s) => 64 * 64 * s + (64 * 63) / 2)
        expect(await floats(y)).toEqual(expected)
        x.free()
        y.free()
      })

      test('take scalars of every type, in order', async () => {
        const y = device.alloc(20, 'y')
        for (const [a, b, c, d, e] of [
          [1.5, -7, 9, 1, -0.25],
          [-(2 ** 20), -(2 ** 24), 2 ** 31, 0, 3],
        ] as const) {
          await device.run([await launch(texts.scalars, 'scalars', 1, [a, y, b, c, d, e])])
          expect(await floats(y)).toEqual(Float32Array.of(a, b, c, d, e))
        }
        y.free()
      })

      test('know their position in a three-dimensional grid', async () => {
        const y = await filled(new Float32Array(24).fill(-1), 'y')
        await device.run([await launch(texts.blocks, 'blocks', 24, [y])])
        expect(await floats(y)).toEqual(iota(24))
        y.free()
      })

      test('run in the order of the commands, clears included', async () => {
        const y = await filled(iota(100), 'y')
        const n = 100
        const increment = await launch(texts.steps, 'increment', n, [y, n])
        const double = await launch(texts.steps, 'double', n, [y, n])
        await device.run([
          increment,
          { kind: 'clear', buffer: y },
          increment,
          double,
          increment,
          double,
          double,
        ])
        expect(await floats(y)).toEqual(new Float32Array(n).fill(12))
        await device.run([])
        y.free()
      })

      test('have the scalars of their own launch among many', async () => {
        const x = await filled(Float32Array.of(1), 'x')
        const ys = Array.from({ length: 300 }, (_, k) => device.alloc(4, `y${k}`))
        const commands = await Promise.all(ys.map((y, k) => launch(texts.scale, 'scale', 1, [x, k, y, 1])))
        // A short list before a long one and after it: what was prepared for one must not serve the other wrongly.
        await device.run(commands.slice(0, 2))
        await device.run(commands)
        await device.run([commands[7]!, commands[3]!])
        await device.run(commands.slice(100))
        const got: number[] = []
        for (const y of ys) got.push((await floats(y))[0]!)
        expect(got).toEqual(ys.map((_, k) => k))
        for (const b of [x, ...ys]) b.free()
      })

      test('run many times', async () => {
        const y = await filled(new Float32Array(64), 'y')
        const step = await launch(texts.steps, 'increment', 64, [y, 64])
        for (let k = 0; k < 20; k++) await device.run(Array.from({ length: 50 }, () => step))
        expect(await floats(y)).toEqual(new Float32Array(64).fill(1000))
        y.free()
      })

      test('calls may overlap', async () => {
        const buffers = await Promise.all(Array.from({ length: 8 }, (_, k) => filled(iota(64 + k), `x${k}`)))
        await Promise.all(
          buffers.map(async (b, k) =>
            device.run([await launch(texts.steps, 'increment', 64 + k, [b, 64 + k])]),
          ),
        )
        for (const [k, b] of buffers.entries()) {
          expect(await floats(b)).toEqual(iota(64 + k).map((v) => v + 1))
          b.free()
        }
      })
    })

    test('times each repeat, in milliseconds whose sum is at most the elapsed time', async () => {
      const y = await filled(new Float32Array(4096), 'y')
      const step = await launch(texts.steps, 'increment', 4096, [y, 4096])
      const start = performance.now()
      const times = await device.time([step, { kind: 'clear', buffer: y }, step, step], 5)
      const waited = performance.now() - start
      expect(times.length).toBe(5)
      for (const t of times) expect(t).toBeGreaterThan(0)
      expect(times.reduce((a, b) => a + b)).toBeLessThanOrEqual(waited)
      expect(await floats(y)).toEqual(new Float32Array(4096).fill(2))
      expect(await device.time([step], 0)).toEqual([])
      y.free()
    })

    describe('mistakes', () => {
      test('code that does not compile: the line is named and shown', async () => {
        const { module, line, token } = texts.broken
        const [d] = await failure(() => device.compile(module))
        expect(d!.code).toBe('device/compile')
        expect(d!.message).toContain(module.name)
        if (line !== null) expect(d!.message).toMatch(new RegExp(`\\b${line}\\b`))
        expect([d!.message, ...(d!.notes ?? [])].join('\n')).toContain(token)
        // The device lives on.
        await device.compile(texts.scale.module)
      })

      test('code for another device', async () => {
        const { module } = texts.scale
        const target = module.target === 'cuda' ? 'wgsl' : 'cuda'
        expect(await codeOf(() => device.compile({ ...module, target }))).toBe('device/target')
      })

      test('blocks that are too large', async () => {
        const { maxThreadsPerBlock } = device.limits
        if (!Number.isFinite(maxThreadsPerBlock)) return
        const { module } = texts.scale
        const entries = module.entries.map((e) => ({ ...e, block: [maxThreadsPerBlock + 1, 1, 1] as const }))
        const [d] = await failure(() => device.compile({ ...module, entries }))
        expect(d!.code).toBe('device/over-limit')
        expect(d!.message).toContain(String(maxThreadsPerBlock))
      })

      test('grids out of range', async () => {
        const y = device.alloc(4, 'y')
        const ok = await launch(texts.steps, 'increment', 1, [y, 1])
        const limit = device.limits.maxGridDim[1]
        for (const grid of [
          [0, 1, 1],
          [1, 1.5, 1],
          [1, Number.isFinite(limit) ? limit + 1 : Number.NaN, 1],
        ] as const) {
          const [d] = await failure(() => device.run([{ ...ok, grid } as Command]))
          expect(d!.code).toBe('device/grid')
          expect(d!.message).toContain('increment')
        }
        y.free()
      })

      test('arguments that do not fit the signature', async () => {
        const y = device.alloc(4, 'y')
        for (const args of [[y], [y, 1, 1], [1, y], [y, 0.5], [y, 2 ** 31], [y, Number.NaN]])
          expect(
            await codeOf(async () => device.run([await launch(texts.steps, 'increment', 1, args)])),
          ).toBe('device/arguments')
        const [d] = await failure(async () =>
          device.run([await launch(texts.steps, 'incremental', 1, [y, 1])]),
        )
        expect(d!.code).toBe('device/unknown-entry')
        expect(d!.lookup!.candidates).toContain('increment')
        y.free()
      })

      test('a freed buffer', async () => {
        const [y, x] = [device.alloc(4, 'gone'), device.alloc(4, 'x')]
        const step = await launch(texts.steps, 'increment', 1, [y, 1])
        await device.run([step])
        y.free()
        y.free()
        for (const call of [
          () => device.run([step]),
          () => device.time([step], 1),
          () => device.run([{ kind: 'clear', buffer: y }]),
          () => device.upload(y, new Float32Array(1)),
          () => device.download(y),
        ]) {
          const [d] = await failure(call)
          expect(d!.code).toBe('device/freed-buffer')
          expect(d!.message).toContain('gone')
        }
        // Others are not affected.
        await device.run([await launch(texts.steps, 'increment', 1, [x, 1])])
        x.free()
      })

      test('a released module', async () => {
        const module = await device.compile(texts.steps.module)
        const y = await filled(new Float32Array(1), 'y')
        const step = { ...(await launch(texts.steps, 'increment', 1, [y, 1])), module } as Command
        await device.run([step])
        module.release()
        module.release()
        expect(await codeOf(() => device.run([step]))).toBe('device/released-module')
        expect(await floats(y)).toEqual(Float32Array.of(1))
        y.free()
      })

      test('handles of another device, and calls after dispose', async () => {
        const other = await makeDevice()
        const theirs = other.alloc(4, 'theirs')
        const ours = device.alloc(4, 'ours')
        const module = await other.compile(texts.steps.module)
        const step = await launch(texts.steps, 'increment', 1, [theirs, 1])
        expect(await codeOf(() => device.run([step]))).toBe('device/foreign-buffer')
        expect(await codeOf(() => device.run([{ ...step, module, args: [ours, 1] } as Command]))).toBe(
          'device/foreign-module',
        )
        await other.dispose()
        await other.dispose()
        for (const call of [
          () => other.alloc(4, 'late'),
          () => other.upload(theirs, new Float32Array(1)),
          () => other.download(theirs),
          () => other.compile(texts.scale.module),
          () => other.run([]),
          () => other.time([], 1),
        ])
          expect(await codeOf(call)).toBe('device/disposed')
        theirs.free()
        module.release()
        // The first device goes on.
        await device.run([await launch(texts.steps, 'increment', 1, [ours, 1])])
        ours.free()
      })
    })
  })
}
