/** NVIDIA's libraries, found where the Python wheels or a toolkit put them, with a table of C calls bound. */
import { dirname, join } from 'node:path'
import type { Ffi } from '../../src/runtime/cuda/ffi.ts'
import { nvrtcCandidates, thisMachine } from '../../src/runtime/cuda/libraries.ts'

/** Calls by name; each returns its library's status, 0 for success. */
export type Calls<Names extends string> = Readonly<Record<Names, (...args: unknown[]) => number>>

export interface Library<Names extends string> {
  readonly path: string
  readonly calls: Calls<Names>
}

/** The folders in which NVRTC may lie hold its sisters too; wheels of older toolkits give each a folder of its own. */
function candidates(name: string, sister: string): string[] {
  const machine = thisMachine()
  const paths: string[] = []
  for (const nvrtc of nvrtcCandidates(machine)) {
    if (!nvrtc.startsWith('/')) continue
    for (const folder of [dirname(nvrtc), join(dirname(nvrtc), '../..', sister, 'lib')])
      for (const file of machine.list(folder))
        if (file.startsWith(`${name}.so`)) paths.push(join(folder, file))
  }
  return [...new Set([...paths, `${name}.so`, `${name}.so.13`, `${name}.so.12`])]
}

/** @throws Error naming what was tried */
export function openLibrary<Names extends string>(
  ffi: Ffi,
  name: string,
  sister: string,
  prototypes: Readonly<Record<Names, string>>,
  before: readonly string[] = [],
): Library<Names> {
  // What a library needs of its sisters is found by name once they are loaded.
  for (const needed of before)
    for (const path of candidates(needed, sister))
      try {
        ffi.load(path)
        break
      } catch {}
  const tried: string[] = []
  for (const path of candidates(name, sister)) {
    try {
      const library = ffi.load(path)
      const calls: Partial<Record<Names, unknown>> = {}
      for (const [call, parameters] of Object.entries(prototypes) as [Names, string][]) {
        const bound = library.bind(`int32_t ${call}(${parameters})`)
        if (!bound) throw new Error(`it has no ${call}`)
        calls[call] = bound
      }
      return { path, calls: calls as Calls<Names> }
    } catch (cause) {
      tried.push(`${path}: ${cause instanceof Error ? cause.message.split('\n')[0] : String(cause)}`)
    }
  }
  throw new Error(`${name} could not be loaded (${tried.join('; ')})`)
}

/** A call that failed, by the library's own status. */
export class StatusError extends Error {
  readonly status: number

  constructor(call: string, status: number) {
    super(`${call} returned status ${status}`)
    this.status = status
  }
}
