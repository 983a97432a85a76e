/** Queues commands on a stream, or records them during capture. */
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import type { Command, DeviceBuffer, Entry, LaunchCommand } from '../device.ts'
import { checkArgs, checkGrid, checkModule, entryOf } from '../device-checks.ts'
import type { CudaContext, CudaQueue } from './context.ts'
import { callError, type Handle } from './driver.ts'
import { CUDA, isSticky } from './errors.ts'
import { CudaLibraryCall } from './library-call.ts'
import { type CudaBuffer, type CudaMemory, FILL, FILL_RANGES, packFill } from './memory.ts'
import { CudaModule, type LoadedEntry } from './module.ts'
import { type ArgumentBlock, argumentBlock, Matrices, packArguments } from './pack-arguments.ts'

type Grid = readonly [number, number, number]

export class Launcher {
  readonly #block: ArgumentBlock
  readonly #config: LaunchConfig
  readonly #matrices: Matrices
  /** Allows launches to begin before the previous one has finished (`backends/targets/cuda/programmatic-dependent-launch.ts`). */
  #overlap: boolean
  /** Number of attempts to overlap a launch. */
  #overlapAttempts = 0
  /** The zero-fill kernel, once a module with overlapping launches is compiled. */
  fill: CudaModule | undefined

  constructor(
    private readonly context: CudaContext,
    private readonly memory: CudaMemory,
    overlap: boolean,
  ) {
    this.#overlap = overlap
    const addressOf = (block: ArrayBuffer): bigint => context.driver.addressOf(block)
    this.#block = argumentBlock(addressOf)
    this.#config = new LaunchConfig(addressOf)
    this.#matrices = new Matrices(context.driver)
  }

  get overlap(): boolean {
    return this.#overlap
  }

  /** Queues commands. The context must be current. `wait`: waits after each kernel, so that a fault names it. */
  queue(commands: readonly Command[], queue: CudaQueue, wait: boolean): void {
    this.issue(commands, queue.handle, this.#overlap, (kernel) => {
      queue.busy = true
      if (kernel !== undefined) this.context.noteLaunch(queue, kernel, wait)
    })
  }

  /** Records the launches of `body`. If the driver cannot record overlapping launches, overlap is disabled from then on. */
  recording<T>(body: (overlap: boolean) => T): T {
    const attempts = this.#overlapAttempts
    try {
      return body(this.#overlap)
    } catch (error) {
      if (this.#overlapAttempts === attempts || !this.context.isUsable) throw error
      let result: T
      try {
        result = body(false)
      } catch {
        throw error
      }
      this.#overlap = false
      return result
    }
  }

  /** Issues commands on a stream. `onIssue` receives the display name of each kernel that may fault. */
  issue(
    commands: readonly Command[],
    stream: Handle,
    overlap: boolean,
    onIssue: (kernel?: string) => void,
  ): void {
    // Launches overlap with kernels of the same list only, because work between lists orders them.
    let afterKernel = false
    for (let k = 0; k < commands.length; ) {
      const command = commands[k]!
      if (command.kind === 'launch') {
        onIssue(this.#launch(command, stream, overlap && afterKernel && command.follows === true))
        afterKernel = true
        k++
        continue
      }
      const buffers: CudaBuffer[] = []
      let next: Command | undefined = command
      while (next?.kind === 'clear') {
        const buffer = this.memory.resolve(next.buffer, 'clear')
        if (buffer.bytes > 0) buffers.push(buffer)
        next = commands[++k]
      }
      if (buffers.length === 0) afterKernel = false
      const fill = overlap && mayOverlap(next) ? this.fill?.entries.get(FILL.name) : undefined
      for (let start = 0; start < buffers.length; start += fill ? FILL_RANGES : 1) {
        if (fill) {
          const grid = packFill(this.#block, buffers.slice(start, start + FILL_RANGES), this.context.chip)
          // The fill kernel first waits and then lets the next launch begin, so it may follow a kernel of any program.
          this.#start(fill, grid, stream, afterKernel)
          afterKernel = true
        } else {
          const { address, bytes } = buffers[start]!
          this.context.call('cuMemsetD8Async', address, 0, bytes, stream)
          afterKernel = false
        }
        onIssue()
      }
    }
  }

  #launch(command: LaunchCommand, stream: Handle, overlap: boolean): string {
    const { module } = command
    this.checkLive(command)
    if (module instanceof CudaLibraryCall) {
      module.issue(stream)
      return `'${command.entry}'`
    }
    const loaded = (module as CudaModule).entries.get(entryOf(command).name)!
    const { entry, displayName } = loaded
    this.#checkGrid(loaded, command.grid)
    checkArgs(displayName, entry, command.args, this.memory)
    const addressOf = (value: DeviceBuffer): bigint => (value as CudaBuffer).address
    packArguments(this.#block, entry, command.args, addressOf, ({ memory, rows, columns }, spec) =>
      this.#matrices.encode(spec, addressOf(memory), rows, columns),
    )
    this.#start(loaded, command.grid, stream, overlap && entry.waits === true)
    return displayName
  }

  /** Launches an entry with the packed arguments. */
  #start(loaded: LoadedEntry, grid: Grid, stream: Handle, overlaps: boolean): void {
    const code = this.#call(loaded, grid, stream, overlaps)
    if (code === CUDA.SUCCESS) return
    if (overlaps && !isSticky(code) && this.#call(loaded, grid, stream, false) === CUDA.SUCCESS) {
      this.#overlap = false
      return
    }
    const call = overlaps || loaded.entry.cluster ? 'cuLaunchKernelEx' : 'cuLaunchKernel'
    const error = callError(this.context.driver, call, code)
    throw this.context.translate(error, `launching kernel ${loaded.displayName}`)
  }

  #call({ entry, fn }: LoadedEntry, grid: Grid, stream: Handle, overlaps: boolean): number {
    const { calls } = this.context
    const { pointers } = this.#block
    const { block, sharedBytes, cluster } = entry
    if (overlaps) this.#overlapAttempts++
    if (overlaps || cluster) {
      const config = this.#config.fill({ grid, block, sharedBytes, cluster, overlaps }, stream)
      return calls.cuLaunchKernelEx(config, fn, pointers, null)
    }
    const [x, y, z] = grid
    const [bx, by, bz] = block
    return calls.cuLaunchKernel(fn, x, y, z, bx, by, bz, sharedBytes, stream, pointers, null)
  }

  /** @throws SptError `device/released-module`, `device/foreign-module` */
  checkLive({ module }: LaunchCommand): void {
    checkModule(module, this.context)
  }

  #checkGrid({ entry, displayName }: LoadedEntry, grid: Grid): void {
    checkGrid(displayName, grid, this.context.chip)
    const { cluster } = entry
    if (cluster && grid.some((n, d) => n % cluster[d]! !== 0)) {
      failAs('device/grid', {
        message: `kernel ${displayName} cannot be launched with a grid of ${grid.join(' x ')} blocks in clusters of ${cluster.join(' x ')}`,
        expected: 'multiples of the cluster in each dimension',
      })
    }
  }
}

/** True if the launch waits for the previous one itself (programmatic dependent launch). */
function mayOverlap(command: Command | undefined): boolean {
  if (command?.kind !== 'launch' || !command.follows || !(command.module instanceof CudaModule)) return false
  return command.module.entries.get(command.entry)?.entry.waits === true
}

// `CUlaunchConfig` for launches with attributes, in the layout of cuda.h (CUDA 11.8 to 13).

const CONFIG_BYTES = 56
const ATTRIBUTE_BYTES = 72

/** `CUlaunchAttributeID`: cluster dimensions; programmatic stream serialization. */
const ATTRIBUTE = { cluster: 4, overlaps: 6 } as const
const MAX_ATTRIBUTES = 2

/** Byte offsets of `CUlaunchConfig`. */
const OFFSETS = { grid: 0, block: 12, shared: 24, stream: 32, attributes: 40, count: 48 } as const
/** Byte offset of the value in `CUlaunchAttribute`. */
const VALUE = 8

interface LaunchShape extends Pick<Entry, 'block' | 'sharedBytes' | 'cluster'> {
  readonly grid: readonly [number, number, number]
  /** Programmatic stream serialization: the kernel itself waits for the previous launch. */
  readonly overlaps: boolean
}

/** One configuration for all launches, because the driver reads it before the launch returns. */
class LaunchConfig {
  readonly #bytes = new Uint8Array(CONFIG_BYTES)
  readonly #config: DataView
  readonly #attributes: DataView

  /** @param addressOf - Returns the address of a host block that never moves */
  constructor(addressOf: (block: ArrayBuffer) => bigint) {
    this.#config = new DataView(this.#bytes.buffer)
    const attributes = new ArrayBuffer(MAX_ATTRIBUTES * ATTRIBUTE_BYTES)
    this.#attributes = new DataView(attributes)
    this.#config.setBigUint64(OFFSETS.attributes, addressOf(attributes), true)
  }

  fill({ grid, block, sharedBytes, cluster, overlaps }: LaunchShape, stream: Handle): Uint8Array {
    for (let d = 0; d < 3; d++) {
      this.#config.setUint32(OFFSETS.grid + 4 * d, grid[d]!, true)
      this.#config.setUint32(OFFSETS.block + 4 * d, block[d]!, true)
    }
    this.#config.setUint32(OFFSETS.shared, sharedBytes, true)
    this.#config.setBigUint64(OFFSETS.stream, stream, true)
    let count = 0
    if (cluster) this.#attribute(count++, ATTRIBUTE.cluster, cluster)
    if (overlaps) this.#attribute(count++, ATTRIBUTE.overlaps, [1])
    this.#config.setUint32(OFFSETS.count, count, true)
    return this.#bytes
  }

  #attribute(index: number, id: number, words: readonly number[]): void {
    const start = index * ATTRIBUTE_BYTES
    this.#attributes.setUint32(start, id, true)
    for (const [k, word] of words.entries()) this.#attributes.setUint32(start + VALUE + 4 * k, word, true)
  }
}
