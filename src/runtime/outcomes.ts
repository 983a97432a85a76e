/** Checks for errors without a fault when a call waits for launches. */
import type { Command, Graph, Outcome, Stream } from './device.ts'
import { DISPOSE } from './dispose.ts'

/** Outcomes of queued launches that no call has awaited. */
export class Outcomes {
  /** Unchecked outcomes, with the stream on which they were queued last. */
  readonly #pending = new Map<Outcome, Stream | undefined>()

  /** Checks completed commands. If several failed, the next waiting call reports the next error. */
  async settleCompleted(commands: readonly Command[]): Promise<void> {
    const outcomes = this.markQueued(commands, undefined)
    await this.#settle(outcomes)
  }

  /** Checks all queued work, or that of a stream, after it has completed. */
  settle(stream?: Stream): Promise<void> {
    const outcomes = [...this.#pending].flatMap(([o, queuedOn]) =>
      stream === undefined || queuedOn === stream ? [o] : [],
    )
    return this.#settle(outcomes)
  }

  /** Wraps the graph of these commands, so that its replays are checked. */
  graph(graph: Graph, commands: readonly Command[]): Graph {
    const outcomes = outcomesOf(commands)
    if (outcomes.length === 0) return graph
    return {
      launch: (stream) => {
        graph.launch(stream)
        this.markQueued(commands, stream)
      },
      time: async (repeats, between) => {
        const times = await graph.time(repeats, between)
        this.markQueued(commands, undefined)
        await this.#settle(outcomes)
        return times
      },
      free: () => graph.free(),
      [DISPOSE]: () => graph.free(),
    }
  }

  markQueued(commands: readonly Command[], stream: Stream | undefined): readonly Outcome[] {
    const outcomes = outcomesOf(commands)
    for (const outcome of outcomes) {
      outcome.markQueued()
      this.#pending.set(outcome, stream)
    }
    return outcomes
  }

  /** For commands in a caller's encoder, which may be submitted at any time. */
  markRecorded(commands: readonly Command[]): void {
    for (const outcome of outcomesOf(commands)) outcome.markRecorded()
  }

  async #settle(outcomes: readonly Outcome[]): Promise<void> {
    for (const outcome of outcomes) {
      this.#pending.delete(outcome)
      await outcome.settle()
    }
  }
}

const outcomesOf = (commands: readonly Command[]): readonly Outcome[] => [
  ...new Set(commands.flatMap((c) => (c.kind === 'launch' && c.outcome ? [c.outcome] : []))),
]
