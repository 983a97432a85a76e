/** One kernel on one set of inputs: points of a space are evaluated in this process or by workers, and recorded. */
import { randomUUID } from 'node:crypto'
import { checkBound } from '../../api/inputs/format-input-binding.ts'
import type { Kernel, TraceStep } from '../../api/kernels/kernel.ts'
import { Space } from '../../api/kernels/space.ts'
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { type AbortSignalLike, type Coroutine, Work } from '../../ast/work.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import { applySteps, type Candidate, type EvaluateCandidates, Evaluator } from '../evaluate/evaluator.ts'
import { unlessAborted } from '../loop/ending.ts'
import { runSearch, type SearchResult } from '../loop/search.ts'
import type { SearchOptions } from '../loop/search-options.ts'
import type { Expected } from '../ranking/expected.ts'
import { spaceKey } from '../records/identity.ts'
import { createStudy, type Records, type StoredTrial, studyId, traceHash, trialId } from '../records/index.ts'
import type { Study, TrialFacts } from '../records/types.ts'
import { checkSteps, pointKey } from '../spaces/point-walks.ts'
import { sketchOrigin } from '../spaces/sketches.ts'
import type { RemoteTrials } from '../studies/remote-trials.ts'
import type { EvaluationContext, EvaluationRequest, KernelSpace, Outcome, Point } from '../types.ts'
import { evaluateFirstAlone, evaluateOnWorkers, openQueue, trialTerms } from './remote-evaluator.ts'
import type { TuneOptions } from './tune-options.ts'

export interface PointFacts extends TrialFacts {
  readonly steps: readonly string[]
  readonly trace: readonly TraceStep[]
}

type SearchLimits = Pick<SearchOptions, 'graceSeconds'> &
  Pick<
    TuneOptions,
    'trials' | 'seconds' | 'patience' | 'signal' | 'batch' | 'prior' | 'strategy' | 'onProgress'
  >

export interface SessionOptions
  extends Pick<
    TuneOptions,
    'inputs' | 'device' | 'records' | 'data' | 'queue' | 'reopen' | 'timeout' | 'signal'
  > {
  readonly space: KernelSpace<Kernel>
  readonly seed: number
  readonly resume: boolean
  /** Predictions of the prior, stored with the trials. */
  readonly expected?: Expected | undefined
}

/** Batch sizes: of this process, and the minimum for workers, because more may join later. */
const [BATCH, MIN_REMOTE_BATCH] = [8, 16]
/** Maximum milliseconds between the end of a trial and its record. */
const RECORD_DELAY_MS = 10_000

export class Session {
  /** Id of the study in the records; `null` if nothing is recorded. */
  readonly study: string | null
  readonly #evaluate: EvaluateCandidates
  readonly #facts = new Map<string, PointFacts>()
  readonly #terms: ReturnType<typeof trialTerms>
  readonly #name = randomUUID()
  readonly #start = Date.now()
  /** Points that this session evaluated, and ids of reported trials of other sessions. */
  readonly #ownPoints = new Set<string>()
  readonly #reportedIds: Set<string>
  #queriedUntil = this.#start

  private constructor(
    kernel: Kernel,
    private readonly options: SessionOptions,
    /** Evaluator in this process, for comparisons that must run in one place. */
    readonly evaluator: Evaluator,
    study: Study | null,
    private readonly remote: RemoteTrials | null,
    /** Trials of the space's points that the records contained. */
    readonly known: readonly StoredTrial[],
  ) {
    this.#evaluate = remote ? evaluateOnWorkers(remote) : evaluateFirstAlone(evaluator.evaluate)
    this.#terms = trialTerms(kernel, options.device.kind)
    this.study = options.records && study ? study.id : null
    this.#reportedIds = new Set(known.map((t) => t.id))
  }

  /** @throws SptError of inputs as `bindInputs`, `search/reference-too-long`; `studies/…` with a queue */
  static async open(kernel: Kernel, options: SessionOptions): Promise<Session> {
    const { device, space, inputs: given, seed, queue, records, resume, data, reopen, timeout } = options
    // Spaces of the program use known formats; others may store tensors in any format.
    const isOfProgram = space instanceof Space || sketchOrigin(space) !== undefined
    const names = isOfProgram ? kernel.formatInputs() : kernel.allFormatInputs
    checkBound(kernel.compilation.kernel, Object.keys(given.tensors ?? {}), names)
    // Callers spread their options: `seconds` of a search must not limit the measurement of a kernel.
    const evaluator = new Evaluator({ kernel, inputs: given, device, seed, reopen, timeout })
    try {
      // Errors of the inputs are thrown here, because they do not concern a point.
      await unlessAborted(options.signal, () => evaluator.bench.extent(options.signal))
      const { seed: _, ...inputs } = evaluator.bench.data.inputs
      const about = { space: spaceKey(space), seed, ...(data !== undefined && { data }) }
      const study = records || queue ? createStudy(kernel, inputs, device, about) : null
      const shared = { kernel: kernel.name, params: inputs.params ?? {}, seed: given.seed }
      const bound = Object.keys(given.tensors ?? {})
      const remote = queue && study ? await openQueue(queue, { ...shared, study }, bound) : null
      if (study) records?.addStudy(study)
      const recordedTrials = study && records && resume ? recordedTrialsOf(study, records) : []
      const known = await filterCurrent(space, recordedTrials, options.signal)
      return new Session(kernel, options, evaluator, study, remote, known)
    } catch (e) {
      evaluator.close()
      throw e
    }
  }

  /** Default batch size: as many points as keep the workers busy. */
  batch(): number {
    return this.remote ? Math.max(MIN_REMOTE_BATCH, 2 * this.remote.workers()) : BATCH
  }

  /**
   * Outcomes of points for `search`, in their order, recorded as soon as they are known.
   * @param indices - Points to evaluate; the outcomes of others are `null`
   */
  readonly evaluate = async (
    requests: readonly EvaluationRequest[],
    { signal, report }: Partial<EvaluationContext> = {},
    indices: Iterable<number> = requests.keys(),
  ): Promise<readonly (Outcome | null)[]> => {
    const outcomes: (Outcome | null)[] = requests.map(() => null)
    const candidates: Candidate[] = []
    const turns = new Work({ signal })
    for (const index of indices) {
      await turns.checkpoint()
      const request = requests[index]!
      const { point } = request
      const applied = applySteps(() => this.options.space.kernel(point))
      const settle: Candidate['settle'] = (outcome, facts) => {
        outcomes[index] = outcome
        if ('trace' in applied) {
          const { steps, trace } = applied
          this.#facts.set(pointKey(point), { steps, trace, ...facts })
        }
        this.#record(request, outcome)
        report?.(index, outcome)
      }
      if ('rejection' in applied) settle(applied.rejection)
      else candidates.push({ ...request, kernel: applied.kernel, settle })
    }
    await this.#evaluate(candidates, signal)
    return outcomes
  }

  /** Like `evaluate`; `null` for points of another search on the records, whose trials `takeOthers` returns. */
  readonly evaluateShared: typeof this.evaluate = async (requests, context) => {
    const { study, options } = this
    if (!study || this.remote) return this.evaluate(requests, context)
    const points = requests.map((a) => a.point)
    // Own points are evaluated again with a greater share of the effort.
    const isClaimed = options.records!.claim(study, points, this.#name, this.#start)
    const isOwn = (k: number): boolean => isClaimed[k]! || this.#ownPoints.has(pointKey(points[k]!))
    return this.evaluate(requests, context, [...requests.keys()].filter(isOwn))
  }

  /** Number of trials in `known`, and of those reported by other sessions. */
  get knownCount(): number {
    return this.#reportedIds.size
  }

  /** Searches the space of the session. */
  search({ strategy, onProgress, ...limits }: SearchLimits): Promise<SearchResult> {
    return runSearch({
      ...limits,
      batch: limits.batch ?? this.batch(),
      strategy: strategy ?? (limits.prior ? 'model' : 'surrogate'),
      onProgress: (p) => onProgress?.({ ...p, knownTrials: this.knownCount }),
      space: this.options.space,
      seed: this.options.seed,
      evaluate: this.evaluateShared,
      externalTrials: this.takeOthers,
      knownTrials: this.known,
    })
  }

  /** Trials that other sessions added to the records since the previous call. */
  readonly takeOthers = async (): Promise<readonly StoredTrial[]> => {
    const { study, options } = this
    if (!study || this.remote) return []
    const since = this.#queriedUntil
    // Trials are recorded some time after their end.
    this.#queriedUntil = Date.now() - RECORD_DELAY_MS
    const trials = options.records!.query({ studies: [study], since })
    const unreported = trials.filter(
      (t) => isComplete(t) && !this.#ownPoints.has(pointKey(t.point)) && !this.#reportedIds.has(t.id),
    )
    const accepted = await filterCurrent(options.space, unreported, options.signal)
    for (const t of accepted) this.#reportedIds.add(t.id)
    return accepted
  }

  #record({ point, share }: EvaluationRequest, outcome: Outcome): void {
    const { study } = this
    const { space, records, expected } = this.options
    if (!study) return
    this.#ownPoints.add(pointKey(point))
    const predicted = expected?.of(point)
    const terms =
      outcome.status === 'measured'
        ? this.#terms(() => space.kernel(point), this.evaluator.bench.data.inputs)
        : undefined
    const trial = { ...this.factsOf(point), study, point, outcome, share, predicted }
    records!.add({ ...trial, ...(terms && { terms }) })
  }

  /** Recorded trial of a point, if the session resumes from the records. */
  recordedTrial(point: Point): StoredTrial | undefined {
    const { records, resume } = this.options
    const trial = this.study && resume ? records!.get(trialId(this.study, point)) : undefined
    return trial && isComplete(trial) ? trial : undefined
  }

  factsOf(point: Point): PointFacts | undefined {
    return this.#facts.get(pointKey(point))
  }

  [DISPOSE](): void {
    this.evaluator.close()
    this.remote?.[DISPOSE]()
  }
}

/** Complete trials of the study, then of studies that differ in the space alone, whose source may have changed. */
function recordedTrialsOf(study: Study, records: Records): readonly StoredTrial[] {
  const { kernel, device, compiler, fingerprint } = study
  const others = records
    .studies({ kernel, device: device.name, compiler, fingerprint })
    .filter((s) => s.id !== study.id && studyId({ ...s, space: study.space }) === study.id)
  return [study.id, ...others.map((s) => s.id)]
    .flatMap((id) => records.query({ studies: [id] }))
    .filter(isComplete)
}

/** True for a complete outcome: bounded ones are measured again. */
const isComplete = ({ outcome }: StoredTrial): boolean => outcome.status !== 'bounded'

/** True if the trial ran the point's current steps; the space may have changed under the same name. */
function hasSameSteps(space: KernelSpace<Kernel>, { point, trace, outcome }: StoredTrial): boolean {
  const applied = applySteps(() => space.kernel(point))
  if ('rejection' in applied) return trace === undefined
  if (trace === undefined) return outcome.status !== 'rejected'
  return traceHash(trace) === traceHash(applied.trace)
}

/** Trials of points that are in the space with the same steps; after an abort, those examined so far. */
async function filterCurrent(
  space: KernelSpace<Kernel>,
  trials: readonly StoredTrial[],
  signal: AbortSignalLike | undefined,
): Promise<readonly StoredTrial[]> {
  const current: StoredTrial[] = []
  const seen = new Set<string>()
  const examine = function* (): Coroutine<void> {
    for (const t of trials)
      try {
        const key = pointKey(yield* checkSteps(space, t.point))
        if (seen.has(key) || !hasSameSteps(space, t)) continue
        seen.add(key)
        current.push(t)
      } catch (e) {
        if (!(e instanceof SptError)) throw e
      }
  }
  await unlessAborted(signal, () => new Work({ signal }).run(examine()))
  return current
}
