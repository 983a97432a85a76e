/** NVRTC compiles CUDA C++ to machine code. It works, and is tested, without a device. */
import { type Diagnostic, type Span, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { ModuleText } from '../device.ts'
import { absentError } from './errors.ts'
import { type CFunction, type CLibrary, type Ffi, firstUsable } from './ffi.ts'
import { builtinsLibraries, type Machine, nvrtcCandidates } from './libraries.ts'

export interface CompileTarget {
  /** `sm_90a`, `sm_80`, or `compute_90` for PTX that the driver compiles for a newer chip. */
  readonly arch: string
  readonly output: 'cubin' | 'ptx'
}

export interface Nvrtc {
  readonly path: string
  readonly major: number
  readonly minor: number
  /** Supported compute capabilities, such as 75, 80, 90. */
  readonly supported: readonly number[]
  /** Rejects with `device/compile`. The result is a CUBIN, or PTX with its terminating NUL. */
  compile(module: ModuleText, target: CompileTarget, options: readonly string[]): Promise<Uint8Array>
}

export const BASE_OPTIONS: readonly string[] = ['--std=c++17', '-lineinfo', '-default-device']

/**
 * Compilation target for a chip: its own architecture with chip-specific instructions (`a`, from 9.0 on), otherwise the
 * newest lower architecture that NVRTC supports, as PTX across generations. Undefined if there is none.
 */
export function chooseTarget(
  chip: { readonly major: number; readonly minor: number },
  nvrtc: Pick<Nvrtc, 'major' | 'supported'>,
): CompileTarget | undefined {
  const cc = chip.major * 10 + chip.minor
  // NVRTC 11.8 supports 9.0, but not 9.0a.
  const suffix = cc >= 90 && nvrtc.major >= 12 ? 'a' : ''
  if (nvrtc.supported.includes(cc)) return { arch: `sm_${cc}${suffix}`, output: 'cubin' }
  const lower = nvrtc.supported.filter((s) => s < cc)
  if (lower.length === 0) return undefined
  // Machine code runs on later chips of the same generation; only PTX runs on later generations.
  const best = Math.max(...lower)
  return Math.floor(best / 10) === chip.major
    ? { arch: `sm_${best}`, output: 'cubin' }
    : { arch: `compute_${best}`, output: 'ptx' }
}

const PARAMETERS = {
  nvrtcVersion: 'void *, void *',
  nvrtcGetNumSupportedArchs: 'void *',
  nvrtcGetSupportedArchs: 'void *',
  nvrtcCreateProgram: 'void *, void *, str, int32_t, void *, void *',
  nvrtcCompileProgram: 'uintptr_t, int32_t, const char **',
  nvrtcGetProgramLogSize: 'uintptr_t, void *',
  nvrtcGetProgramLog: 'uintptr_t, void *',
  nvrtcGetCUBINSize: 'uintptr_t, void *',
  nvrtcGetCUBIN: 'uintptr_t, void *',
  nvrtcGetPTXSize: 'uintptr_t, void *',
  nvrtcGetPTX: 'uintptr_t, void *',
  nvrtcDestroyProgram: 'void *',
} as const
type Calls = Record<keyof typeof PARAMETERS, CFunction & { readonly async: (...args: unknown[]) => void }>

/** Time limit of NVRTC in seconds: for some short sources, its optimiser (CUDA 13.0) never ends and cannot be stopped. */
const MAX_SECONDS = 180

const BUILTINS_FAILED = 7
const builtinsError = (path: string, log: string): Error =>
  absentError({
    message: `NVRTC (${path}) lacks its own part libnvrtc-builtins of the same version`,
    hint: 'install the whole CUDA toolkit or the wheel nvidia-cuda-nvrtc, or name another library with SPT_NVRTC',
    notes: [log.replaceAll('\0', '').trim()],
  })

const timeoutError = (module: ModuleText, seconds: number): SptError =>
  new SptError({
    code: 'device/compile',
    message: `NVRTC has not compiled module '${module.name}' (${module.text.length} characters) within ${seconds} s`,
    expected: 'a text that its optimiser finishes',
    hint: 'another order of loops or other factors give another text; `spt emit --target cuda` prints this one',
  })

/** `nvrtcResult`. */
const STATUS: Readonly<Record<number, string>> = {
  1: 'out of memory',
  2: 'the program could not be created',
  3: 'invalid input',
  4: 'invalid program',
  5: 'invalid option',
  6: 'compilation failed',
  [BUILTINS_FAILED]: 'built-in operations failed',
  11: 'internal error',
}

const statusText = (code: number): string => STATUS[code] ?? `NVRTC error ${code}`

function bind(library: CLibrary): Calls {
  const calls: Partial<Calls> = {}
  for (const [name, parameters] of Object.entries(PARAMETERS) as [keyof Calls, string][]) {
    const call = library.bind(`int32_t ${name}(${parameters})`)
    if (!call) throw new Error(`it has no ${name}: NVRTC 11.2 or later is needed`)
    calls[name] = call
  }
  return calls as Calls
}

/** Opens NVRTC. @param abandonCalls - Lets the process exit if a call of the library never returns */
export function openNvrtc(
  library: CLibrary,
  abandonCalls: () => void,
  maxSeconds: number = MAX_SECONDS,
): Nvrtc {
  const calls = bind(library)
  const expect = (call: keyof Calls, code: number): void => {
    if (code !== 0) throw new Error(`${call}: ${statusText(code)}`)
  }
  const [major, minor] = [new Int32Array(1), new Int32Array(1)]
  expect('nvrtcVersion', calls.nvrtcVersion(major, minor))
  const count = new Int32Array(1)
  expect('nvrtcGetNumSupportedArchs', calls.nvrtcGetNumSupportedArchs(count))
  const supported = new Int32Array(count[0]!)
  expect('nvrtcGetSupportedArchs', calls.nvrtcGetSupportedArchs(supported))

  const read = (size: keyof Calls, get: keyof Calls, program: bigint): Uint8Array => {
    const bytes = new BigUint64Array(1)
    expect(size, calls[size](program, bytes))
    const data = new Uint8Array(Number(bytes[0]!))
    if (data.length > 0) expect(get, calls[get](program, data))
    return data
  }

  async function compile(module: ModuleText, target: CompileTarget, options: readonly string[]) {
    const file = `${module.name}.cu`
    const source = Buffer.from(`${module.text}\0`)
    const handle = new BigUint64Array(1)
    const createStatus = calls.nvrtcCreateProgram(handle, source, file, 0, null, null)
    if (createStatus !== 0) throw compileError(module, file, '', statusText(createStatus))
    const program = handle[0]!
    let timedOut = false
    try {
      const args = [`--gpu-architecture=${target.arch}`, ...options]
      // Runs on a separate thread, because large sources take seconds.
      const status = await new Promise<number | 'late'>((resolve, reject) => {
        const timer = setTimeout(() => resolve('late'), maxSeconds * 1000)
        calls.nvrtcCompileProgram.async(program, args.length, args, (error: unknown, code: number) => {
          clearTimeout(timer)
          if (error) reject(error)
          else resolve(code)
        })
      })
      if (status === 'late') {
        timedOut = true
        abandonCalls()
        throw timeoutError(module, maxSeconds)
      }
      if (status !== 0) {
        const log = new TextDecoder().decode(read('nvrtcGetProgramLogSize', 'nvrtcGetProgramLog', program))
        if (status === BUILTINS_FAILED) throw builtinsError(library.path, log)
        throw compileError(module, file, log.replaceAll('\0', ''), statusText(status))
      }
      return target.output === 'cubin'
        ? read('nvrtcGetCUBINSize', 'nvrtcGetCUBIN', program)
        : read('nvrtcGetPTXSize', 'nvrtcGetPTX', program)
    } finally {
      // After a timeout the program is still being compiled, so it is not destroyed.
      if (!timedOut) calls.nvrtcDestroyProgram(handle)
    }
  }

  return { path: library.path, major: major[0]!, minor: minor[0]!, supported: [...supported], compile }
}

/**
 * Loads the first NVRTC whose code the driver accepts (CUDA major not above the driver's).
 * @throws SptError `device/absent` without a usable NVRTC
 */
export function loadNvrtc(ffi: Ffi, machine: Machine, driverVersion: number, explicit?: string): Nvrtc {
  const tried: string[] = []
  const driverMajor = Math.floor(driverVersion / 1000)
  const found = firstUsable(nvrtcCandidates(machine, explicit), tried, (path) => {
    for (const part of builtinsLibraries(machine, path)) ffi.load(part)
    const nvrtc = openNvrtc(ffi.load(path), ffi.abandonCalls)
    if (nvrtc.major <= driverMajor) return nvrtc
    throw new Error(`NVRTC ${nvrtc.major}.${nvrtc.minor} is newer than the driver's CUDA ${driverMajor}`)
  })
  if (found) return found
  throw absentError({
    message: 'the GPU is there, but NVRTC (libnvrtc.so), which compiles kernels for it, could not be loaded',
    expected: `NVRTC 11.2 or later, of CUDA ${driverMajor} at most`,
    hint: 'install the CUDA toolkit, or the Python wheel nvidia-cuda-nvrtc, or name the library with SPT_NVRTC',
    notes: tried,
  })
}

interface LogMessage {
  readonly severity: 'error' | 'warning'
  /** 1-based line of the source; undefined for messages about the whole module (ptxas, options). */
  readonly line?: number
  readonly text: string
}

const AT_LINE = /^(.*)\((\d+)\): (catastrophic error|error|warning)(?: #\d+(?:-D)?)?: (.*)$/
const OVERALL = /^(?:ptxas|nvrtc|nvlink)\s*:?\s*(error|fatal|warning)\s*:\s*(.*)$/

/** Parses a compiler log. `file` is the name of the compiled source; messages in headers keep the header's name. */
export function parseLog(log: string, file: string): LogMessage[] {
  const messages: LogMessage[] = []
  for (const raw of log.split('\n')) {
    const row = raw.trimEnd()
    const match = AT_LINE.exec(row)
    if (match) {
      const severity = match[3] === 'warning' ? 'warning' : 'error'
      const isInSource = match[1] === file
      messages.push(
        isInSource
          ? { severity, line: Number(match[2]), text: match[4]! }
          : { severity, text: `${match[1]}(${match[2]}): ${match[4]}` },
      )
      continue
    }
    const overall = OVERALL.exec(row)
    if (overall) {
      const severity = overall[1] === 'warning' ? 'warning' : 'error'
      messages.push({ severity, text: overall[2]! })
    }
  }
  return messages
}

/** Numbered lines around `line`, which is marked. */
export function excerpt(text: string, line: number, context = 2): string {
  const lines = text.split('\n')
  const first = Math.max(1, line - context)
  const last = Math.min(lines.length, line + context)
  const width = String(last).length
  const rows: string[] = []
  for (let n = first; n <= last; n++) {
    rows.push(`${n === line ? '>' : ' '} ${String(n).padStart(width)} | ${lines[n - 1] ?? ''}`)
  }
  return rows.join('\n')
}

function spanOfLine(source: string, text: string, line: number): Span {
  const lines = text.split('\n')
  const index = Math.min(Math.max(line, 1), lines.length) - 1
  let start = 0
  for (let i = 0; i < index; i++) start += lines[i]!.length + 1
  return { source, start, end: start + lines[index]!.length }
}

const MAX_LOG = 4000

/** Error of a module that did not compile; `file` is the name of the source in the log. */
export function compileError(module: ModuleText, file: string, log: string, status: string): SptError {
  const errors = parseLog(log, file).filter((m) => m.severity === 'error')
  const first = errors.find((m) => m.line !== undefined) ?? errors[0]
  const notes: string[] = []
  if (first?.line !== undefined) notes.push(excerpt(module.text, first.line))
  const trimmedLog = log.trim()
  if (trimmedLog)
    notes.push(
      trimmedLog.length > MAX_LOG
        ? `${trimmedLog.slice(0, MAX_LOG)}\n… (${trimmedLog.length} characters)`
        : trimmedLog,
    )
  const lineText = first?.line === undefined ? '' : ` line ${first.line}:`
  const furtherErrors = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
  const diagnostic: Diagnostic = {
    code: 'device/compile',
    message: `CUDA module '${module.name}':${lineText} ${first?.text ?? status}${furtherErrors}`,
    expected: 'CUDA C++ that NVRTC accepts',
    notes,
  }
  return new SptError(
    first?.line === undefined
      ? diagnostic
      : { ...diagnostic, span: spanOfLine(file, module.text, first.line) },
  )
}
