/** Graphs on WebGPU: bind groups and scalars are kept, and a replay encodes and submits commands. */

import type { Command, Graph, Stream } from '../device.ts'
import { checkRepeats } from '../device-checks.ts'
import { checkStream, failFreed, type InOrder } from '../in-order.ts'
import type { Launcher, RecordedCommands, TimestampRange } from './launch.ts'

/** Services of the device that its graphs use. */
export interface GraphHost {
  readonly order: InOrder
  readonly launcher: Launcher
  /** Checks that the device, buffers and modules of the commands are live. @throws SptError */
  check(commands: readonly Command[]): void
  /** Milliseconds of each of `repeats` submissions by `submit`, each after `between`. */
  time(
    commands: readonly Command[],
    repeats: number,
    submit: (stamps?: TimestampRange) => void,
    between?: Graph,
  ): Promise<number[]>
}

export class GpuGraph implements Graph {
  readonly #host: GraphHost
  readonly #commands: readonly Command[]
  readonly #recorded: RecordedCommands
  #freed = false

  constructor(host: GraphHost, commands: readonly Command[], recorded: RecordedCommands) {
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
