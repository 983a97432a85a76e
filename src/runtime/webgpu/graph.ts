/** Graphs on WebGPU: bind groups and scalars stay in place, a replay encodes and submits them. */
import { checkRepeats } from '../check-calls.ts'
import type { Command, Graph, Stream } from '../device.ts'
import { checkStream, failFreed, type InOrder } from '../in-order.ts'
import type { Launcher, Recorded, Stamps } from './launch.ts'

/** Services of the device that its graphs use. */
export interface GraphHost {
  readonly order: InOrder
  readonly launcher: Launcher
  /** Refuses commands whose buffers or modules are gone, and everything on a device that is. */
  check(commands: readonly Command[]): void
  /** Milliseconds of each of `repeats` submissions that `submit` makes, each after `between`. */
  time(
    commands: readonly Command[],
    repeats: number,
    submit: (stamps?: Stamps) => void,
    between?: Graph,
  ): Promise<number[]>
}

export class GpuGraph implements Graph {
  readonly #host: GraphHost
  readonly #commands: readonly Command[]
  readonly #recorded: Recorded
  #freed = false

  constructor(host: GraphHost, commands: readonly Command[], recorded: Recorded) {
    this.#host = host
    this.#commands = commands
    this.#recorded = recorded
  }

  launch(stream?: Stream): void {
    checkStream(stream, this.#host.order)
    this.#use()
    this.#host.launcher.replay(this.#recorded)
  }

  async time(repeats: number, between?: Graph): Promise<number[]> {
    checkRepeats(repeats, between)
    this.#use()
    return this.#host.time(
      this.#commands,
      repeats,
      (stamps) => {
        this.#use()
        this.#host.launcher.replay(this.#recorded, stamps)
      },
      between,
    )
  }

  free(): void {
    if (this.#freed) return
    this.#freed = true
    this.#recorded.free()
  }

  #use(): void {
    if (this.#freed) failFreed('the graph')
    this.#host.check(this.#commands)
  }
}
