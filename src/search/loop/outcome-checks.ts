/** Validates the outcomes that user functions return. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { isRecord, show } from '../../ast/diagnostics/expect-argument.ts'
import type { Outcome, Point, Timing } from '../types.ts'

/**
 * Validates outcomes of points. An impossible time (NaN, negative) becomes a failed outcome, so that the other measurements
 * are kept.
 * @throws SptError `search/outcomes` if the number of outcomes differs from the number of points
 */
export function properOutcomes(
  asked: readonly { readonly point: Point }[],
  given: unknown,
  mayBeNull = false,
): readonly (Outcome | null)[] {
  const isList = Array.isArray(given)
  if (!isList || given.length !== asked.length)
    return fail({
      code: 'search/outcomes',
      message: `${asked.length} points were measured, and ${isList ? `${given.length} outcomes` : show(given)} came`,
      expected: 'a list with an outcome for each point, in their order',
    })
  return given.map((outcome, k) => {
    if (outcome === null && mayBeNull) return null
    const fault = faultOf(outcome)
    if (fault === null) return outcome
    const { what, expected, isTime } = fault
    if (isTime) return { status: 'failed', code: 'search/outcomes', message: `${what}, not ${expected}` }
    return fail({
      code: 'search/outcomes',
      message: `${what}: of ${JSON.stringify(asked[k]!.point)}`,
      expected,
    })
  })
}

interface Fault {
  readonly what: string
  readonly expected: string
  readonly isTime?: boolean
}

const OUTCOMES =
  "{ status: 'measured', timing }, or 'bounded' with atMost, 'rejected' or 'failed' with code and message, or 'wrong' with message"

function faultOf(outcome: unknown): Fault | null {
  if (!isRecord(outcome)) return { what: `an outcome is ${show(outcome)}`, expected: OUTCOMES }
  switch (outcome.status) {
    case 'measured':
      return timingFault(outcome.timing)
    case 'bounded':
      return typeof outcome.atMost === 'number' && outcome.atMost >= 0
        ? null
        : { what: `the bound of an outcome is ${show(outcome.atMost)}`, expected: OUTCOMES }
    case 'rejected':
    case 'failed':
      return typeof outcome.code === 'string' && typeof outcome.message === 'string'
        ? null
        : { what: `an outcome that is ${outcome.status} has no code or no message`, expected: OUTCOMES }
    case 'wrong':
      return typeof outcome.message === 'string'
        ? null
        : { what: 'an outcome that is wrong has no message', expected: OUTCOMES }
    default:
      return { what: `the status of an outcome is ${show(outcome.status)}`, expected: OUTCOMES }
  }
}

const TIMINGS =
  '{ median, interval: [low, high] or null, samples }, in milliseconds, with the median in the interval'

function timingFault(timing: unknown): Fault | null {
  const wrong = (what: string, isTime = false): Fault => ({ what, expected: TIMINGS, isTime })
  if (!isRecord(timing)) return wrong(`a timing is ${show(timing)}`)
  const { median, interval, samples } = timing as Partial<Record<keyof Timing, unknown>>
  if (typeof median !== 'number') return wrong(`a median is ${show(median)}`)
  const isTime = (t: unknown): boolean => typeof t === 'number' && Number.isFinite(t) && t >= 0
  if (!isTime(median)) return wrong(`a median is ${median}`, true)
  if (interval !== null && !isPair(interval)) return wrong(`the interval of a median is ${show(interval)}`)
  if (!isNumbers(samples)) return wrong(`samples are ${show(samples)}`)
  if (![...(interval ?? []), ...samples].every(isTime))
    return wrong('a sample, or the end of an interval, is no time', true)
  return interval === null || (interval[0] <= median && median <= interval[1])
    ? null
    : wrong(`the median is ${median}, and its interval [${interval.join(', ')}]`)
}

const isNumbers = (x: unknown): x is readonly number[] =>
  Array.isArray(x) && x.every((t) => typeof t === 'number')
const isPair = (x: unknown): x is readonly [number, number] => isNumbers(x) && x.length === 2
