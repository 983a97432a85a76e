/** Calls C libraries through the optional package `koffi`; if it is missing, the device is reported as absent. */
import { reasonOf } from '../../ast/diagnostics/optional-packages.ts'
import { hasDeepStacks, loadKoffi } from '../koffi.ts'
import { absentError } from './errors.ts'

/** A C function. Results are numbers; pointers and handles are passed as bigints or as views of host memory. */
export type CFunction = (...args: unknown[]) => number

export interface CLibrary {
  readonly path: string
  /** Binds a C prototype; undefined if the library lacks the symbol. */
  bind(prototype: string): (CFunction & { readonly async: AsyncCall }) | undefined
}

type AsyncCall = (...args: unknown[]) => void

export interface Ffi {
  readonly version: string
  /** Loads a library. Throws the loader's error. */
  load(path: string): CLibrary
  /** Address of a block of host memory, valid while the block is reachable. */
  addressOf(block: ArrayBuffer): bigint
  /** Reads a NUL-terminated string at an address. */
  readString(address: bigint): string
  /** Lets the process exit without waiting for calls that never return. */
  abandonCalls(): void
}

/** The first path that `open` accepts; the reasons of the others are added to `tried`. */
export function firstUsable<T>(
  paths: readonly string[],
  tried: string[],
  open: (path: string) => T,
): T | undefined {
  for (const path of paths)
    try {
      return open(path)
    } catch (cause) {
      tried.push(`${path}: ${reasonOf(cause)}`)
    }
  return undefined
}

let loading: Promise<Ffi> | undefined

/** Loads koffi. @throws SptError `device/absent` if it is not installed or has no build for this platform */
export function loadFfi(): Promise<Ffi> {
  loading ??= importKoffi()
  return loading
}

async function importKoffi(): Promise<Ffi> {
  const koffi = await loadKoffi('CUDA needs')
  if ('reason' in koffi) throw absentError({ message: koffi.reason, hint: koffi.hint })
  if (!hasDeepStacks(koffi))
    throw absentError({
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
