/**
 * Execution of generated JavaScript on the calling thread: buffers with typed views, compiled functions, and commands.
 */
import { fail, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { arrayClass } from '../../ir/values/arrays.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { Command, CompiledModule, DeviceBuffer, HostArray, ModuleText } from '../device.ts'

type Fn = (...args: (HostArray | number | boolean)[]) => void

export class CpuBuffer implements DeviceBuffer {
  readonly bytes: number
  readonly label: string
  readonly owner: object
  #memory: ArrayBuffer | null
  readonly #views = new Map<Dtype, HostArray>()

  constructor(bytes: number, label: string, owner: object) {
    this.bytes = bytes
    this.label = label
    this.owner = owner
    // Rounded up to 8 bytes, so that a view of any type covers the buffer.
    this.#memory = new ArrayBuffer(Math.ceil(bytes / 8) * 8)
  }

  get freed(): boolean {
    return this.#memory === null
  }

  get memory(): ArrayBuffer {
    invariant(this.#memory, `${this.label} was freed`)
    return this.#memory
  }

  view(dtype: Dtype): HostArray {
    let v = this.#views.get(dtype)
    if (!v) {
      v = new (arrayClass(dtype))(this.memory)
      this.#views.set(dtype, v)
    }
    return v
  }

  free(): void {
    this.#memory = null
    this.#views.clear()
  }
}

export class CpuModule implements CompiledModule {
  readonly text: ModuleText
  readonly owner: object
  readonly functions: Readonly<Record<string, Fn>>
  released = false

  constructor(text: ModuleText, owner: object) {
    this.text = text
    this.owner = owner
    this.functions = functionsOf(text)
  }

  release(): void {
    this.released = true
  }
}

/** Splits a range of bytes, because a `Uint8Array` is limited to 4 GiB and an `ArrayBuffer` may be larger. */
export const chunkRanges = (bytes: number): (readonly [at: number, length: number])[] =>
  Array.from({ length: Math.ceil(bytes / CHUNK_BYTES) }, (_, k) => [
    k * CHUNK_BYTES,
    Math.min(CHUNK_BYTES, bytes - k * CHUNK_BYTES),
  ])
const CHUNK_BYTES = 2 ** 30

function functionsOf(module: ModuleText): Readonly<Record<string, Fn>> {
  const text = `"use strict";\n${module.text.replace(/^export /gm, '')}\nreturn { ${module.entries.map((e) => e.name).join(', ')} };`
  try {
    return new Function(text)() as Record<string, Fn>
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

/** Runs checked commands. */
export function execute(commands: readonly Command[]): void {
  for (const c of commands) {
    if (c.kind === 'clear') {
      const { memory } = c.buffer as CpuBuffer
      for (const [offset, n] of chunkRanges(memory.byteLength)) new Uint8Array(memory, offset, n).fill(0)
      continue
    }
    const module = c.module as CpuModule
    const entry = module.text.entries.find((e) => e.name === c.entry)
    const fn = module.functions[c.entry]
    invariant(entry && fn, `no entry ${c.entry}`)
    const args = entry.args.map((spec, k) => {
      const value = c.args[k]
      if (spec.kind === 'buffer') return (value as CpuBuffer).view(spec.dtype)
      return spec.dtype === 'bool' ? value !== 0 : (value as number)
    })
    fn(...args)
  }
}
