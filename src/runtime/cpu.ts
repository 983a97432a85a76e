/** The cpu device: emitted JavaScript over typed arrays, on the calling thread. Works in any JavaScript host. */
import { fail, invariant } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Command, CompiledModule, Device, DeviceBuffer, HostArray, ModuleText } from './device.ts'

type View = HostArray
type Fn = (...args: (View | number | boolean)[]) => void

/** Largest ArrayBuffer of current engines. */
const MAX_BUFFER = 2 ** 33

const VIEW: Readonly<Record<Dtype, new (b: ArrayBuffer) => View>> = {
  f64: Float64Array,
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i8: Int8Array,
  u8: Uint8Array,
  bool: Uint8Array,
}

class CpuBuffer implements DeviceBuffer {
  readonly bytes: number
  readonly label: string
  #memory: ArrayBuffer | null
  readonly #views = new Map<Dtype, View>()

  constructor(bytes: number, label: string) {
    this.bytes = bytes
    this.label = label
    // A whole number of 8-byte words, so that a view of any type covers it.
    this.#memory = new ArrayBuffer(Math.ceil(bytes / 8) * 8)
  }

  get memory(): ArrayBuffer {
    return (
      this.#memory ??
      fail({
        code: 'device/freed',
        message: `buffer ${this.label} is used after it was freed`,
        hint: 'allocate it again',
      })
    )
  }

  view(dtype: Dtype): View {
    const memory = this.memory
    let v = this.#views.get(dtype)
    if (!v) {
      v = new VIEW[dtype](memory)
      this.#views.set(dtype, v)
    }
    return v
  }

  free(): void {
    this.#memory = null
    this.#views.clear()
  }
}

interface CpuModule extends CompiledModule {
  readonly functions: Readonly<Record<string, Fn>>
}

/** Creates the cpu device. It needs `new Function`, which a page's content security policy can forbid. */
export function createCpuDevice(): Device {
  let disposed = false
  const alive = (): void => {
    if (disposed)
      fail({ code: 'device/disposed', message: 'the cpu device was disposed', hint: 'create a new device' })
  }
  const runAll = (commands: readonly Command[]): void => {
    alive()
    for (const c of commands) {
      if (c.kind === 'clear') new Uint8Array((c.buffer as CpuBuffer).memory).fill(0)
      else launch(c)
    }
  }
  return {
    kind: 'cpu',
    name: 'JavaScript',
    limits: {
      maxBufferBytes: MAX_BUFFER,
      maxBindingBytes: MAX_BUFFER,
      maxBuffersPerLaunch: Number.POSITIVE_INFINITY,
      maxThreadsPerBlock: 1024,
      maxBlockDim: [1024, 1024, 64],
      maxGridDim: [2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1],
      maxSharedBytes: 2 ** 30,
    },
    features: new Set(['f64']),
    alloc(bytes, label) {
      alive()
      if (bytes > MAX_BUFFER)
        fail({
          code: 'device/buffer-too-large',
          message: `${label} needs ${bytes} bytes; the cpu device's largest buffer is ${MAX_BUFFER}`,
          hint: 'use a smaller size',
        })
      try {
        return new CpuBuffer(bytes, label)
      } catch {
        return fail({
          code: 'device/out-of-memory',
          message: `no memory for the ${bytes} bytes of ${label}`,
          hint: 'use a smaller size, or free buffers',
        })
      }
    },
    async upload(buffer, data, byteOffset = 0) {
      alive()
      const memory = (buffer as CpuBuffer).memory
      if (byteOffset + data.byteLength > buffer.bytes)
        fail({
          code: 'device/out-of-range',
          message: `${data.byteLength} bytes at ${byteOffset} do not fit ${buffer.label} (${buffer.bytes} bytes)`,
          hint: 'upload at most what was allocated',
        })
      new Uint8Array(memory).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), byteOffset)
    },
    async download(buffer, bytes = buffer.bytes) {
      alive()
      return (buffer as CpuBuffer).memory.slice(0, bytes)
    },
    async compile(module) {
      alive()
      return compile(module)
    },
    async run(commands) {
      runAll(commands)
    },
    async time(commands, repeats) {
      const times: number[] = []
      for (let k = 0; k < repeats; k++) {
        const start = performance.now()
        runAll(commands)
        times.push(performance.now() - start)
      }
      return times
    },
    async dispose() {
      disposed = true
    },
  }
}

function compile(module: ModuleText): CpuModule {
  invariant(module.target === 'js', `the cpu device runs js, not ${module.target}`)
  const text = `"use strict";\n${module.text.replace(/^export /gm, '')}\nreturn { ${module.entries.map((e) => e.name).join(', ')} };`
  try {
    const functions = new Function(text)() as Record<string, Fn>
    return { text: module, functions, release() {} }
  } catch (error) {
    return fail({
      code: 'device/compile',
      message: `the emitted JavaScript of ${module.name} does not compile: ${error instanceof Error ? error.message : String(error)}`,
      hint:
        error instanceof EvalError
          ? 'the page forbids `new Function`: allow unsafe-eval, or import the emitted module'
          : 'this is a bug of sparsetile; please report the kernel',
    })
  }
}

function launch(c: Extract<Command, { kind: 'launch' }>): void {
  const module = c.module as CpuModule
  const entry = module.text.entries.find((e) => e.name === c.entry)
  const fn = module.functions[c.entry]
  invariant(entry && fn, `no entry ${c.entry}`)
  const args = entry.args.map((spec, k) => {
    const value = c.args[k]
    if (spec.kind === 'buffer') return (value as CpuBuffer).view(spec.dtype)
    return spec.dtype === 'bool' ? value !== 0 : (value as number)
  })
  // Entries loop over the grid themselves.
  fn(...args)
}
