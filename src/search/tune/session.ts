/** One kernel on one set of inputs: points of a space are tried, by this process or by workers, and kept. */
import { randomUUID } from 'node:crypto'
import type { RunInputs } from '../../api/bound-inputs.ts'
import { checkBound } from '../../api/format-input-binding.ts'
import type { Kernel } from '../../api/kernel.ts'
import { Space } from '../../api/space.ts'
import { SptError } from '../../ast/diagnostic.ts'
import { expectArgument } from '../../ast/expect-argument.ts'
import type { Device } from '../../runtime/device.ts'
import { appliedAt, Evaluator, type Tried, type Trier } from '../evaluate/evaluator.ts'
import type { Expected } from '../expected.ts'
import { checking, pointKey } from '../point-walks.ts'
import { spaceKey } from '../records/identity.ts'
import { createStudy, type Records, type StoredTrial, studyId, traceHash, trialId } from '../records/index.ts'
import type { Study } from '../records/types.ts'
import type { EvaluationContext, EvaluationRequest } from '../search-options.ts'
import { sketchOrigin } from '../sketches.ts'
import { inTurns, type Stepwise } from '../stepwise.ts'
import { RemoteTrials } from '../studies/remote-trials.ts'
import type { SharedInput, SharedProgram } from '../studies/types.ts'
import type { KernelSpace, Outcome, Point } from '../types.ts'
import { firstAlone } from './first-alone.ts'
import { RemoteEvaluator } from './remote-evaluator.ts'
import { trialTerms } from './trial-terms.ts'

/** Workers do the trials, which they find on a server. */
export interface QueueOptions {
  /** `redis://HOST:PORT`. */
  readonly url: string
  /** The program of the kernel: `shareProgram(program)`. */
  readonly program: SharedProgram
  /** Sources of the bound tensors for workers. */
  readonly tensors: Readonly<Record<string, SharedInput>>
  /** Seconds without a worker, or without an answer of the server, after which it gives up; 60. */
  readonly idleSeconds?: number | undefined
  /** Called when there is no worker, and for connection errors. */
  readonly onNote?: ((line: string) => void) | undefined
}

export interface SessionOptions {
  readonly space: KernelSpace<Kernel>
  readonly inputs: RunInputs
  readonly device: Device
  readonly seed: number
  readonly records?: Records | undefined
  /** Name of the data in records. */
  readonly data?: string | undefined
  readonly resume: boolean
  /** Predictions of the prior, stored with the trials. */
  readonly expected?: Expected | undefined
  readonly queue?: QueueOptions | undefined
  readonly reopen?: (() => Promise<Device>) | undefined
  readonly timeout?: number | undefined
  /** Ends what takes long when it is opened. */
  readonly signal?: AbortSignal | undefined
}

/** Milliseconds between the end of a trial and its record, at most. */
const LATE_MS = 10_000

export class Session {
  readonly kernel: Kernel
  readonly options: SessionOptions
  /** Evaluator in this process, for comparisons that must run in one place. */
  readonly evaluator: Evaluator
  /** Of the records; `null` where nothing is kept. */
  readonly study: string | null
  /** Trials of its points that the records had. */
  readonly known: readonly StoredTrial[]
  readonly #remote: RemoteEvaluator | null
  readonly #evaluate: Trier['evaluate']
  readonly #terms: ReturnType<typeof trialTerms>
  readonly #name = randomUUID()
  readonly #begun = Date.now()
  /** Points that it tried, and ids of trials of others that it told of. */
  readonly #own = new Set<string>()
  readonly #heard: Set<string>
  #heardUntil = this.#begun

  private constructor(
    kernel: Kernel,
    options: SessionOptions,
    evaluator: Evaluator,
    study: Study | null,
    remote: RemoteEvaluator | null,
    known: readonly StoredTrial[],
  ) {
    this.kernel = kernel
    this.options = options
    this.evaluator = evaluator
    this.#remote = remote
    this.#evaluate = remote ? remote.evaluate : firstAlone(evaluator.evaluate)
    this.#terms = trialTerms(kernel, options.device.kind)
    this.study = options.records && study ? study.id : null
    this.known = known
    this.#heard = new Set(known.map((t) => t.id))
  }

  /** @throws SptError of inputs as `bindInputs`, `search/reference-too-long`; `studies/…` where there is a queue */
  static async open(kernel: Kernel, options: SessionOptions): Promise<Session> {
    const { device, space, seed, queue, records, resume, data } = options
    // Of a space of the program all formats are known; others may store tensors in any.
    const ofProgram = space instanceof Space || sketchOrigin(space) !== undefined
    const used = ofProgram ? kernel.formatInputs() : kernel.allFormatInputs
    checkBound(kernel.compilation.kernel, Object.keys(options.inputs.tensors ?? {}), used)
    const evaluator = new Evaluator({ ...options, kernel })
    try {
      // What is wrong with the inputs is no point's fault.
      await unlessAborted(options.signal, () => evaluator.bench.extent(options.signal))
      const { seed: _, ...given } = evaluator.bench.data.inputs
      const study =
        records || queue
          ? createStudy(kernel, given, device, {
              space: spaceKey(space),
              seed,
              ...(data === undefined ? {} : { data }),
            })
          : null
      const remote = queue && study ? await remoteOf(kernel, options, queue, study, given.params ?? {}) : null
      if (study) records?.addStudy(study)
      const kept = study && records && resume ? recordedFor(study, records) : []
      const known = await within(space, kept, options.signal)
      return new Session(kernel, options, evaluator, study, remote, known)
    } catch (e) {
      evaluator.close()
      throw e
    }
  }

  /** Default batch size: as many points as keep the workers busy. */
  async batch(): Promise<number> {
    return this.#remote ? this.#remote.batch() : 8
  }

  /** Outcomes of points for `search`, in their order, recorded as soon as they are known. */
  readonly evaluate = async (
    asked: readonly EvaluationRequest[],
    context: Partial<EvaluationContext> = {},
  ): Promise<readonly Outcome[]> => {
    const kept = new Set<number>()
    const settle = (at: number, outcome: Outcome): void => {
      kept.add(at)
      this.#keep([[asked[at]!, outcome]])
      context.report?.(at, outcome)
    }
    const outcomes = await this.#evaluate(asked, { ...context, report: settle })
    this.#keep(asked.flatMap((a, k) => (kept.has(k) ? [] : [[a, outcomes[k]!] as const])))
    return outcomes
  }

  /**
   * Like `evaluate`, for a search that shares the records with others: a point that another search has evaluated or claimed
   * yields `null`, and arrives through `externalTrials`.
   */
  readonly evaluateBesides = async (
    asked: readonly EvaluationRequest[],
    context: Partial<EvaluationContext> = {},
  ): Promise<readonly (Outcome | null)[]> => {
    const { study, options } = this
    if (!study || this.#remote) return this.evaluate(asked, context)
    const points = asked.map((a) => a.point)
    // Those of its own are asked again for a greater share.
    const has = options.records!.claim(study, points, this.#name, this.#begun)
    const places = [...asked.keys()].filter((k) => has[k] || this.#own.has(pointKey(points[k]!)))
    const some = places.map((k) => asked[k]!)
    const settle = (n: number, outcome: Outcome): void => context.report?.(places[n]!, outcome)
    const outcomes = await this.evaluate(some, { ...context, report: settle })
    const out: (Outcome | null)[] = asked.map(() => null)
    for (const [n, k] of places.entries()) out[k] = outcomes[n]!
    return out
  }

  /** Number of trials reported by others, in addition to `known`. */
  get heard(): number {
    return this.#heard.size - this.known.length
  }

  /** Trials that other searches added to the records since this was called last. */
  readonly others = async (): Promise<readonly StoredTrial[]> => {
    const { study, options } = this
    if (!study || this.#remote) return []
    const since = this.#heardUntil
    // Trials are added some time after they ended.
    this.#heardUntil = Date.now() - LATE_MS
    const all = options.records!.query({ studies: [study], since })
    const open = all.filter((t) => isKnown(t) && !this.#own.has(pointKey(t.point)) && !this.#heard.has(t.id))
    const heard = await within(options.space, open, options.signal)
    for (const t of heard) this.#heard.add(t.id)
    return heard
  }

  #keep(trials: readonly (readonly [EvaluationRequest, Outcome])[]): void {
    const { study } = this
    const { space } = this.options
    if (!study || trials.length === 0) return
    for (const [{ point }] of trials) this.#own.add(pointKey(point))
    this.options.records!.add(
      ...trials.map(([{ point, share }, outcome]) => {
        const predicted = this.options.expected?.of(point)
        const terms =
          outcome.status === 'measured'
            ? this.#terms(() => space.kernel(point), this.evaluator.bench.data.inputs)
            : undefined
        return { ...this.tried(point), study, point, outcome, share, predicted, ...(terms && { terms }) }
      }),
    )
  }

  /** Recorded trial of a point, if the session resumes from the records. */
  recorded(point: Point): StoredTrial | undefined {
    const { records, resume } = this.options
    const known = this.study && resume ? records!.get(trialId(this.study, point)) : undefined
    return known && isKnown(known) ? known : undefined
  }

  tried(point: Point): Tried | undefined {
    return (this.#remote ?? this.evaluator).tried(point)
  }

  async close(): Promise<void> {
    this.evaluator.close()
    await this.#remote?.close()
  }
}

/** Trials of the study, then of studies that differ in the space alone, whose source may have changed. */
function recordedFor(study: Study, records: Records): readonly StoredTrial[] {
  const { kernel, device, compiler, fingerprint } = study
  const others = records
    .studies({ kernel, device: device.name, compiler, fingerprint })
    .filter((s) => s.id !== study.id && studyId({ ...s, space: study.space }) === study.id)
  return [study.id, ...others.map((s) => s.id)]
    .flatMap((id) => records.query({ studies: [id] }))
    .filter(isKnown)
}

/** A bound is no time: such points are measured again. */
const isKnown = ({ outcome }: StoredTrial): boolean => outcome.status !== 'bounded'

/** True if the trial ran the point's current steps: a space of the same name may have had others. */
function isOf(space: KernelSpace<Kernel>, { point, trace, outcome }: StoredTrial): boolean {
  const now = appliedAt(space, point)
  if ('refused' in now) return trace === undefined
  if (trace === undefined) return outcome.status !== 'rejected'
  return traceHash(trace) === traceHash(now.tried.trace)
}

/** Trials of points that the space has, under the same steps; once `signal` aborts, those that were looked at. */
async function within(
  space: KernelSpace<Kernel>,
  trials: readonly StoredTrial[],
  signal: AbortSignal | undefined,
): Promise<readonly StoredTrial[]> {
  const out: StoredTrial[] = []
  const seen = new Set<string>()
  const work = function* (): Stepwise<void> {
    for (const t of trials)
      try {
        const key = pointKey(yield* checking(space, t.point))
        if (seen.has(key) || !isOf(space, t)) continue
        seen.add(key)
        out.push(t)
      } catch (e) {
        if (!(e instanceof SptError)) throw e
      }
  }
  await unlessAborted(signal, () => inTurns(work(), signal))
  return out
}

/** Awaits work and ignores its failure after `signal` aborted: the search that follows ends at once. */
async function unlessAborted(signal: AbortSignal | undefined, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (e) {
    if (!signal?.aborted) throw e
  }
}

async function remoteOf(
  kernel: Kernel,
  { space, inputs }: SessionOptions,
  { url, program, tensors, ...options }: QueueOptions,
  study: Study,
  params: Readonly<Record<string, number>>,
): Promise<RemoteEvaluator> {
  for (const name of Object.keys(inputs.tensors ?? {}))
    expectArgument(Object.hasOwn(tensors, name), `where workers get ${name}`, tensors[name], '{ file: PATH }')
  const { seed } = inputs
  const shared = {
    study,
    program,
    kernel: kernel.name,
    tensors,
    params,
    ...(seed === undefined ? {} : { seed }),
  }
  return new RemoteEvaluator(space, await RemoteTrials.open(url, shared, options))
}
