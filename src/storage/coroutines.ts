/**
 * Coroutines: work that may have to wait for numbers that a device computes and that decide what is done next. Each is a
 * generator that yields what it waits for; on the host nothing is waited for, and it runs to its end.
 */
import { invariant } from '../ast/diagnostic.ts'

export type Coroutine<T> = Generator<Promise<unknown>, T, unknown>

/** The value of a promise. */
export function* waitFor<T>(promise: Promise<T>): Coroutine<T> {
  return (yield promise) as T
}

/** What is there already. */
// biome-ignore lint/correctness/useYield: it waits for nothing
export function* ready<T>(value: T): Coroutine<T> {
  return value
}

/** Runs work that waits for nothing. */
export function runSync<T>(steps: Coroutine<T>): T {
  const { done, value } = steps.next()
  invariant(done, 'the host waits for nothing')
  return value as T
}

/** Runs work, and waits where it has to; `around` surrounds each stretch between two waits. */
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
