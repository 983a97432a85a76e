/** Vendor libraries of CUDA, opened for a context, and prepared calls with operands. */
import { failAs, failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type {
  ArgSpec,
  DeviceBuffer,
  Library,
  LibraryArgument,
  LibraryCall,
  LibraryText,
  ModuleText,
  Operands,
  Routine,
} from '../device.ts'
import type { CudaContext } from './context.ts'
import type { Handle } from './driver.ts'
import { type CFunction, type Ffi, firstUsable } from './ffi.ts'
import { libraryCandidates, type Machine } from './libraries.ts'
import type { CudaMemory } from './memory.ts'

export interface LibraryHost {
  readonly context: CudaContext
  readonly memory: CudaMemory
  alloc(bytes: number, label: string): DeviceBuffer
}

type Calls = ReadonlyMap<string, CFunction>

/** @throws SptError `device/no-library` */
function loadLibrary(ffi: Pick<Ffi, 'load'>, machine: Machine, text: LibraryText): Calls {
  const { file, folder, needs, prototypes } = text
  // Dependencies are resolved by name once they are loaded.
  for (const dependency of needs)
    firstUsable(libraryCandidates(machine, dependency, folder), [], (path) => ffi.load(path))
  const tried: string[] = []
  const calls = firstUsable(libraryCandidates(machine, file, folder), tried, (path) => {
    const library = ffi.load(path)
    return new Map(
      Object.entries(prototypes).map(([call, parameters]) => {
        const fn = library.bind(`int32_t ${call}(${parameters})`)
        if (!fn) throw new Error(`it has no ${call}`)
        return [call, fn]
      }),
    )
  })
  if (calls) return calls
  return failWith('device/no-library', `${text.name} is not installed, or cannot be loaded`, {
    expected: `${file}.so, of a CUDA toolkit or of NVIDIA's Python wheels`,
    notes: tried,
  })
}

export class CudaLibrary implements Library {
  readonly name: string
  readonly version: string
  readonly #calls: Calls

  /** @throws SptError `device/no-library`, `device/library` */
  constructor(
    readonly host: LibraryHost,
    ffi: Pick<Ffi, 'load'>,
    machine: Machine,
    readonly text: LibraryText,
  ) {
    this.name = text.name
    this.version = ''
    this.#calls = loadLibrary(ffi, machine, text)
    const handle = this.createHandle(text.create)
    const out = new Int32Array(1)
    this.call(text.version.call, handle, out)
    this.status(text.destroy, handle)
    let remainder = out[0]!
    const parts = text.version.units.map((unit) => {
      const part = Math.floor(remainder / unit)
      remainder %= unit
      return part
    })
    this.version = parts.join('.')
  }

  /** Calls a constructor of the library, whose first argument is the address of the new handle. */
  createHandle(name: string, ...args: readonly unknown[]): Handle {
    const out = new BigUint64Array(1)
    this.call(name, out, ...args)
    return out[0]!
  }

  /** @throws SptError `device/library` */
  call(name: string, ...args: readonly unknown[]): void {
    const status = this.status(name, ...args)
    if (status !== 0) this.failCall(name, status)
  }

  failCall(name: string, status: number): never {
    return failAs('device/library', {
      message: `${name} of ${`${this.name} ${this.version}`.trim()} returned status ${status}`,
      expected: 'status 0',
      hint: 'see the status in its documentation, or tune without libraries (--no-libraries)',
    })
  }

  status(name: string, ...args: readonly unknown[]): number {
    const call = this.#calls.get(name)
    invariant(call, `${this.name} declares no ${name}`)
    return call(...args)
  }

  prepare(routine: Routine, variant: string, operands: Operands): CudaLibraryCall {
    return this.host.context.inContext(`preparing ${routine.name} of ${this.name}`, () => {
      const call = new CudaLibraryCall(this, routine, variant, operands)
      try {
        call.prepare()
        return call
      } catch (error) {
        call.release()
        throw error
      }
    })
  }
}

/** A library call with a handle of its own, so that calls on several streams share no memory. */
export class CudaLibraryCall implements LibraryCall {
  readonly text: ModuleText
  readonly buffers: readonly DeviceBuffer[]
  /** Created handles with the functions that destroy them. */
  readonly #objects = new Map<string, { readonly object: Handle; readonly destroy: string }>()
  readonly #memory: DeviceBuffer[] = []
  #arguments: readonly unknown[] = []
  freed = false

  constructor(
    readonly library: CudaLibrary,
    private readonly routine: Routine,
    private readonly variant: string,
    private readonly operands: Operands,
  ) {
    const indices = [...operands.axes.values()].flatMap((a) => [a.offsets, a.indices])
    this.buffers = [...operands.buffers.values(), ...indices]
    const args = this.buffers.map(
      (b): ArgSpec => ({ kind: 'buffer', name: b.label, dtype: 'u8', access: 'read_write' }),
    )
    const name = routine.run
    this.text = {
      target: 'cuda',
      name,
      text: '',
      entries: [{ name, args, block: [1, 1, 1], sharedBytes: 0 }],
    }
  }

  /** Creates objects and workspaces, and runs the library's preparation. The context must be current. */
  prepare(): void {
    const { library } = this
    const { text, host } = library
    const routine = this.routine
    this.#objects.set('handle', { object: library.createHandle(text.create), destroy: text.destroy })
    const { handle } = host.context.main
    library.call(text.stream, this.#handle, handle)
    if (text.workspace) library.call(text.workspace.call, this.#handle, ...this.#alloc(text.workspace.bytes))
    for (const o of routine.make) {
      const object = library.createHandle(o.call, ...this.#valuesOf(o.arguments))
      this.#objects.set(o.into, { object, destroy: o.destroy })
    }
    const args = this.#valuesOf(routine.arguments)
    this.#arguments = args
    if (routine.size) {
      const size = new BigUint64Array(1)
      library.call(routine.size, ...args, size)
      this.#arguments = [...args, this.#alloc(Number(size[0]!))[0]]
    }
    if (!routine.prepare) return
    const status = library.status(routine.prepare, ...this.#arguments)
    if (status !== 0 && !text.unsupported.includes(status)) library.failCall(routine.prepare, status)
    host.context.drain()
  }

  /** Queues the call. The context must be current. @throws SptError `device/library` */
  issue(stream: Handle): void {
    this.library.call(this.library.text.stream, this.#handle, stream)
    this.library.call(this.routine.run, ...this.#arguments)
  }

  get owner(): CudaContext {
    return this.library.host.context
  }

  get #handle(): Handle {
    return this.#objects.get('handle')!.object
  }

  #alloc(bytes: number): readonly [address: bigint, bytes: number] {
    const memory = this.library.host.alloc(bytes, `the workspace of ${this.routine.run}`)
    this.#memory.push(memory)
    return [this.#address(memory), bytes]
  }

  #address = (b: DeviceBuffer): bigint =>
    this.library.host.memory.resolve(b, `preparing ${this.routine.name}`).address

  #valuesOf(list: readonly LibraryArgument[]): unknown[] {
    return list.map((a) => this.#value(a))
  }

  #value(a: LibraryArgument): unknown {
    const { numbers, buffers, axes } = this.operands
    if (typeof a === 'number') return a
    if (typeof a === 'string') {
      if (a === 'variant') return this.routine.variants[this.variant]
      const buffer = buffers.get(a)
      const value = this.#objects.get(a)?.object ?? numbers.get(a) ?? (buffer && this.#address(buffer))
      invariant(value !== undefined, `${this.routine.name}: nothing is called ${a}`)
      return value
    }
    if ('float' in a) return Float32Array.of(typeof a.float === 'number' ? a.float : numbers.get(a.float)!)
    const axis = axes.get(a.axis)
    invariant(axis, `${this.routine.name}: there is no axis ${a.axis}`)
    return a.of === 'entries' ? axis.entries : this.#address(axis[a.of])
  }

  release(): void {
    if (this.freed) return
    this.freed = true
    const { context } = this.library.host
    context.release(`releasing ${this.routine.name}`, () => {
      for (const { object, destroy } of [...this.#objects.values()].reverse())
        this.library.status(destroy, object)
      for (const b of this.#memory) b.free()
    })
  }
}
