/**
 * The interface of devices. A backend prints a plan as a `ModuleText`; a device compiles and runs it. Implementations: `cpu/`,
 * `webgpu/`, `cuda/`. They do not depend on formats, schedules or loops.
 */
import type { DeviceKind } from '../backends/target.ts'
import type { ModuleText } from '../backends/targets/index.ts'
import type { TypedArray } from '../ir/values/arrays.ts'
import type { LibraryText, Routine } from './library-text.ts'
import type { GpuEncoderLike, NativeRange } from './native-memory.ts'

export type { ArgSpec, Entry } from '../backends/module.ts'
export type { DeviceKind } from '../backends/target.ts'
export type { ModuleText } from '../backends/targets/index.ts'

export type * from './library-text.ts'
export type * from './native-memory.ts'

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

export type ArgValue = DeviceBuffer | number | MatrixValue

/** A buffer that is passed to a kernel as a row-major matrix (TMA). */
export interface MatrixValue {
  readonly memory: DeviceBuffer
  readonly rows: number
  readonly columns: number
}

export const isMatrix = (value: ArgValue): value is MatrixValue =>
  typeof value === 'object' && value !== null && 'columns' in value

export function memoryOf(value: ArgValue): DeviceBuffer | undefined {
  if (typeof value === 'number') return undefined
  return isMatrix(value) ? value.memory : value
}

export type Command = { readonly kind: 'clear'; readonly buffer: DeviceBuffer } | LaunchCommand

export interface LaunchCommand {
  readonly kind: 'launch'
  readonly module: CompiledModule
  readonly entry: string
  /** Physical grid, each at least 1 and within `limits.maxGridDim`. */
  readonly grid: readonly [number, number, number]
  readonly args: readonly ArgValue[]
  /** WebGPU: the device reads the grid from here, at a byte offset. */
  readonly indirect?: { readonly buffer: DeviceBuffer; readonly offset: number }
  /** The previous command belongs to the same run of the program, so an entry that waits for it may overlap with it. */
  readonly follows?: boolean | undefined
  /** Errors without a fault of the program run that ends with this launch. */
  readonly outcome?: Outcome | undefined
}

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
  /**
   * A buffer in the caller's memory, which `free` leaves intact. On webgpu the bytes up to the next multiple of 16 belong to the
   * buffer, too. Rejects with `device/usage`, `device/range`, `device/foreign-buffer`, `device/freed-buffer`, `device/buffer-too-large`.
   */
  wrap(range: NativeRange, label: string): Promise<DeviceBuffer>
  /** The memory of a live buffer, for other libraries on the same device. */
  native(buffer: DeviceBuffer): NativeRange
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
  /**
   * Appends commands to the caller's encoder (webgpu) or to a stream, without a submission or a wait. Work runs in the order of the
   * submissions. Later calls that wait report errors. @throws SptError as `run`, `device/foreign`
   */
  record(commands: readonly Command[], into: Stream | GpuEncoderLike): void
  /** Records commands for replays (`device.ts`). @throws SptError as `run` */
  graph(commands: readonly Command[]): Promise<Graph>
  /** A queue in addition to that of `run` (`device.ts`). `handle`: the caller's own CUDA stream, which `free` leaves intact. */
  stream(label: string, handle?: bigint): Stream
  event(): DeviceEvent
  /** Resolves when all that was queued on any stream has finished; rejects as `run`. */
  finish(): Promise<void>
  dispose(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
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

// Errors of launches that raise no fault: writes to missing elements, lists over capacity. Launches record
// them in memory.

/** Outcome of all launches of one program on its data; an error of the latest launches is reported once. */
export class Outcome {
  #isOpen = false
  #isRecorded = false

  /** @param check - Throws the recorded error; called when no launch is in flight */
  constructor(private readonly check: () => Promise<void>) {}

  markQueued(): void {
    this.#isOpen = true
  }

  /** Notes launches in a caller's encoder: every later check reads the outcome, because the time of the submission is unknown. */
  markRecorded(): void {
    this.#isRecorded = true
  }

  async settle(): Promise<void> {
    if (!this.#isOpen && !this.#isRecorded) return
    this.#isOpen = false
    await this.check()
  }

  /** Drops a pending check because its memory was freed. */
  forget(): void {
    this.#isOpen = this.#isRecorded = false
  }
}

// Graphs, streams and events: work that is queued without waiting for it.
// Examples: docs/how-to/streams-and-graphs.md. Implementations:
//
// |  | cuda | webgpu | cpu |
// |---|---|---|---|
// | a graph | an executable graph, one call per replay | bindings and scalars in place, one submission per replay | plain calls, completed when `launch` returns |
// | streams | queues that may overlap | one queue, in the order of the calls | one queue, in the order of the calls |
// | events | the device's clock | timestamps if supported, otherwise the host's clock | the host's clock |
//
// An order that events require holds on every device. Without events, work on different streams is unordered on cuda, and runs
// in the order of the calls elsewhere. `run`, `time`, `upload` and `download` start after all work queued before on any stream.
// Work queued on a stream does not wait for pending calls of these four.

/** Commands recorded once and replayed; buffers and modules must outlive the graph. */
export interface Graph {
  /**
   * Queues a replay on the stream (default: the queue of `run`). The next call that waits reports faults.
   * @throws SptError `device/freed`, and as `Device.run` if buffers or modules are freed
   */
  launch(stream?: Stream): void
  /**
   * Milliseconds of each of `repeats` consecutive replays; `between` runs before each, unmeasured. Host overhead is excluded if
   * the device can record events in graphs.
   */
  time(repeats: number, between?: Graph): Promise<number[]>
  /** Frees the graph. Idempotent. */
  free(): void
  [Symbol.dispose](): void
}

/** A queue whose work runs in order. */
export interface Stream {
  readonly label: string
  /** Records the event, which happens when all work queued here so far has finished. */
  record(event: DeviceEvent): void
  /** Makes later work in this stream wait for the latest recording of the event; no effect if it was never recorded. */
  wait(event: DeviceEvent): void
  /** Resolves when all work queued here has finished; rejects as `Device.run`. */
  finish(): Promise<void>
  /** Waits for the queued work. Idempotent. */
  free(): void
  [Symbol.dispose](): void
}

/** A point in a stream, which can be recorded repeatedly. */
export interface DeviceEvent {
  /** Milliseconds from `earlier` to this event, when both have happened. @throws SptError `device/not-recorded` */
  since(earlier: DeviceEvent): Promise<number>
  free(): void
  [Symbol.dispose](): void
}
