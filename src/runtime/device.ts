/**
 * The interface of devices. A backend prints the source of a `CompiledPlan`; a device compiles and runs it. Implementations:
 * `cpu.ts`, `webgpu.ts`, `cuda/`. They do not depend on formats, schedules or loops.
 */
import type { ModuleText } from '../backends/emit.ts'
import type { DeviceKind } from '../backends/target.ts'
import type { TypedArray } from '../ir/values/arrays.ts'
import type { LibraryText, Routine } from './library-text.ts'
import type { Outcome } from './outcome.ts'
import type { DeviceEvent, Graph, Stream } from './streams.ts'

/** A typed-array view of host memory. */
export type HostArray = TypedArray

/** Limits of a device for plans. Sizes in bytes unless stated otherwise; `Infinity` for no limit. */
export interface DeviceLimits {
  readonly maxBufferBytes: number
  /** Largest range one kernel argument may cover (WebGPU: maxStorageBufferBindingSize). */
  readonly maxBindingBytes: number
  /** Storage buffers one launch may use. */
  readonly maxBuffersPerLaunch: number
  readonly maxThreadsPerBlock: number
  readonly maxBlockDim: readonly [number, number, number]
  /** Blocks in each dimension of the physical grid. */
  readonly maxGridDim: readonly [number, number, number]
  readonly maxSharedBytes: number
  /** Number of consecutive threads of a block, aligned, that can exchange registers in every kernel; absent if unknown. */
  readonly lanes?: number
  /** Number of SMs; absent if unknown. */
  readonly processors?: number
}

/** Device memory, opaque to callers; `bytes` is the requested size. */
export interface DeviceBuffer {
  readonly bytes: number
  readonly label: string
  free(): void
}

export type { ModuleText } from '../backends/emit.ts'
export type { ArgSpec, Entry } from '../backends/module.ts'
export type { DeviceKind } from '../backends/target.ts'
export type { DeviceEvent, Graph, Stream } from './streams.ts'

/** An argument's value at launch time. */
export type ArgValue = DeviceBuffer | number | MatrixValue

/** A buffer that is passed to a kernel as a row-major matrix (TMA). */
export interface MatrixValue {
  readonly memory: DeviceBuffer
  readonly rows: number
  readonly columns: number
}

export const isMatrix = (value: ArgValue): value is MatrixValue =>
  typeof value === 'object' && value !== null && 'columns' in value

/** The buffer of an argument, if it has one. */
export function memoryOf(value: ArgValue): DeviceBuffer | undefined {
  if (typeof value === 'number') return undefined
  return isMatrix(value) ? value.memory : value
}

export type Command =
  | { readonly kind: 'clear'; readonly buffer: DeviceBuffer }
  | {
      readonly kind: 'launch'
      readonly module: CompiledModule
      readonly entry: string
      /** Physical grid, each at least 1 and within `limits.maxGridDim`. */
      readonly grid: readonly [number, number, number]
      readonly args: readonly ArgValue[]
      /** The previous command belongs to the same run of the program, so an entry that waits for it may overlap with it. */
      readonly follows?: boolean | undefined
      /** Errors without a fault of the program run that ends with this launch. */
      readonly outcome?: Outcome | undefined
    }

/** A compiled module. */
export interface CompiledModule {
  readonly text: ModuleText
  /** Registers, shared and local bytes per entry, if the device reports them. */
  readonly resources?: Readonly<Record<string, Readonly<Record<string, number>>>>
  release(): void
}

/** Operands of a library routine, by their names in the kernel. */
export interface Operands {
  readonly buffers: ReadonlyMap<string, DeviceBuffer>
  /** Sizes and scalars. */
  readonly numbers: ReadonlyMap<string, number>
  readonly axes: ReadonlyMap<
    string,
    { readonly offsets: DeviceBuffer; readonly indices: DeviceBuffer; readonly entries: number }
  >
}

/** An installed library of the vendor. */
export interface Library {
  readonly name: string
  readonly version: string
  /**
   * Prepares a call with its operands: a module with one entry, launched with `buffers`. Index arrays must have been uploaded,
   * because the library may analyse them.
   * @throws SptError `device/library`
   */
  prepare(routine: Routine, variant: string, operands: Operands): LibraryCall
}

export interface LibraryCall extends CompiledModule {
  readonly buffers: readonly DeviceBuffer[]
}

export interface Device {
  readonly kind: DeviceKind
  /** The adapter's or chip's name. */
  readonly name: string
  /** Driver and its version, as far as they can be determined. */
  readonly driver?: string
  /** Software emulation of a GPU, which has no clock of its own. */
  readonly isSoftware?: boolean
  readonly limits: DeviceLimits
  /** Capabilities by name: `shader-f16`, `subgroups`, `timestamp-query`, `sm_90`. */
  readonly features: ReadonlySet<string>
  /**
   * Element layout in device memory: `native` (the default) has the sizes of `DTYPE_BYTES`; `words` uses one 32-bit word per
   * element (`widened-elements.ts`; except f16 with `shader-f16`) and has no f64.
   */
  readonly storage?: 'native' | 'words'
  /**
   * Throws `device/out-of-memory` or `device/buffer-too-large`. Contents are undefined (tests poison them). A
   * device that learns of exhaustion later (WebGPU) rejects the first transfer or run that needs the buffer.
   */
  alloc(bytes: number, label: string): DeviceBuffer
  upload(buffer: DeviceBuffer, data: HostArray, byteOffset?: number): Promise<void>
  /** Reads `bytes` (default: all) back. */
  download(buffer: DeviceBuffer, bytes?: number): Promise<ArrayBuffer>
  /** Throws `device/compile` with the target compiler's log and the offending line. */
  compile(module: ModuleText): Promise<CompiledModule>
  /** Opens a library of the vendor's, once. Devices without it have none. @throws SptError `device/no-library`, `device/library` */
  library?(text: LibraryText): Library
  /**
   * Runs commands in order; resolves when all have finished, rejects with the faulting kernel's name, or with the recorded
   * error (`outcomes.ts`).
   */
  run(commands: readonly Command[]): Promise<void>
  /**
   * Milliseconds of each of `repeats` runs, by device events if available. There is no warm-up; `between` runs before each
   * repeat, unmeasured. The times include launch overhead if the host is slower than the device: see `Graph.time`.
   */
  time(commands: readonly Command[], repeats: number, between?: Graph): Promise<number[]>
  /** Records commands for replays (`streams.ts`). @throws SptError as `run` */
  graph(commands: readonly Command[]): Promise<Graph>
  /** A queue in addition to that of `run` (`streams.ts`). */
  stream(label: string): Stream
  event(): DeviceEvent
  /** Resolves when all that was queued on any stream has finished; rejects as `run`. */
  finish(): Promise<void>
  dispose(): Promise<void>
}

/** Availability of a device, or the reason for its absence, for `spt doctor`. */
export interface DeviceReport {
  readonly kind: DeviceKind
  readonly available: boolean
  readonly name?: string
  readonly reason?: string
  readonly hint?: string
  readonly facts: Readonly<Record<string, string>>
}
