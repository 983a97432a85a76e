/**
 * Measures candidates against each other: each round samples all of them once in random order, so that disturbances of the
 * device affect all equally. A candidate leaves when it cannot be the fastest any more, or its median is precise enough.
 */
import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { show } from '../../ast/diagnostics/expect-argument.ts'
import { type AbortSignalLike, Work } from '../../ast/work.ts'
import { Random } from '../../run/bind/sources/random-tensors.ts'
import { shuffled } from '../statistics/shuffled.ts'
import type { Outcome } from '../types.ts'
import { type Drift, References } from './drift.ts'
import { CONFIDENCE, medianInterval, summarizeSamples } from './median-interval.ts'

export interface Sampler {
  /** Milliseconds of one more run. @throws SptError for a fault of this candidate, which excludes it */
  sample(): Promise<number>
}

export interface RoundsOptions {
  /** Maximum number of samples of a candidate; default 50. */
  readonly rounds?: number | undefined
  /** Confidence level of the intervals; default 0.95. */
  readonly confidence?: number | undefined
  /** Relative width of the interval below which a candidate needs no more samples; default 0.02. */
  readonly width?: number | undefined
  /** Samples candidates that cannot be the fastest as often as the others; default false. */
  readonly all?: boolean | undefined
  /** Milliseconds of the fastest earlier measurement: candidates certainly slower by a tenth are dropped. */
  readonly fastest?: number | undefined
  /** Seconds after which the measurement ends with the current round. */
  readonly seconds?: number | undefined
  /** Seed of the orders; default 1. */
  readonly seed?: number | undefined
  /** Cancels the measurement; the abort reason is thrown and the samples are discarded. */
  readonly signal?: AbortSignalLike | undefined
  /** Clock in milliseconds, of which only differences are used; default: the host's clock. */
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
const DROP_CONFIDENCE = 0.99
/** Minimum number of samples for intervals of this confidence. */
const MIN_SAMPLES = 8
/** Early exit: with these samples, a candidate is dropped if its minimum exceeds this factor times the fastest. */
const EARLY_SAMPLES = 3
const EARLY_FACTOR = 1.5
/** Tolerance for times of earlier measurements. */
const TRANSFER_TOLERANCE = 1.1
/** Number of candidates between two references. */
const REFERENCE_INTERVAL = 8

interface Candidate {
  readonly sampler: Sampler
  readonly times: number[]
  /** Number of references before each sample. */
  readonly referenceCounts: number[]
  exit: ExitReason | null
  error: SptError | null
}

/**
 * Measures candidates in rounds.
 * @param reference - Measured between the rounds to correct drift
 * @throws SptError `search/rounds`; errors that no candidate caused
 */
export async function measureInRounds(
  candidates: readonly Sampler[],
  options: RoundsOptions = {},
  reference?: Sampler,
): Promise<RoundsResult> {
  const { rounds = 50, confidence = CONFIDENCE, width = 0.02, seconds, seed = 1, signal } = options
  check(rounds, confidence, width, seconds)
  const threshold = TRANSFER_TOLERANCE * (options.fastest ?? Number.POSITIVE_INFINITY)
  const now = options.now ?? (() => performance.now())
  const start = now()
  const random = new Random(seed)
  const turns = new Work({ signal })
  const references = new References()
  const entries = candidates.map(
    (sampler): Candidate => ({ sampler, times: [], referenceCounts: [], exit: null, error: null }),
  )
  const sampleReference = async (): Promise<void> => {
    if (!reference || entries.every((c) => c.exit)) return
    await turns.checkpoint()
    try {
      references.add(await reference.sample())
    } catch (e) {
      if (!isLost(e)) throw e
      markFailed(entries, e)
    }
  }
  const isOver = (): boolean => seconds !== undefined && now() - start >= seconds * 1000
  for (let round = 0; round < rounds; round++) {
    const active = shuffled(
      entries.filter((c) => c.exit === null),
      () => random.next(),
    )
    if (active.length === 0) break
    for (const [k, candidate] of active.entries()) {
      if (k % REFERENCE_INTERVAL === 0) await sampleReference()
      await turns.checkpoint()
      await takeSample(candidate, references.count, entries)
    }
    await sampleReference()
    if (isOver()) break
    judge(entries, references, { confidence, width, threshold, keepsSlow: options.all === true })
  }
  for (const c of entries) c.exit ??= c.times.length === rounds ? 'rounds' : 'ended'
  const exits = entries.map((c) => c.exit!)
  const outcomes = entries.map((c) => outcomeOf(c, references, confidence))
  const drift = reference ? references.drift(entries.flatMap((c) => c.referenceCounts)) : null
  return { outcomes, exitReasons: exits, drift }
}

async function takeSample(
  candidate: Candidate,
  referenceCount: number,
  entries: readonly Candidate[],
): Promise<void> {
  // The candidate may have been lost with the device meanwhile.
  if (candidate.exit) return
  try {
    candidate.times.push(await candidate.sampler.sample())
    candidate.referenceCounts.push(referenceCount)
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    markFailed(isLost(e) ? entries : [candidate], e)
  }
}

const isLost = (e: unknown): e is SptError => e instanceof SptError && e.code === 'device/lost'

function markFailed(candidates: readonly Candidate[], error: SptError): void {
  for (const c of candidates) {
    if (c.exit) continue
    c.error = error
    c.exit = 'failed'
  }
}

interface JudgeOptions {
  readonly confidence: number
  readonly width: number
  /** Milliseconds above which no candidate can be the fastest. */
  readonly threshold: number
  readonly keepsSlow: boolean
}

function judge(
  entries: readonly Candidate[],
  references: References,
  { confidence, width, threshold, keepsSlow }: JudgeOptions,
): void {
  const sampled = entries.filter((c) => c.error === null && c.times.length > 0)
  const times = sampled.map((c) => correctTimes(c, references))
  const intervals = times.map((t) => (t.length >= MIN_SAMPLES ? medianInterval(t, DROP_CONFIDENCE) : null))
  const bestHigh = Math.min(threshold, ...intervals.map((s) => s?.high ?? Number.POSITIVE_INFINITY))
  const bestWorst = Math.min(
    threshold,
    ...times.map((t) => (t.length >= EARLY_SAMPLES ? Math.max(...t) : Number.POSITIVE_INFINITY)),
  )
  for (const [k, c] of sampled.entries()) {
    if (c.exit) continue
    const samples = times[k]!
    const isFar =
      !keepsSlow && samples.length >= EARLY_SAMPLES && Math.min(...samples) > EARLY_FACTOR * bestWorst
    if (isFar || (!keepsSlow && intervals[k] && intervals[k].low > bestHigh)) c.exit = 'slower'
    else {
      const { median, low, high, confidence: actual } = medianInterval(samples, confidence)
      if (actual >= confidence && high - low <= width * median) c.exit = 'narrow'
    }
  }
}

function correctTimes({ times, referenceCounts }: Candidate, references: References): readonly number[] {
  const factors = references.factors(referenceCounts)
  return times.map((t, k) => t / factors[k]!)
}

function outcomeOf(candidate: Candidate, references: References, confidence: number): Outcome {
  if (candidate.error) {
    const { code, message } = candidate.error.diagnostics[0]!
    return { status: 'failed', code, message }
  }
  const samples = correctTimes(candidate, references)
  return { status: 'measured', timing: summarizeSamples(samples, confidence) }
}

function check(rounds: number, confidence: number, width: number, seconds: number | undefined): void {
  const reject = (what: string, value: unknown, expected: string): never =>
    failWith('search/rounds', `${what} cannot be ${show(value)}`, { expected })
  if (!Number.isSafeInteger(rounds) || rounds < 1) reject('rounds', rounds, 'a whole number from 1 on')
  if (!(confidence > 0 && confidence < 1)) reject('confidence', confidence, 'between 0 and 1')
  if (!(width >= 0)) reject('width', width, '0 or more')
  if (seconds !== undefined && !(seconds > 0)) reject('seconds', seconds, 'more than 0')
}
