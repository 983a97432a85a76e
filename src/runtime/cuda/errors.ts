/** CUDA's result codes: explanations, classification, and diagnostics. */
import { type Advice, type Diagnostic, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Entry } from '../device.ts'

/** `CUresult` values that this runtime distinguishes; the driver names the others. */
export const CUDA = {
  SUCCESS: 0,
  OUT_OF_MEMORY: 2,
  STUB_LIBRARY: 34,
  NO_DEVICE: 100,
  INVALID_DEVICE: 101,
  INVALID_IMAGE: 200,
  NO_BINARY_FOR_GPU: 209,
  UNSUPPORTED_PTX_VERSION: 222,
  NOT_FOUND: 500,
  NOT_READY: 600,
  ILLEGAL_ADDRESS: 700,
  LAUNCH_OUT_OF_RESOURCES: 701,
  LAUNCH_TIMEOUT: 702,
  ASSERT: 710,
  HARDWARE_STACK_ERROR: 714,
  ILLEGAL_INSTRUCTION: 715,
  MISALIGNED_ADDRESS: 716,
  INVALID_ADDRESS_SPACE: 717,
  INVALID_PC: 718,
  LAUNCH_FAILED: 719,
  SYSTEM_NOT_READY: 802,
  SYSTEM_DRIVER_MISMATCH: 803,
  UNKNOWN: 999,
} as const

const MEANING: Readonly<Record<number, string>> = {
  [CUDA.OUT_OF_MEMORY]: 'the device has not enough free memory',
  [CUDA.STUB_LIBRARY]: 'the library is the stub that toolkits ship for linking, not the driver',
  [CUDA.NO_DEVICE]: 'the driver sees no CUDA device',
  [CUDA.INVALID_DEVICE]: 'there is no device of that number',
  [CUDA.INVALID_IMAGE]: 'the compiled kernel is not valid for this driver',
  [CUDA.NO_BINARY_FOR_GPU]: 'the compiled kernel is for another chip',
  [CUDA.UNSUPPORTED_PTX_VERSION]: 'NVRTC is newer than the driver',
  [CUDA.NOT_FOUND]: 'the module has no entry of that name',
  [CUDA.ILLEGAL_ADDRESS]: 'a kernel read or wrote memory that is not allocated',
  [CUDA.LAUNCH_OUT_OF_RESOURCES]: 'a block needs more registers or threads than a multiprocessor has',
  [CUDA.LAUNCH_TIMEOUT]: 'a kernel ran longer than the system allows',
  [CUDA.ASSERT]: 'an assertion in a kernel failed',
  [CUDA.HARDWARE_STACK_ERROR]: 'a kernel overran its stack',
  [CUDA.ILLEGAL_INSTRUCTION]: 'a kernel met an illegal instruction',
  [CUDA.MISALIGNED_ADDRESS]: 'a kernel read or wrote at an address that is not aligned for its type',
  [CUDA.INVALID_ADDRESS_SPACE]: 'a kernel used an address of another memory space',
  [CUDA.INVALID_PC]: 'a kernel jumped outside its code',
  [CUDA.LAUNCH_FAILED]: 'a kernel failed while it ran',
  [CUDA.SYSTEM_NOT_READY]: 'the system has not finished its set-up (fabric manager)',
  [CUDA.SYSTEM_DRIVER_MISMATCH]: 'the driver library and the kernel module are of different versions',
}

const STICKY = new Set<number>([
  CUDA.ILLEGAL_ADDRESS,
  CUDA.LAUNCH_TIMEOUT,
  CUDA.ASSERT,
  CUDA.HARDWARE_STACK_ERROR,
  CUDA.ILLEGAL_INSTRUCTION,
  CUDA.MISALIGNED_ADDRESS,
  CUDA.INVALID_ADDRESS_SPACE,
  CUDA.INVALID_PC,
  CUDA.LAUNCH_FAILED,
  CUDA.UNKNOWN,
])

/** True if the code makes the context unusable: every later call returns it again. */
export const isSticky = (code: number): boolean => STICKY.has(code)

/** Explanation of an error code for users; the driver's text for codes that are not in the table. */
export const meaning = (code: number, driverText = ''): string =>
  MEANING[code] ?? (driverText || 'an error of the CUDA driver')

/** A failed driver call. Internal to this folder, which throws `SptError` to its callers. */
export class CudaCallError extends Error {
  override readonly name = 'CudaCallError'
  readonly call: string
  readonly code: number
  /** The driver's name of the code, such as `CUDA_ERROR_ILLEGAL_ADDRESS`. */
  readonly codeName: string
  readonly text: string

  constructor(call: string, code: number, codeName: string, text: string) {
    super(`${call}: ${codeName} (${code}): ${text}`)
    this.call = call
    this.code = code
    this.codeName = codeName
    this.text = text
  }
}

const MIB = 2 ** 20
/** Bytes, with their size in MiB if that is more readable. */
export const showBytes = (bytes: number): string =>
  bytes < MIB ? `${bytes} bytes` : `${bytes} bytes (${(bytes / MIB).toFixed(1)} MiB)`

export interface MemoryState {
  readonly requested: number
  readonly label: string
  readonly free: number
  readonly total: number
  /** Bytes allocated by this device object. */
  readonly allocated: number
}

export function outOfMemory(state: MemoryState): SptError {
  return new SptError({
    code: 'device/out-of-memory',
    message:
      `no device memory for '${state.label}': ${showBytes(state.requested)} requested, ` +
      `${showBytes(state.free)} free of ${showBytes(state.total)}, ${showBytes(state.allocated)} held by this program`,
    expected: 'an allocation that fits in free device memory',
    hint: 'free buffers that are no longer needed, use smaller inputs, or stop other programs on this device',
  })
}

/** Display name of a kernel: its name and source location. */
export const showKernel = (entry: Pick<Entry, 'name' | 'place'>): string =>
  entry.place === undefined ? `'${entry.name}'` : `'${entry.name}' in ${entry.place}`

/** Error of a fault. `kernels`: display names of the kernels that may have caused it, in launch order. */
export function faultError(error: CudaCallError, kernels: readonly string[], isExact: boolean): SptError {
  const names = [...new Set(kernels)]
  const listed = names.slice(0, 8)
  if (names.length > listed.length) listed.push(`${names.length - listed.length} more`)
  const locationText = isExact
    ? `kernel ${listed[0]}`
    : names.length === 1
      ? `kernel ${listed[0]} (the only kernel in flight)`
      : names.length === 0
        ? 'no kernel was in flight'
        : `one of the kernels in flight: ${listed.join(', ')}`
  return new SptError({
    code: 'device/fault',
    message: `${error.codeName}: ${meaning(error.code, error.text)}; ${locationText}`,
    expected: 'kernels that stay inside their buffers',
    hint:
      isExact || names.length === 1
        ? 'this device object cannot be used any more; start a new process'
        : 'set SPT_CUDA_SYNC=1 (or syncEachLaunch) to learn which one; this device object cannot be used any more, start a new process',
  })
}

/** Error of any other failed call. */
export function driverError(error: CudaCallError, action: string): SptError {
  return new SptError({
    code: 'device/cuda',
    message: `${action}: ${meaning(error.code, error.text)} (${error.call}: ${error.codeName}, ${error.code})`,
    hint: 'spt doctor shows the driver, the device and NVRTC with their versions',
  })
}

export const absentError = (diagnostic: Pick<Diagnostic, 'message' | 'notes'> & Advice): SptError =>
  new SptError({ code: 'device/absent', ...diagnostic })
