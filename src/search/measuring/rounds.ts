/**
 * Measures candidates against each other: each round samples all of them once in random order, so that disturbances of the
 * device affect all equally. A candidate leaves when it cannot be the fastest any more, or its median is precise enough.
 */
import { fail, SptError } from '../../ast/diagnostic.ts'
import { show } from '../../ast/expect-argument.ts'
import { Random } from '../../run/bind/random-tensors.ts'
import { shuffled } from '../shuffled.ts'
import type { Outcome } from '../types.ts'
import { type Drift, References } from './drift.ts'
import { EventTurns } from './event-turns.ts'
import { CONFIDENCE, medianInterval, summarizeSamples } from './median-interval.ts'

/** A candidate that can be timed. */
export interface Timed {
  /** Milliseconds of one more run. @throws SptError for a fault of this candidate, which drops it */
  sample(): Promise<number>
}

export interface RoundsOptions {
  /** Samples of a candidate at most; 50. */
  readonly rounds?: number | undefined
  /** Confidence level of the intervals; 0.95. */
  readonly confidence?: number | undefined
  /** Width of the interval over the median at which a candidate is known well enough; 0.02. */
  readonly width?: number | undefined
  /** Those that cannot be the fastest are sampled as often as the others; false. */
  readonly all?: boolean | undefined
  /** Milliseconds of the fastest earlier measurement: candidates certainly slower by a tenth are dropped. */
  readonly fastest?: number | undefined
  /** Ends it after the round in which they are over. */
  readonly seconds?: number | undefined
  /** Seed of the orders; 1. */
  readonly seed?: number | undefined
  /** Cancels the measurement; the abort reason is thrown and the samples are discarded. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds, of which the differences count; the host's clock. */
  readonly now?: (() => number) | undefined
}

export type ExitReason =
  /** It cannot be the fastest. */
  | 'slower'
  /** Its interval is narrow enough. */
  | 'narrow'
  /** It had all rounds. */
  | 'rounds'
  /** Its time was over. */
  | 'ended'
  | 'failed'

export interface RoundsResult {
  /** Outcome of each candidate: measured, with drift-corrected times, or failed. */
  readonly outcomes: readonly Outcome[]
  readonly exitReasons: readonly ExitReason[]
  /** `null`: there was no reference. */
  readonly drift: Drift | null
}

/** Confidence level for dropping a slower candidate: high, because of repeated tests on many candidates. */
const SURE = 0.99
/** Samples that intervals of that take. */
const LEAST = 8
/** With few samples, a candidate is dropped only if its minimum exceeds `FAR` times the maximum of the fastest. */
const FEW = 3
const FAR = 1.5
/** Tolerance for times measured at another time. */
const ELSEWHERE = 1.1
/** Candidates between two references. */
const BETWEEN = 8

interface Candidate {
  readonly timed: Timed
  readonly times: number[]
  /** References before each of them. */
  readonly before: number[]
  out: ExitReason | null
  error: SptError | null
}

/**
 * @param reference measured between the rounds, against drift
 * @throws SptError `search/rounds`; errors that no candidate caused
 */
export async function raced(
  candidates: readonly Timed[],
  options: RoundsOptions = {},
  reference?: Timed,
): Promise<RoundsResult> {
  const { rounds = 50, confidence = CONFIDENCE, width = 0.02, seconds, seed = 1, signal } = options
  check(rounds, confidence, width, seconds)
  const bar = ELSEWHERE * (options.fastest ?? Number.POSITIVE_INFINITY)
  const now = options.now ?? (() => performance.now())
  const start = now()
  const random = new Random(seed)
  const turns = new EventTurns(signal)
  const references = new References()
  const all = candidates.map((timed): Candidate => ({ timed, times: [], before: [], out: null, error: null }))
  const refer = async (): Promise<void> => {
    if (!reference || all.every((c) => c.out)) return
    await turns.next()
    try {
      references.add(await reference.sample())
    } catch (e) {
      if (!isLost(e)) throw e
      blame(all, e)
    }
  }
  const isOver = (): boolean => seconds !== undefined && now() - start >= seconds * 1000
  for (let round = 0; round < rounds; round++) {
    const active = shuffled(
      all.filter((c) => c.out === null),
      () => random.next(),
    )
    if (active.length === 0) break
    for (const [k, candidate] of active.entries()) {
      if (k % BETWEEN === 0) await refer()
      await turns.next()
      await sample(candidate, references.count, all)
    }
    await refer()
    if (isOver()) break
    judge(all, references, { confidence, width, bar, keepsSlow: options.all === true })
  }
  for (const c of all) c.out ??= c.times.length === rounds ? 'rounds' : 'ended'
  const out = all.map((c) => c.out!)
  const outcomes = all.map((c) => outcomeOf(c, references, confidence))
  const drift = reference ? references.drift(all.flatMap((c) => c.before)) : null
  return { outcomes, exitReasons: out, drift }
}

async function sample(candidate: Candidate, before: number, all: readonly Candidate[]): Promise<void> {
  // One that was lost with the device meanwhile.
  if (candidate.out) return
  try {
    candidate.times.push(await candidate.timed.sample())
    candidate.before.push(before)
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    blame(isLost(e) ? all : [candidate], e)
  }
}

const isLost = (e: unknown): e is SptError =>
  e instanceof SptError && e.diagnostics[0]!.code === 'device/lost'

/** Marks the remaining candidates as failed with this error. */
function blame(candidates: readonly Candidate[], error: SptError): void {
  for (const c of candidates) {
    if (c.out) continue
    c.error = error
    c.out = 'failed'
  }
}

interface Judging {
  readonly confidence: number
  readonly width: number
  /** Milliseconds beyond which nothing can be the fastest. */
  readonly bar: number
  readonly keepsSlow: boolean
}

/** Drops candidates that need no more samples. */
function judge(
  all: readonly Candidate[],
  references: References,
  { confidence, width, bar, keepsSlow }: Judging,
): void {
  const well = all.filter((c) => c.error === null && c.times.length > 0)
  const times = well.map((c) => corrected(c, references))
  const sure = times.map((t) => (t.length >= LEAST ? medianInterval(t, SURE) : null))
  const bestHigh = Math.min(bar, ...sure.map((s) => s?.high ?? Number.POSITIVE_INFINITY))
  const bestWorst = Math.min(
    bar,
    ...times.map((t) => (t.length >= FEW ? Math.max(...t) : Number.POSITIVE_INFINITY)),
  )
  for (const [k, c] of well.entries()) {
    if (c.out) continue
    const own = times[k]!
    const isFar = !keepsSlow && own.length >= FEW && Math.min(...own) > FAR * bestWorst
    if (isFar || (!keepsSlow && sure[k] && sure[k].low > bestHigh)) c.out = 'slower'
    else {
      const { median, low, high, confidence: reached } = medianInterval(own, confidence)
      if (reached >= confidence && high - low <= width * median) c.out = 'narrow'
    }
  }
}

function corrected({ times, before }: Candidate, references: References): readonly number[] {
  const factors = references.factors(before)
  return times.map((t, k) => t / factors[k]!)
}

function outcomeOf(candidate: Candidate, references: References, confidence: number): Outcome {
  if (candidate.error) {
    const { code, message } = candidate.error.diagnostics[0]!
    return { status: 'failed', code, message }
  }
  const samples = corrected(candidate, references)
  return { status: 'measured', timing: summarizeSamples(samples, confidence) }
}

function check(rounds: number, confidence: number, width: number, seconds: number | undefined): void {
  const refuse = (what: string, got: unknown, expected: string): never =>
    fail({ code: 'search/rounds', message: `${what} cannot be ${show(got)}`, expected })
  if (!Number.isSafeInteger(rounds) || rounds < 1) refuse('rounds', rounds, 'a whole number from 1 on')
  if (!(confidence > 0 && confidence < 1)) refuse('confidence', confidence, 'between 0 and 1')
  if (!(width >= 0)) refuse('width', width, '0 or more')
  if (seconds !== undefined && !(seconds > 0)) refuse('seconds', seconds, 'more than 0')
}
