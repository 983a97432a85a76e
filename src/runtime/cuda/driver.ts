/**
 * The CUDA driver API: a table of the calls used, by exported name. Names and signatures are valid from CUDA 11.8 to 13.
 *
 * Values: handles (context, stream, event, module, function) and device addresses are bigints. An out parameter is a typed
 * array of one element. Host memory is a typed array. Every call returns a `CUresult`.
 *
 * Threads: all calls are made on the JavaScript thread. The context is made current before each group of calls, because another
 * library in the process may have changed it. Waits poll (`context.ts`), so that no call blocks the thread while a kernel runs.
 */
import type { HostArray } from '../device.ts'
import { absentError, CUDA, CudaCallError, meaning } from './errors.ts'
import { type Ffi, firstUsable } from './ffi.ts'
import { driverCandidates, type Machine } from './libraries.ts'

export type Handle = bigint
/** Values of the parameter types: C types, and kinds of host memory, each a `void *` in C. */
interface Parameter {
  int32_t: number
  uint8_t: number
  uint32_t: number
  size_t: number
  uint64_t: bigint
  uintptr_t: Handle
  str: string
  int32s: Int32Array
  uint32s: Uint32Array
  uint64s: BigUint64Array
  floats: Float32Array
  bytes: Uint8Array
  host: HostArray | ArrayBuffer
  nothing: null
}
const HOST_MEMORY = /int32s|uint32s|uint64s|floats|bytes|host|nothing/g

/** Parameter types of each call, with `uintptr_t` for handles. */
const PARAMETERS = {
  cuInit: 'uint32_t',
  cuDriverGetVersion: 'int32s',
  cuDeviceGetCount: 'int32s',
  cuDeviceGet: 'int32s, int32_t',
  cuDeviceGetName: 'bytes, int32_t, int32_t',
  cuDeviceGetAttribute: 'int32s, int32_t, int32_t',
  cuDeviceTotalMem_v2: 'uint64s, int32_t',
  cuDevicePrimaryCtxRetain: 'uint64s, int32_t',
  cuDevicePrimaryCtxRelease_v2: 'int32_t',
  cuCtxSetCurrent: 'uintptr_t',
  cuMemGetInfo_v2: 'uint64s, uint64s',
  cuMemAlloc_v2: 'uint64s, size_t',
  cuMemFree_v2: 'uint64_t',
  /** First address; bytes; an address within the allocation. */
  cuMemGetAddressRange_v2: 'uint64s, uint64s, uint64_t',
  /** Value; attribute; address. */
  cuPointerGetAttribute: 'int32s, int32_t, uint64_t',
  cuMemcpyHtoDAsync_v2: 'uint64_t, host, size_t, uintptr_t',
  cuMemcpyDtoHAsync_v2: 'host, uint64_t, size_t, uintptr_t',
  cuMemsetD8Async: 'uint64_t, uint8_t, size_t, uintptr_t',
  cuStreamCreate: 'uint64s, uint32_t',
  cuStreamQuery: 'uintptr_t',
  cuStreamSynchronize: 'uintptr_t',
  cuStreamDestroy_v2: 'uintptr_t',
  cuStreamWaitEvent: 'uintptr_t, uintptr_t, uint32_t',
  cuStreamBeginCapture_v2: 'uintptr_t, uint32_t',
  cuStreamEndCapture: 'uintptr_t, uint64s',
  cuGraphInstantiateWithFlags: 'uint64s, uintptr_t, uint64_t',
  cuGraphUpload: 'uintptr_t, uintptr_t',
  cuGraphLaunch: 'uintptr_t, uintptr_t',
  cuGraphExecDestroy: 'uintptr_t',
  cuGraphDestroy: 'uintptr_t',
  cuEventCreate: 'uint64s, uint32_t',
  cuEventRecord: 'uintptr_t, uintptr_t',
  cuEventRecordWithFlags: 'uintptr_t, uintptr_t, uint32_t',
  cuEventQuery: 'uintptr_t',
  cuEventElapsedTime: 'floats, uintptr_t, uintptr_t',
  cuEventDestroy_v2: 'uintptr_t',
  cuModuleLoadData: 'uint64s, bytes',
  cuModuleUnload: 'uintptr_t',
  cuModuleGetFunction: 'uint64s, uintptr_t, str',
  cuFuncGetAttribute: 'int32s, int32_t, uintptr_t',
  cuFuncSetAttribute: 'uintptr_t, int32_t, int32_t',
  /** Function; grid; block; bytes of shared memory; stream; addresses of the arguments; none. */
  cuLaunchKernel:
    'uintptr_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uintptr_t, uint64s, nothing',
  /** Configuration; function; addresses of the arguments; none. */
  cuLaunchKernelEx: 'bytes, uintptr_t, uint64s, nothing',
  /** Descriptor; type; rank; address; sizes; strides; box; steps; interleave; swizzle; promotion; fill. From CUDA 12.0. */
  cuTensorMapEncodeTiled:
    'uintptr_t, int32_t, uint32_t, uint64_t, uint64s, uint64s, uint32s, uint32s, int32_t, int32_t, int32_t, int32_t',
  cuGetErrorName: 'int32_t, uint64s',
  cuGetErrorString: 'int32_t, uint64s',
} as const

type Values<List extends string> = List extends `${infer First extends keyof Parameter}, ${infer Rest}`
  ? [Parameter[First], ...Values<Rest>]
  : List extends keyof Parameter
    ? [Parameter[List]]
    : never
type Call = keyof typeof PARAMETERS
type Calls = { [C in Call]: (...args: Values<(typeof PARAMETERS)[C]>) => number }
/** Calls that older drivers lack. */
type OptionalCall = 'cuTensorMapEncodeTiled'
const OPTIONAL_CALLS: ReadonlySet<Call> = new Set<OptionalCall>(['cuTensorMapEncodeTiled'])
export type DriverCalls = Omit<Calls, OptionalCall> & Partial<Calls>

export interface CudaDriver {
  readonly path: string
  readonly calls: DriverCalls
  addressOf(block: ArrayBuffer): bigint
  readString(address: bigint): string
}

/** Checks the result of a call. @throws CudaCallError */
export function check(driver: CudaDriver, call: Call, code: number): void {
  if (code !== CUDA.SUCCESS) throw callError(driver, call, code)
}

/** Makes a call, and checks its result. @throws CudaCallError */
export function invoke<C extends Call>(driver: CudaDriver, call: C, ...args: Parameters<Calls[C]>): void {
  const fn = driver.calls[call] as (...args: readonly unknown[]) => number
  check(driver, call, fn(...args))
}

/** Calls a function that stores a handle or an address in its first parameter. @throws CudaCallError */
export function obtain<C extends Call>(
  driver: CudaDriver,
  call: C,
  ...args: Parameters<Calls[C]> extends [BigUint64Array, ...infer Rest] ? Rest : never
): Handle {
  const out = new BigUint64Array(1)
  invoke(driver, call, ...([out, ...args] as unknown as Parameters<Calls[C]>))
  return out[0]!
}

export function callError(driver: CudaDriver, call: Call, code: number): CudaCallError {
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
  const driver = firstUsable(driverCandidates(machine, explicit), tried, (path) => bindDriver(ffi, path))
  if (driver) return driver
  throw absentError({
    message: 'there is no usable NVIDIA driver: libcuda.so.1 could not be loaded',
    hint: DRIVER_HINT,
    notes: tried,
  })
}

function bindDriver(ffi: Ffi, path: string): CudaDriver {
  const library = ffi.load(path)
  const calls: Partial<Record<Call, unknown>> = {}
  for (const [name, parameters] of Object.entries(PARAMETERS) as [Call, string][]) {
    const call = library.bind(`int32_t ${name}(${parameters.replace(HOST_MEMORY, 'void *')})`)
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
  const [count, version] = [new Int32Array(1), new Int32Array(1)]
  invoke(driver, 'cuDeviceGetCount', count)
  if (count[0] === 0) {
    reject(
      'the NVIDIA driver is there but shows no device',
      'check that nvidia-smi shows a GPU and that CUDA_VISIBLE_DEVICES does not hide it',
    )
  }
  invoke(driver, 'cuDriverGetVersion', version)
  return { devices: count[0]!, version: version[0]! }
}

/** 13020 → `13.2`. */
export const showVersion = (version: number): string =>
  `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`
