/**
 * Coroutines: work that may wait for numbers computed by a device which decide its next steps. Each is a generator that
 * yields promises; on the host it never waits and runs to its end.
 */
import { invariant } from '../ast/diagnostics/diagnostic.ts'

export type Coroutine<T> = Generator<Promise<unknown>, T, unknown>

export function* waitFor<T>(promise: Promise<T>): Coroutine<T> {
  return (yield promise) as T
}

// biome-ignore lint/correctness/useYield: it waits for nothing
export function* ready<T>(value: T): Coroutine<T> {
  return value
}

/** Runs a coroutine that never waits. */
export function runSync<T>(steps: Coroutine<T>): T {
  const { done, value } = steps.next()
  invariant(done, 'the host waits for nothing')
  return value as T
}

/** Runs a coroutine and awaits its promises; `around` wraps each segment of execution between two waits. */
export async function runAsync<T>(
  steps: Coroutine<T>,
  around: <R>(resume: () => R) => R = (resume) => resume(),
): Promise<T> {
  let step = around(() => steps.next())
  while (!step.done) {
    let value: unknown
    try {
      value = await step.value
    } catch (e) {
      step = around(() => steps.throw(e))
      continue
    }
    step = around(() => steps.next(value))
  }
  return step.value
}
