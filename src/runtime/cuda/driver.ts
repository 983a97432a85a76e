/**
 * The CUDA driver API: a table of the calls used, by exported name. Names and signatures are valid from CUDA 11.8 to 13.
 *
 * Values: handles (context, stream, event, module, function) and device addresses are bigints. An out parameter is a typed
 * array of one element. Host memory is a typed array.
 *
 * Threads: all calls are made on the JavaScript thread. The context is made current before each group of calls, because another
 * library in the process may have changed it. Waits poll (`context.ts`), so that no call blocks the thread while a kernel runs.
 */
import type { HostArray } from '../device.ts'
import { absentError, CUDA, CudaCallError, meaning } from './errors.ts'
import type { Ffi } from './ffi.ts'
import { driverCandidates, type Machine } from './libraries.ts'

export type Handle = bigint
type Out64 = BigUint64Array
type Out32 = Int32Array
type Host = HostArray | ArrayBuffer

/** Every call returns a `CUresult`. */
export interface DriverCalls {
  cuInit(flags: number): number
  cuDriverGetVersion(version: Out32): number
  cuDeviceGetCount(count: Out32): number
  cuDeviceGet(device: Out32, ordinal: number): number
  cuDeviceGetName(name: Uint8Array, length: number, device: number): number
  cuDeviceGetAttribute(value: Out32, attribute: number, device: number): number
  cuDeviceTotalMem_v2(bytes: Out64, device: number): number
  cuDevicePrimaryCtxRetain(context: Out64, device: number): number
  cuDevicePrimaryCtxRelease_v2(device: number): number
  cuCtxSetCurrent(context: Handle): number
  cuMemGetInfo_v2(free: Out64, total: Out64): number
  cuMemAlloc_v2(address: Out64, bytes: number): number
  cuMemFree_v2(address: bigint): number
  cuMemcpyHtoDAsync_v2(to: bigint, from: Host, bytes: number, stream: Handle): number
  cuMemcpyDtoHAsync_v2(to: Host, from: bigint, bytes: number, stream: Handle): number
  cuMemsetD8Async(to: bigint, value: number, bytes: number, stream: Handle): number
  cuStreamCreate(stream: Out64, flags: number): number
  cuStreamQuery(stream: Handle): number
  cuStreamSynchronize(stream: Handle): number
  cuStreamDestroy_v2(stream: Handle): number
  cuStreamWaitEvent(stream: Handle, event: Handle, flags: number): number
  cuStreamBeginCapture_v2(stream: Handle, mode: number): number
  cuStreamEndCapture(stream: Handle, graph: Out64): number
  cuGraphInstantiateWithFlags(executable: Out64, graph: Handle, flags: bigint): number
  cuGraphUpload(executable: Handle, stream: Handle): number
  cuGraphLaunch(executable: Handle, stream: Handle): number
  cuGraphExecDestroy(executable: Handle): number
  cuGraphDestroy(graph: Handle): number
  cuEventCreate(event: Out64, flags: number): number
  cuEventRecord(event: Handle, stream: Handle): number
  cuEventRecordWithFlags(event: Handle, stream: Handle, flags: number): number
  cuEventQuery(event: Handle): number
  cuEventElapsedTime(milliseconds: Float32Array, start: Handle, end: Handle): number
  cuEventDestroy_v2(event: Handle): number
  cuModuleLoadData(module: Out64, image: Uint8Array): number
  cuModuleUnload(module: Handle): number
  cuModuleGetFunction(fn: Out64, module: Handle, name: string): number
  cuFuncGetAttribute(value: Out32, attribute: number, fn: Handle): number
  cuFuncSetAttribute(fn: Handle, attribute: number, value: number): number
  cuLaunchKernel(
    fn: Handle,
    gridX: number,
    gridY: number,
    gridZ: number,
    blockX: number,
    blockY: number,
    blockZ: number,
    sharedBytes: number,
    stream: Handle,
    pointers: BigUint64Array,
    extra: null,
  ): number
  cuLaunchKernelEx(config: Uint8Array, fn: Handle, pointers: BigUint64Array, extra: null): number
  /** From CUDA 12.0. */
  cuTensorMapEncodeTiled?(
    map: bigint,
    type: number,
    rank: number,
    address: bigint,
    sizes: BigUint64Array,
    strides: BigUint64Array,
    box: Uint32Array,
    steps: Uint32Array,
    interleave: number,
    swizzle: number,
    promotion: number,
    fill: number,
  ): number
  cuGetErrorName(code: number, name: Out64): number
  cuGetErrorString(code: number, text: Out64): number
}

/** Parameter lists in koffi's types: `uintptr_t` for handles and addresses, `void *` for host memory. */
const PARAMETERS: Readonly<Record<keyof DriverCalls, string>> = {
  cuInit: 'uint32_t',
  cuDriverGetVersion: 'void *',
  cuDeviceGetCount: 'void *',
  cuDeviceGet: 'void *, int32_t',
  cuDeviceGetName: 'void *, int32_t, int32_t',
  cuDeviceGetAttribute: 'void *, int32_t, int32_t',
  cuDeviceTotalMem_v2: 'void *, int32_t',
  cuDevicePrimaryCtxRetain: 'void *, int32_t',
  cuDevicePrimaryCtxRelease_v2: 'int32_t',
  cuCtxSetCurrent: 'uintptr_t',
  cuMemGetInfo_v2: 'void *, void *',
  cuMemAlloc_v2: 'void *, size_t',
  cuMemFree_v2: 'uint64_t',
  cuMemcpyHtoDAsync_v2: 'uint64_t, void *, size_t, uintptr_t',
  cuMemcpyDtoHAsync_v2: 'void *, uint64_t, size_t, uintptr_t',
  cuMemsetD8Async: 'uint64_t, uint8_t, size_t, uintptr_t',
  cuStreamCreate: 'void *, uint32_t',
  cuStreamQuery: 'uintptr_t',
  cuStreamSynchronize: 'uintptr_t',
  cuStreamDestroy_v2: 'uintptr_t',
  cuStreamWaitEvent: 'uintptr_t, uintptr_t, uint32_t',
  cuStreamBeginCapture_v2: 'uintptr_t, uint32_t',
  cuStreamEndCapture: 'uintptr_t, void *',
  cuGraphInstantiateWithFlags: 'void *, uintptr_t, uint64_t',
  cuGraphUpload: 'uintptr_t, uintptr_t',
  cuGraphLaunch: 'uintptr_t, uintptr_t',
  cuGraphExecDestroy: 'uintptr_t',
  cuGraphDestroy: 'uintptr_t',
  cuEventCreate: 'void *, uint32_t',
  cuEventRecord: 'uintptr_t, uintptr_t',
  cuEventRecordWithFlags: 'uintptr_t, uintptr_t, uint32_t',
  cuEventQuery: 'uintptr_t',
  cuEventElapsedTime: 'void *, uintptr_t, uintptr_t',
  cuEventDestroy_v2: 'uintptr_t',
  cuModuleLoadData: 'void *, void *',
  cuModuleUnload: 'uintptr_t',
  cuModuleGetFunction: 'void *, uintptr_t, str',
  cuFuncGetAttribute: 'void *, int32_t, uintptr_t',
  cuFuncSetAttribute: 'uintptr_t, int32_t, int32_t',
  cuLaunchKernel:
    'uintptr_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uintptr_t, void *, void *',
  cuLaunchKernelEx: 'void *, uintptr_t, void *, void *',
  cuTensorMapEncodeTiled:
    'uintptr_t, int32_t, uint32_t, uint64_t, void *, void *, void *, void *, int32_t, int32_t, int32_t, int32_t',
  cuGetErrorName: 'int32_t, void *',
  cuGetErrorString: 'int32_t, void *',
}

/** Calls that older drivers lack. */
const OPTIONAL_CALLS: ReadonlySet<keyof DriverCalls> = new Set(['cuTensorMapEncodeTiled'])

export interface CudaDriver {
  readonly path: string
  readonly calls: DriverCalls
  addressOf(block: ArrayBuffer): bigint
  readString(address: bigint): string
}

/** Checks the result of a call. @throws CudaCallError */
export function check(driver: CudaDriver, call: keyof DriverCalls, code: number): void {
  if (code !== CUDA.SUCCESS) throw callError(driver, call, code)
}

export function callError(driver: CudaDriver, call: keyof DriverCalls, code: number): CudaCallError {
  const text = (lookup: 'cuGetErrorName' | 'cuGetErrorString'): string => {
    const pointer = new BigUint64Array(1)
    return driver.calls[lookup](code, pointer) === CUDA.SUCCESS ? driver.readString(pointer[0]!) : ''
  }
  return new CudaCallError(call, code, text('cuGetErrorName') || 'CUDA_ERROR', text('cuGetErrorString'))
}

const DRIVER_HINT =
  'install the NVIDIA driver for this GPU (in a container: run it with the NVIDIA container runtime), or name the library with SPT_LIBCUDA'

/** Loads and binds the driver's library. @throws SptError `device/absent` if it is missing */
export function loadDriver(ffi: Ffi, machine: Machine, explicit?: string): CudaDriver {
  const tried: string[] = []
  for (const path of driverCandidates(machine, explicit)) {
    try {
      return bindDriver(ffi, path)
    } catch (cause) {
      tried.push(`${path}: ${cause instanceof Error ? cause.message : String(cause)}`)
    }
  }
  throw absentError({
    message: 'there is no usable NVIDIA driver: libcuda.so.1 could not be loaded',
    hint: DRIVER_HINT,
    notes: tried,
  })
}

function bindDriver(ffi: Ffi, path: string): CudaDriver {
  const library = ffi.load(path)
  const calls: Partial<Record<keyof DriverCalls, unknown>> = {}
  for (const [name, parameters] of Object.entries(PARAMETERS) as [keyof DriverCalls, string][]) {
    const call = library.bind(`int32_t ${name}(${parameters})`)
    if (!call && OPTIONAL_CALLS.has(name)) continue
    if (!call) throw new Error(`it has no ${name}: the driver is older than CUDA 11.8`)
    calls[name] = call
  }
  return {
    path,
    calls: calls as unknown as DriverCalls,
    addressOf: (block) => ffi.addressOf(block),
    readString: (address) => ffi.readString(address),
  }
}

/** Calls `cuInit` and counts the devices. @throws SptError `device/absent` without a usable device */
export function initDriver(driver: CudaDriver): { readonly devices: number; readonly version: number } {
  const code = driver.calls.cuInit(0)
  const reject = (message: string, hint: string): never => {
    throw absentError({ message, hint })
  }
  if (code !== CUDA.SUCCESS) {
    const error = callError(driver, 'cuInit', code)
    reject(
      `the NVIDIA driver (${driver.path}) did not start: ${meaning(code, error.text)} (${error.codeName}, ${code})`,
      code === CUDA.STUB_LIBRARY
        ? DRIVER_HINT
        : 'check that nvidia-smi shows a GPU and that CUDA_VISIBLE_DEVICES does not hide it',
    )
  }
  const count = new Int32Array(1)
  check(driver, 'cuDeviceGetCount', driver.calls.cuDeviceGetCount(count))
  if (count[0] === 0) {
    reject(
      'the NVIDIA driver is there but shows no device',
      'check that nvidia-smi shows a GPU and that CUDA_VISIBLE_DEVICES does not hide it',
    )
  }
  const version = new Int32Array(1)
  check(driver, 'cuDriverGetVersion', driver.calls.cuDriverGetVersion(version))
  return { devices: count[0]!, version: version[0]! }
}

/** 13020 → `13.2`. */
export const showVersion = (version: number): string =>
  `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`
