/** Converts errors to outcomes of the points that raised them. */
import { InternalError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { EvaluationContext } from '../loop/search-options.ts'
import type { Outcome } from '../types.ts'

/** Errors that may be caused by other work in flight on the device. */
export const DEVICE_LOST: ReadonlySet<string> = new Set(['device/lost', 'device/fault'])

export const isLost = (e: unknown): boolean =>
  e instanceof SptError && DEVICE_LOST.has(e.diagnostics[0]!.code)

/** Codes of diagnostics that are raised at run time or when capacity is exceeded; all others reject the point. */
const FAILURE_CODES = new Set([
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
    return { status: FAILURE_CODES.has(code) ? 'failed' : 'rejected', code, message }
  }
  if (e instanceof InternalError) {
    const { code, message } = e.diagnostics[0]!
    return { status: 'failed', code, message }
  }
  // Errors of the JavaScript engine, such as 'Maximum call stack size exceeded' or 'Invalid array length'.
  if (e instanceof RangeError) return { status: 'failed', code: 'search/range', message: e.message }
  throw e
}

/** Outcomes by index. Reported outcomes are final; stored ones may be replaced after a retry. */
export class Outcomes {
  readonly list: Outcome[] = []
  readonly #onSettle: EvaluationContext['report']

  constructor(onSettle: EvaluationContext['report']) {
    this.#onSettle = onSettle
  }

  store(index: number, outcome: Outcome): void {
    this.list[index] = outcome
  }

  report(index: number, outcome: Outcome): void {
    this.store(index, outcome)
    this.#onSettle?.(index, outcome)
  }

  reportAll(indices: readonly number[]): void {
    for (const index of indices) this.report(index, this.list[index]!)
  }
}
