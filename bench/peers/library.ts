/** NVIDIA's libraries, found where the Python wheels or a toolkit put them, with a table of C calls bound. */
import type { Ffi } from '../../src/runtime/cuda/ffi.ts'
import { libraryCandidates, thisMachine } from '../../src/runtime/cuda/libraries.ts'
import type { PeerStream } from './stream.ts'

/** Calls by name; each returns its library's status, 0 for success. */
type Calls<Names extends string> = Readonly<Record<Names, (...args: unknown[]) => number>>

export interface LibraryNames<Names extends string> {
  /** Of its file, without an ending. */
  readonly file: string
  /** Of its folder beside NVRTC's. */
  readonly sister: string
  /** Libraries to be loaded before. */
  readonly needs: readonly string[]
  /** The parameters of each call in C. */
  readonly prototypes: Readonly<Record<Names, string>>
  readonly create: Names
  readonly destroy: Names
  readonly setStream: Names
  readonly getVersion: Names
}

/** @throws Error naming what was tried */
function bindCalls<Names extends string>(
  ffi: Ffi,
  { file, sister, needs, prototypes }: LibraryNames<Names>,
): Calls<Names> {
  const machine = thisMachine()
  // What a library needs of its sisters is found by name once they are loaded.
  for (const needed of needs)
    for (const path of libraryCandidates(machine, needed, sister))
      try {
        ffi.load(path)
        break
      } catch {}
  const tried: string[] = []
  for (const path of libraryCandidates(machine, file, sister)) {
    try {
      const library = ffi.load(path)
      const calls: Partial<Record<Names, unknown>> = {}
      for (const [call, parameters] of Object.entries(prototypes) as [Names, string][]) {
        const bound = library.bind(`int32_t ${call}(${parameters})`)
        if (!bound) throw new Error(`it has no ${call}`)
        calls[call] = bound
      }
      return calls as Calls<Names>
    } catch (cause) {
      tried.push(`${path}: ${cause instanceof Error ? cause.message.split('\n')[0] : String(cause)}`)
    }
  }
  throw new Error(`${file} could not be loaded (${tried.join('; ')})`)
}

/** A call that failed, by the library's own status. */
export class StatusError extends Error {
  constructor(call: string, status: number) {
    super(`${call} returned status ${status}`)
  }
}

/** A library opened on a stream. */
export class Library<Names extends string> {
  readonly stream: PeerStream
  readonly version: number
  readonly handle: bigint
  readonly #calls: Calls<Names>
  readonly #destroy: Names

  /** @throws Error where the library is not there */
  constructor(stream: PeerStream, names: LibraryNames<Names>) {
    this.stream = stream
    stream.enter()
    this.#calls = bindCalls(stream.ffi, names)
    this.#destroy = names.destroy
    this.handle = this.create(names.create)
    this.call(names.setStream, this.handle, stream.handle)
    const version = new Int32Array(1)
    this.call(names.getVersion, this.handle, version)
    this.version = version[0]!
  }

  /** What a call makes, whose first argument says where. */
  create(name: Names, ...args: unknown[]): bigint {
    this.stream.enter()
    const out = new BigUint64Array(1)
    this.call(name, out, ...args)
    return out[0]!
  }

  /** @throws StatusError */
  call(name: Names, ...args: unknown[]): void {
    const status = this.status(name, ...args)
    if (status !== 0) throw new StatusError(name, status)
  }

  /** The status of a call; 0 for success. */
  status(name: Names, ...args: unknown[]): number {
    return this.#calls[name](...args)
  }

  close(): void {
    this.stream.enter()
    this.status(this.#destroy, this.handle)
  }
}
