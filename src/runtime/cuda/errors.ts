/** CUDA's result codes: explanations, classification, and diagnostics. */
import { type Advice, type Diagnostic, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Entry } from '../device.ts'
import { showBytes } from '../device-checks.ts'

/** `CUresult` values that this runtime distinguishes (the driver names the others), with explanations. `sticky`: see `isSticky`. */
const RESULTS = {
  SUCCESS: [0],
  OUT_OF_MEMORY: [2, 'the device has not enough free memory'],
  STUB_LIBRARY: [34, 'the library is the stub that toolkits ship for linking, not the driver'],
  NO_DEVICE: [100, 'the driver sees no CUDA device'],
  INVALID_DEVICE: [101, 'there is no device of that number'],
  INVALID_IMAGE: [200, 'the compiled kernel is not valid for this driver'],
  NO_BINARY_FOR_GPU: [209, 'the compiled kernel is for another chip'],
  UNSUPPORTED_PTX_VERSION: [222, 'NVRTC is newer than the driver'],
  NOT_FOUND: [500, 'the module has no entry of that name'],
  NOT_READY: [600],
  ILLEGAL_ADDRESS: [700, 'a kernel read or wrote memory that is not allocated', 'sticky'],
  LAUNCH_OUT_OF_RESOURCES: [701, 'a block needs more registers or threads than a multiprocessor has'],
  LAUNCH_TIMEOUT: [702, 'a kernel ran longer than the system allows', 'sticky'],
  ASSERT: [710, 'an assertion in a kernel failed', 'sticky'],
  HARDWARE_STACK_ERROR: [714, 'a kernel overran its stack', 'sticky'],
  ILLEGAL_INSTRUCTION: [715, 'a kernel met an illegal instruction', 'sticky'],
  MISALIGNED_ADDRESS: [
    716,
    'a kernel read or wrote at an address that is not aligned for its type',
    'sticky',
  ],
  INVALID_ADDRESS_SPACE: [717, 'a kernel used an address of another memory space', 'sticky'],
  INVALID_PC: [718, 'a kernel jumped outside its code', 'sticky'],
  LAUNCH_FAILED: [719, 'a kernel failed while it ran', 'sticky'],
  SYSTEM_NOT_READY: [802, 'the system has not finished its set-up (fabric manager)'],
  SYSTEM_DRIVER_MISMATCH: [803, 'the driver library and the kernel module are of different versions'],
  UNKNOWN: [999, '', 'sticky'],
} as const
type Result = readonly [code: number, meaning?: string, sticky?: 'sticky']

export const CUDA = Object.fromEntries(
  Object.entries(RESULTS).map(([name, [code]]) => [name, code]),
) as unknown as { readonly [Name in keyof typeof RESULTS]: (typeof RESULTS)[Name][0] }
const BY_CODE = new Map(Object.values<Result>(RESULTS).map((r) => [r[0], r]))

/** True if the code makes the context unusable: every later call returns it again. */
export const isSticky = (code: number): boolean => BY_CODE.get(code)?.[2] === 'sticky'

/** Explanation of an error code for users; the driver's text for codes that are not in the table. */
export const meaning = (code: number, driverText = ''): string =>
  BY_CODE.get(code)?.[1] || driverText || 'an error of the CUDA driver'

/** A failed driver call. Internal to this folder, which throws `SptError` to its callers. */
export class CudaCallError extends Error {
  override readonly name = 'CudaCallError'

  constructor(
    readonly call: string,
    readonly code: number,
    /** The driver's name of the code, such as `CUDA_ERROR_ILLEGAL_ADDRESS`. */
    readonly codeName: string,
    readonly text: string,
  ) {
    super(`${call}: ${codeName} (${code}): ${text}`)
  }
}

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
      names.length === 1
        ? 'this device object cannot be used any more; start a new process'
        : 'set SPT_CUDA_SYNC=1 (or syncEachLaunch) to learn which one; this device object cannot be used any more, start a new process',
  })
}

export function driverError(error: CudaCallError, action: string): SptError {
  return new SptError({
    code: 'device/cuda',
    message: `${action}: ${meaning(error.code, error.text)} (${error.call}: ${error.codeName}, ${error.code})`,
    hint: 'spt doctor shows the driver, the device and NVRTC with their versions',
  })
}

export const absentError = (diagnostic: Pick<Diagnostic, 'message' | 'notes'> & Advice): SptError =>
  new SptError({ code: 'device/absent', ...diagnostic })
