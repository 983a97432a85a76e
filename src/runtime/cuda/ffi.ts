/** Calling C libraries through `koffi`, which is optional: its absence is a reason, not a crash. */
import { hasDeepStacks, type Koffi, loadKoffi } from '../koffi.ts'
import { absent } from './errors.ts'

/** A C function. Results are numbers; pointers and handles are passed as bigints or as views of host memory. */
export type CFunction = (...args: unknown[]) => number

export interface CLibrary {
  readonly path: string
  /** Binds `prototype`; undefined where the library has no such symbol. */
  bind(prototype: string): (CFunction & { readonly async: AsyncCall }) | undefined
}

type AsyncCall = (...args: unknown[]) => void

export interface Ffi {
  readonly version: string
  /** Throws the loader's own error. */
  load(path: string): CLibrary
  /** The address of a block of host memory; it stays valid while the block is reachable. */
  addressOf(block: ArrayBuffer): bigint
  /** Reads a NUL-terminated string at an address. */
  readString(address: bigint): string
  /** From now on the process ends, when it exits, without waiting for calls that never return. */
  abandonCalls(): void
}

const HINT = 'npm install koffi (an optional dependency; prebuilt for Linux, macOS and Windows)'

let loading: Promise<Ffi> | undefined

/** Throws `device/absent` where koffi is not installed or has no build for this platform. */
export function loadFfi(): Promise<Ffi> {
  loading ??= importKoffi()
  return loading
}

async function importKoffi(): Promise<Ffi> {
  let koffi: Koffi
  try {
    koffi = await loadKoffi()
  } catch (cause) {
    const text = cause instanceof Error ? cause.message.split('\n')[0]! : String(cause)
    throw absent({ message: `CUDA needs the package koffi, which cannot be loaded: ${text}`, hint: HINT })
  }
  if (!hasDeepStacks(koffi))
    throw absent({
      message:
        'another package has made calls through koffi before, with stacks that are too small for compilers',
      hint: 'open the CUDA device first',
    })
  return {
    version: koffi.version,
    load(path) {
      const library = koffi.load(path)
      return {
        path,
        bind(prototype) {
          try {
            return library.func(prototype) as unknown as CFunction & { readonly async: AsyncCall }
          } catch {
            return undefined
          }
        },
      }
    },
    addressOf: (block) => koffi.address(block),
    readString: (address) => (address === 0n ? '' : koffi.decode.string(address)),
    abandonCalls() {
      const c = koffi.load(process.platform === 'win32' ? 'ucrtbase.dll' : null)
      const end = c.func('void _exit(int)')
      process.once('exit', (code) => end(code))
    },
  }
}
