/** Executable CUDA graphs: commands are captured once, and replayed with one call. */

import type { Command, DeviceBuffer, Graph, LaunchCommand, Stream } from '../device.ts'
import { memoryOf } from '../device.ts'
import { checkRepeats } from '../device-checks.ts'
import { DISPOSE } from '../dispose.ts'
import { failFreed } from '../in-order.ts'
import type { CudaContext, CudaQueue } from './context.ts'
import { type Handle, obtain } from './driver.ts'
import { CUDA } from './errors.ts'
import type { Launcher } from './launch.ts'
import type { CudaMemory } from './memory.ts'

/** Capture mode that allows other calls on this thread. */
const CAPTURE_RELAXED = 2
/** During capture: adds a node that records the event at each replay, instead of an edge. */
const RECORD_EXTERNAL = 1

export interface GraphHost {
  readonly context: CudaContext
  readonly memory: CudaMemory
  readonly launcher: Launcher
  /** Replays are plain launches with a wait after each, so that a fault names its kernel. */
  readonly waitForEach: boolean
  /** Live graphs, which are released with the device. */
  readonly graphs: Set<CudaGraph>
  /** The queue of `run`. */
  readonly main: Stream
  /** The queue behind a stream of this device. */
  queueOf(stream: Stream): CudaQueue
}

interface TimedGraph {
  readonly executable: Handle
  readonly start: Handle
  readonly end: Handle
}

export class CudaGraph implements Graph {
  readonly #commands: readonly Command[]
  readonly #buffers: readonly DeviceBuffer[]
  /** One launch of each module, for checking that the modules are loaded. */
  readonly #launches: readonly LaunchCommand[]
  readonly #kernels: readonly string[]
  readonly #executable: Handle
  #timedGraph: TimedGraph | undefined
  #freed = false

  /** The context must be current. */
  constructor(
    private readonly host: GraphHost,
    commands: readonly Command[],
  ) {
    this.#commands = [...commands]
    const kernels = new Set<string>()
    this.#executable = host.launcher.recording((overlap) =>
      capture(host.context, (stream) =>
        host.launcher.issue(this.#commands, stream, overlap, (kernel) => {
          if (kernel !== undefined) kernels.add(kernel)
        }),
      ),
    )
    this.#kernels = [...kernels]
    const launches = this.#commands.filter((c) => c.kind === 'launch')
    this.#launches = [...new Map(launches.map((c) => [c.module, c] as const)).values()]
    this.#buffers = [...new Set(this.#commands.flatMap(buffersOf))]
    host.graphs.add(this)
  }

  launch(stream?: Stream): void {
    const { context, launcher } = this.host
    if (this.#freed) failFreed('the graph')
    const queue = this.host.queueOf(stream ?? this.host.main)
    context.inContext('replaying a graph', () => {
      if (this.host.waitForEach) launcher.queue(this.#commands, queue, true)
      else this.#replay(this.#executable, queue)
    })
  }

  async time(repeats: number, between?: Graph): Promise<number[]> {
    checkRepeats(repeats, between)
    const { context } = this.host
    if (this.#freed) failFreed('the graph')
    const out = new Float32Array(1)
    const times: number[] = []
    context.inContext('timing', () => context.join())
    while (times.length < repeats) {
      context.inContext('timing', () => {
        between?.launch(this.host.main)
        this.#timedGraph ??= this.#captureTimed()
        this.#replay(this.#timedGraph.executable, context.main)
      })
      await context.waitIdle('timing', context.main)
      context.inContext('timing', () => {
        const { start, end } = this.#timedGraph ?? failFreed('the graph')
        context.call('cuEventElapsedTime', out, start, end)
      })
      times.push(out[0]!)
    }
    return times
  }

  free(): void {
    if (this.#freed) return
    this.#freed = true
    this.host.context.release('freeing a graph', () => this.release())
  }

  [DISPOSE](): void {
    this.free()
  }

  /** Frees the driver's resources; the graph must not be in flight. */
  release(): void {
    const { calls } = this.host.context
    this.#freed = true
    this.host.graphs.delete(this)
    calls.cuGraphExecDestroy(this.#executable)
    if (!this.#timedGraph) return
    calls.cuGraphExecDestroy(this.#timedGraph.executable)
    calls.cuEventDestroy_v2(this.#timedGraph.start)
    calls.cuEventDestroy_v2(this.#timedGraph.end)
    this.#timedGraph = undefined
  }

  #replay(executable: Handle, queue: CudaQueue): void {
    const { context, memory, launcher } = this.host
    // A graph contains addresses, so freed buffers must be detected before the launch.
    for (const buffer of this.#buffers) memory.resolve(buffer, 'replaying a graph')
    for (const command of this.#launches) launcher.checkLive(command)
    queue.busy = true
    for (const kernel of this.#kernels) queue.kernels.add(kernel)
    context.call('cuGraphLaunch', executable, queue.handle)
  }

  /** Captures the graph between two nodes that record events, so that host overhead is not measured. */
  #captureTimed(): TimedGraph {
    const { context, launcher } = this.host
    const { calls } = context
    const handles: Handle[] = []
    try {
      for (let k = 0; k < 2; k++) handles.push(obtain(context.driver, 'cuEventCreate', 0))
      const [start, end] = handles as [Handle, Handle]
      const record = (event: Handle, stream: Handle): void =>
        context.call('cuEventRecordWithFlags', event, stream, RECORD_EXTERNAL)
      const executable = launcher.recording((overlap) =>
        capture(context, (stream) => {
          record(start, stream)
          launcher.issue(this.#commands, stream, overlap, () => {})
          record(end, stream)
        }),
      )
      return { executable, start, end }
    } catch (error) {
      for (const event of handles) calls.cuEventDestroy_v2(event)
      throw error
    }
  }
}

/** Captures the work queued by `body` as an executable graph in device memory, without running it. */
function capture(context: CudaContext, body: (stream: Handle) => void): Handle {
  const { calls } = context
  const stream = context.main.handle
  const out = new BigUint64Array(1)
  context.call('cuStreamBeginCapture_v2', stream, CAPTURE_RELAXED)
  try {
    body(stream)
  } catch (error) {
    // The capture must be ended in any case.
    if (calls.cuStreamEndCapture(stream, out) === CUDA.SUCCESS) calls.cuGraphDestroy(out[0]!)
    throw error
  }
  context.call('cuStreamEndCapture', stream, out)
  const graph = out[0]!
  const instantiated = calls.cuGraphInstantiateWithFlags(out, graph, 0n)
  calls.cuGraphDestroy(graph)
  context.check('cuGraphInstantiateWithFlags', instantiated)
  const executable = out[0]!
  const uploaded = calls.cuGraphUpload(executable, stream)
  if (uploaded !== CUDA.SUCCESS) calls.cuGraphExecDestroy(executable)
  context.check('cuGraphUpload', uploaded)
  return executable
}

const buffersOf = (c: Command): DeviceBuffer[] =>
  c.kind === 'clear' ? [c.buffer] : c.args.flatMap((a) => memoryOf(a) ?? [])
