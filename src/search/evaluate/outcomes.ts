/** Converts errors to outcomes of the points that raised them. */
import { InternalError, SptError } from '../../ast/diagnostic.ts'
import type { EvaluationContext } from '../search-options.ts'
import type { Outcome } from '../types.ts'

/** Errors that may be caused by other work in flight on the device. */
export const LOST: ReadonlySet<string> = new Set(['device/lost', 'device/fault'])

export const isLost = (e: unknown): boolean => e instanceof SptError && LOST.has(e.diagnostics[0]!.code)

/** Modules whose diagnostics are raised at run time, or when capacity is exceeded. */
const BROKE = new Set([
  'device/lost',
  'device/fault',
  'device/cuda',
  'device/validation',
  'device/out-of-memory',
  'run/lost-writes',
  'search/timeout',
])

/** @throws `e` if it does not concern a point: errors of the caller or its signal */
export function outcomeOf(e: unknown): Extract<Outcome, { code: string }> {
  if (e instanceof SptError) {
    const { code, message } = e.diagnostics[0]!
    return { status: BROKE.has(code) ? 'failed' : 'rejected', code, message }
  }
  if (e instanceof InternalError) {
    const { code, message } = e.diagnostics[0]!
    return { status: 'failed', code, message }
  }
  // Of engines: 'Maximum call stack size exceeded', 'Invalid array length'.
  if (e instanceof RangeError) return { status: 'failed', code: 'search/range', message: e.message }
  throw e
}

/** Outcomes by index. Settled ones are reported at once; others may be retried. */
export class Outcomes {
  readonly all: Outcome[] = []
  readonly #told: EvaluationContext['report']

  constructor(told: EvaluationContext['report']) {
    this.#told = told
  }

  put(at: number, outcome: Outcome): void {
    this.all[at] = outcome
  }

  set(at: number, outcome: Outcome): void {
    this.put(at, outcome)
    this.#told?.(at, outcome)
  }

  settle(places: readonly number[]): void {
    for (const at of places) this.set(at, this.all[at]!)
  }
}
