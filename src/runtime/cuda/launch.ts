/** Queueing commands on a stream, or recording them while it is captured. */
import { fail } from '../../ast/diagnostic.ts'
import type { Command } from '../device.ts'
import { ArgumentBlock, packArguments } from './arguments.ts'
import { ClusterConfig } from './cluster.ts'
import type { CudaContext, CudaQueue } from './context.ts'
import { callError, type Handle } from './driver.ts'
import { CUDA } from './errors.ts'
import type { CudaMemory } from './memory.ts'
import { CudaModule, type LoadedEntry } from './module.ts'

type Launch = Extract<Command, { kind: 'launch' }>

export class Launcher {
  readonly #context: CudaContext
  readonly #memory: CudaMemory
  readonly #modules: ReadonlySet<CudaModule>
  readonly #block: ArgumentBlock
  readonly #cluster: ClusterConfig

  constructor(context: CudaContext, memory: CudaMemory, modules: ReadonlySet<CudaModule>) {
    this.#context = context
    this.#memory = memory
    this.#modules = modules
    const addressOf = (block: ArrayBuffer): bigint => context.driver.addressOf(block)
    this.#block = new ArgumentBlock(addressOf)
    this.#cluster = new ClusterConfig(addressOf)
  }

  /** The context must be current. `wait`: after each kernel, so that a fault names it. */
  queue(commands: readonly Command[], queue: CudaQueue, wait: boolean): void {
    for (const command of commands) {
      const kernel = this.issue(command, queue.handle)
      queue.busy = true
      if (kernel !== undefined) this.#context.launched(queue, kernel, wait)
    }
  }

  /** The kernel as messages show it, where there is one. */
  issue(command: Command, stream: Handle): string | undefined {
    if (command.kind === 'launch') return this.#launch(command, stream)
    const { address, bytes } = this.#memory.own(command.buffer)
    if (bytes > 0) {
      const code = this.#context.calls.cuMemsetD8Async(address, 0, bytes, stream)
      this.#context.check('cuMemsetD8Async', code)
    }
    return undefined
  }

  #launch(command: Launch, stream: Handle): string {
    const loaded = this.entry(command)
    const { entry, fn, shown } = loaded
    this.#checkGrid(loaded, command.grid)
    packArguments(this.#block, entry, command.args, (value) => this.#memory.own(value).address)
    const [x, y, z] = command.grid
    const [bx, by, bz] = entry.block
    const { pointers } = this.#block
    const shared = entry.sharedBytes
    const { calls } = this.#context
    const code = entry.cluster
      ? calls.cuLaunchKernelEx(this.#cluster.fill(entry, command.grid, stream), fn, pointers, null)
      : calls.cuLaunchKernel(fn, x, y, z, bx, by, bz, shared, stream, pointers, null)
    if (code !== CUDA.SUCCESS) {
      const error = callError(
        this.#context.driver,
        entry.cluster ? 'cuLaunchKernelEx' : 'cuLaunchKernel',
        code,
      )
      throw this.#context.translate(error, `launching kernel ${shown}`)
    }
    return shown
  }

  /** @throws SptError `device/foreign-module`, `device/released-module`, `device/unknown-entry` */
  entry(command: Launch): LoadedEntry {
    const { module } = command
    if (!(module instanceof CudaModule) || !this.#modules.has(module)) {
      const gone = module instanceof CudaModule && module.released
      fail({
        code: gone ? 'device/released-module' : 'device/foreign-module',
        message: `the module of kernel '${command.entry}' was ${gone ? 'released' : 'not compiled on this device'}`,
      })
    }
    const loaded = module.entries.get(command.entry)
    if (loaded) return loaded
    return fail({
      code: 'device/unknown-entry',
      message: `module '${module.text.name}' has no kernel '${command.entry}'`,
      lookup: { name: command.entry, candidates: [...module.entries.keys()] },
    })
  }

  #checkGrid({ entry, shown }: LoadedEntry, grid: readonly [number, number, number]): void {
    const { maxGridDim } = this.#context.chip
    const { cluster } = entry
    if (!grid.every((n, d) => Number.isInteger(n) && n >= 1 && n <= maxGridDim[d]!)) {
      fail({
        code: 'device/grid',
        message: `kernel ${shown} cannot be launched with a grid of ${grid.join(' x ')} blocks`,
        expected: `whole numbers from 1 to ${maxGridDim.join(', ')}`,
      })
    }
    if (cluster && grid.some((n, d) => n % cluster[d]! !== 0)) {
      fail({
        code: 'device/grid',
        message: `kernel ${shown} cannot be launched with a grid of ${grid.join(' x ')} blocks in clusters of ${cluster.join(' x ')}`,
        expected: 'multiples of the cluster in each dimension',
      })
    }
  }
}
