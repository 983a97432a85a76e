/** Checks for errors without a fault when a call waits for launches. */
import type { Command } from './device.ts'
import type { Outcome } from './outcome.ts'
import type { Graph, Stream } from './streams.ts'

/** Outcomes of queued launches that no call has awaited. */
export class Outcomes {
  /** Unchecked outcomes, with the stream on which they were queued last. */
  readonly #open = new Map<Outcome, Stream | undefined>()

  /** Checks queued commands that have ended. If several failed, the next waiting call reports the next error. */
  async ended(commands: readonly Command[]): Promise<void> {
    const all = outcomesOf(commands)
    this.#queued(all, undefined)
    await this.#settle(all)
  }

  /** All that was queued has ended, or all on the stream. */
  settle(stream?: Stream): Promise<void> {
    const all = [...this.#open].flatMap(([o, on]) => (stream === undefined || on === stream ? [o] : []))
    return this.#settle(all)
  }

  /** Wraps the graph of these commands, so that its replays are checked. */
  graph(graph: Graph, commands: readonly Command[]): Graph {
    const all = outcomesOf(commands)
    if (all.length === 0) return graph
    return {
      launch: (stream) => {
        graph.launch(stream)
        this.#queued(all, stream)
      },
      time: async (repeats, between) => {
        const times = await graph.time(repeats, between)
        this.#queued(all, undefined)
        await this.#settle(all)
        return times
      },
      free: () => graph.free(),
    }
  }

  #queued(all: readonly Outcome[], stream: Stream | undefined): void {
    for (const outcome of all) {
      outcome.queued()
      this.#open.set(outcome, stream)
    }
  }

  async #settle(all: readonly Outcome[]): Promise<void> {
    for (const outcome of all) {
      this.#open.delete(outcome)
      await outcome.settle()
    }
  }
}

const outcomesOf = (commands: readonly Command[]): readonly Outcome[] => [
  ...new Set(commands.flatMap((c) => (c.kind === 'launch' && c.outcome ? [c.outcome] : []))),
]
