/**
 * Work that takes long, as steps: it pauses wherever others may have their turn, so that one text of it runs at once, or
 * lets timers and signals be heard.
 */
import { EventTurns } from './measuring/event-turns.ts'

/** Each `yield` is a pause; the work between two pauses is at most that of a single point. */
export type Stepwise<T> = Generator<undefined, T, undefined>

/** To its end, without a pause. */
export function atOnce<T>(work: Stepwise<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

/** Runs to the end, yielding to the event loop every 20 ms. @throws the abort reason of `signal` */
export async function inTurns<T>(work: Stepwise<T>, signal?: AbortSignal): Promise<T> {
  signal?.throwIfAborted()
  const turns = new EventTurns(signal)
  try {
    for (;;) {
      const step = work.next()
      if (step.done) return step.value
      if (turns.isDue) await turns.next()
    }
  } finally {
    // Also ends the generators that this generator delegates to.
    work.return(undefined as never)
  }
}

/** Maps a list, one item after another. */
export function* eachOf<T, R>(list: Iterable<T>, work: (item: T) => Stepwise<R>): Stepwise<R[]> {
  const out: R[] = []
  for (const x of list) out.push(yield* work(x))
  return out
}
