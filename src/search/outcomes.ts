/** Outcomes of points: from errors that the points raised, and validated if a user's function returned them. */
import { InternalError, SptError } from '../ast/diagnostics/diagnostic.ts'
import { isRecord, show } from '../ast/diagnostics/expect-argument.ts'
import type { Outcome } from './types.ts'

/** Errors that may be caused by other work in flight on the device. */
const DEVICE_LOST: ReadonlySet<string> = new Set(['device/lost', 'device/fault'])

export const isLost = (e: unknown): boolean => e instanceof SptError && DEVICE_LOST.has(e.code)

/** True for the outcome of a point that lost the device. */
export const hasLostDevice = (o: Outcome): boolean => o.status === 'failed' && DEVICE_LOST.has(o.code)

/** Codes of diagnostics that are raised at run time or when capacity is exceeded; all others reject the point. */
const FAILURE_CODES = new Set([
  ...DEVICE_LOST,
  'device/cuda',
  'device/validation',
  'device/out-of-memory',
  'run/lost-writes',
  'search/timeout',
])

/** @throws `e` if it does not concern a point: errors of the caller or its signal */
export function outcomeOf(e: unknown): Extract<Outcome, { code: string }> {
  if (e instanceof SptError || e instanceof InternalError) {
    const { code, message } = e.diagnostics[0]!
    const isFailure = e instanceof InternalError || FAILURE_CODES.has(code)
    return { status: isFailure ? 'failed' : 'rejected', code, message }
  }
  // Errors of the JavaScript engine, such as 'Maximum call stack size exceeded' or 'Invalid array length'.
  if (e instanceof RangeError) return { status: 'failed', code: 'search/range', message: e.message }
  throw e
}

interface Fault {
  readonly what: string
  readonly expected: string
  /** True if a time is impossible (NaN, negative), so that only this outcome is unusable. */
  readonly isTime?: boolean
}

const OUTCOMES =
  "{ status: 'measured', timing }, or 'bounded' with atMost, 'rejected' or 'failed' with code and message, or 'wrong' with message"
const TIMINGS =
  '{ median, interval: [low, high] or null, samples }, in milliseconds, with the median in the interval'

/** The mistake in an outcome; `null` if it is a valid one. */
export function outcomeFault(outcome: unknown): Fault | null {
  const fault = (what: string): Fault => ({ what, expected: OUTCOMES })
  if (!isRecord(outcome)) return fault(`an outcome is ${show(outcome)}`)
  const { status, atMost, code, message } = outcome
  switch (status) {
    case 'measured':
      return timingFault(outcome.timing)
    case 'bounded':
      return typeof atMost === 'number' && atMost >= 0
        ? null
        : fault(`the bound of an outcome is ${show(atMost)}`)
    case 'rejected':
    case 'failed':
      return typeof code === 'string' && typeof message === 'string'
        ? null
        : fault(`an outcome that is ${status} has no code or no message`)
    case 'wrong':
      return typeof message === 'string' ? null : fault('an outcome that is wrong has no message')
    default:
      return fault(`the status of an outcome is ${show(status)}`)
  }
}

function timingFault(timing: unknown): Fault | null {
  const wrong = (what: string, isTime = false): Fault => ({ what, expected: TIMINGS, isTime })
  if (!isRecord(timing)) return wrong(`a timing is ${show(timing)}`)
  const { median, interval, samples } = timing
  if (typeof median !== 'number') return wrong(`a median is ${show(median)}`)
  if (!isTime(median)) return wrong(`a median is ${median}`, true)
  if (interval !== null && !(isNumbers(interval) && interval.length === 2))
    return wrong(`the interval of a median is ${show(interval)}`)
  if (!isNumbers(samples)) return wrong(`samples are ${show(samples)}`)
  if (![...(interval ?? []), ...samples].every(isTime))
    return wrong('a sample, or the end of an interval, is no time', true)
  return interval === null || (interval[0]! <= median && median <= interval[1]!)
    ? null
    : wrong(`the median is ${median}, and its interval [${interval.join(', ')}]`)
}

const isTime = (t: unknown): boolean => typeof t === 'number' && Number.isFinite(t) && t >= 0
const isNumbers = (x: unknown): x is readonly number[] =>
  Array.isArray(x) && x.every((t) => typeof t === 'number')
