/** What comes of points, from functions of users. */
import { fail } from '../ast/diagnostic.ts'
import { isRecord, show } from '../ast/expect-argument.ts'
import type { Outcome, Point, Timing } from './types.ts'

/**
 * What came of points; a time that is none is an outcome that failed, so that what else was measured is not lost.
 * @throws SptError `search/outcomes` where there is not an outcome for each point
 */
export function properOutcomes(
  asked: readonly { readonly point: Point }[],
  given: unknown,
): readonly Outcome[] {
  const isList = Array.isArray(given)
  if (!isList || given.length !== asked.length)
    return fail({
      code: 'search/outcomes',
      message: `${asked.length} points were to be tried, and ${isList ? `${given.length} outcomes` : show(given)} came`,
      expected: 'a list with an outcome for each point, in their order',
    })
  return given.map((outcome, k) => {
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
  "{ status: 'measured', timing }, or 'rejected' or 'failed' with code and message, or 'wrong' with message"

function faultOf(outcome: unknown): Fault | null {
  if (!isRecord(outcome)) return { what: `an outcome is ${show(outcome)}`, expected: OUTCOMES }
  switch (outcome.status) {
    case 'measured':
      return timingFault(outcome.timing)
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

const TIMINGS = '{ median, interval: [low, high], samples }, in milliseconds'

function timingFault(timing: unknown): Fault | null {
  const wrong = (what: string): Fault => ({ what, expected: TIMINGS, isTime: true })
  if (!isRecord(timing)) return wrong(`a timing is ${show(timing)}`)
  const { median, interval, samples } = timing as Partial<Record<keyof Timing, unknown>>
  const isTime = (t: unknown): t is number => typeof t === 'number' && Number.isFinite(t) && t >= 0
  if (!isTime(median)) return wrong(`a median is ${show(median)}`)
  const [low, high] = Array.isArray(interval) ? interval : []
  if (!isTime(low) || !isTime(high) || low > high) return wrong('the interval of a median is no interval')
  return Array.isArray(samples) ? null : wrong(`samples are ${show(samples)}`)
}
