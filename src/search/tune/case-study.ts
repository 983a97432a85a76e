/** One of several data that a kernel is tuned on: searched by itself, then candidates of all are tried on it. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { Kernel } from '../../api/kernel.ts'
import { SptError } from '../../ast/diagnostic.ts'
import type { Device } from '../../runtime/device.ts'
import type { Questions, Values } from '../choice/conditions.ts'
import { fastestTrials } from '../fastest.ts'
import { type SearchResult, search } from '../search.ts'
import type { EvaluationRequest } from '../search-options.ts'
import type { SharedInput } from '../studies/types.ts'
import type { WrongResult } from '../tally.ts'
import type { KernelSpace, Outcome, StrategyOptions } from '../types.ts'
import { usualSpace } from '../usual-space.ts'
import { inputsOf, READING } from './case-inputs.ts'
import type { TuneOptions, TuneProgress } from './index.ts'
import { type QueueOptions, Session } from './session.ts'
import { pointOf, type SharedCandidates } from './shared-candidates.ts'
import { standardOf } from './standard.ts'
import { usualPrior } from './usual-prior.ts'

/** Data that a kernel is tuned on, with others. */
export interface TuneCase {
  readonly name: string
  /** Inputs as for `prepare`, or a function that reads them: large ones are read on demand. */
  readonly inputs: RunInputs | (() => RunInputs | Promise<RunInputs>)
  /** Cross-validation group, for example one matrix with several sizes; default: the name. */
  readonly group?: string | undefined
  /** Name of the data in records; default: the name. */
  readonly data?: string | undefined
  /** Default: the one of the options. */
  readonly device?: Device | undefined
  /** With a queue: where workers get the tensors that are bound. */
  readonly files?: Readonly<Record<string, SharedInput>> | undefined
}

/** Search options common to all cases. */
export interface CaseOptions
  extends Pick<
    TuneOptions,
    | 'trials'
    | 'seconds'
    | 'patience'
    | 'strategy'
    | 'seed'
    | 'records'
    | 'resume'
    | 'signal'
    | 'reopen'
    | 'timeout'
    | 'batch'
  > {
  readonly device: Device
  /** Default: `usualSpace`. */
  readonly space?:
    | KernelSpace<Kernel>
    | ((inputs: RunInputs, device: Device) => KernelSpace<Kernel> | Promise<KernelSpace<Kernel>>)
    | undefined
  /** Expected milliseconds of points of a case, without measuring. Default: as of `tune`. */
  readonly prior?:
    | ((space: KernelSpace<Kernel>, inputs: RunInputs, device: Device) => StrategyOptions['prior'])
    | undefined
  readonly queue?: Omit<QueueOptions, 'tensors'> | undefined
}

/** Result of a search on one case. */
export interface Searched extends Omit<SearchResult, 'best'> {
  /** Trials that the records had. */
  readonly knownTrials: number
  readonly study: string | null
}

/** Outcomes of the candidates of all cases on one case. */
export interface Compared {
  /** In the order of the candidates. */
  readonly outcomes: readonly Outcome[]
  readonly wrong: readonly WrongResult[]
  /** Values of the quantities that conditions use. */
  readonly values: Values
}

export class CaseStudy {
  readonly name: string
  readonly group: string
  readonly device: Device
  readonly #kernel: Kernel
  readonly #case: TuneCase
  readonly #options: CaseOptions

  constructor(kernel: Kernel, given: TuneCase, options: CaseOptions) {
    this.name = given.name
    this.group = given.group ?? given.name
    this.device = given.device ?? options.device
    this.#kernel = kernel
    this.#case = given
    this.#options = options
  }

  /** @throws SptError as `inputsOf`, `Session.open`, and of spaces */
  async #opened<T>(
    work: (session: Session, space: KernelSpace<Kernel>, inputs: RunInputs) => Promise<T>,
    shared?: SharedCandidates,
  ): Promise<T> {
    const { files = {} } = this.#case
    const { records, seed = 1, resume = true, reopen, timeout, queue, signal, seconds } = this.#options
    const inputs = await inputsOf(this.#case, { signal, seconds: seconds && seconds + READING })
    const space = await this.#space(inputs)
    const session = await Session.open(this.#kernel, {
      space: shared?.within(space) ?? space,
      inputs,
      device: this.device,
      seed,
      records,
      data: this.#case.data ?? this.name,
      resume,
      reopen,
      timeout,
      queue: queue && { ...queue, tensors: files },
      signal,
    })
    try {
      return await work(session, space, inputs)
    } finally {
      await session.close()
    }
  }

  async #space(inputs: RunInputs): Promise<KernelSpace<Kernel>> {
    const { space } = this.#options
    if (space === undefined) return usualSpace(this.#kernel, this.device, inputs)
    return typeof space === 'function' ? space(inputs, this.device) : space
  }

  /** Searches, and adds the fastest `count` points and the default schedule to the candidates; returns the latter. */
  search(
    shared: SharedCandidates,
    count: number,
    onProgress: (p: TuneProgress) => void,
  ): Promise<Searched & { readonly standard: string | null }> {
    return this.#opened(async (session, space, inputs) => {
      const { seed = 1, trials, seconds, patience, signal, batch } = this.#options
      const { strategy: named, prior: given } = this.#options
      const prior = given
        ? given(space, inputs, this.device)
        : usualPrior(space, { kernel: this.#kernel, device: this.device, inputs, strategy: named })
      const { known } = session
      const { best: _, ...found } = await search({
        space,
        strategy: named ?? (prior ? 'model' : 'surrogate'),
        evaluate: session.evaluateBesides,
        externalTrials: session.others,
        seed,
        batch: batch ?? (await session.batch()),
        knownTrials: known,
        trials,
        seconds,
        patience,
        prior,
        signal,
        onProgress: (p) => onProgress({ ...p, knownTrials: known.length }),
      })
      const { tensors = {} } = session.evaluator.bench.data.inputs
      const standard = await this.#standard(shared, { ...inputs, tensors })
      for (const { point } of fastestTrials(found).slice(0, count))
        shared.add(space.kernel(point), this.group, space.call?.(point))
      return { ...found, knownTrials: known.length, study: session.study, standard }
    })
  }

  /** Adds the default schedule; `null` if the kernel's choice rejects the data. */
  async #standard(shared: SharedCandidates, inputs: RunInputs): Promise<string | null> {
    try {
      const { kernel, call } = await standardOf(this.#kernel, this.device, inputs)
      return shared.add(kernel, this.group, call)
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      return null
    }
  }

  /** Tries candidates: those of other cases too. */
  compare(
    shared: SharedCandidates,
    questions: Questions,
    onProgress: (done: number) => void,
  ): Promise<Compared> {
    return this.#opened(async (session, space) => {
      const { signal, batch } = this.#options
      const points = shared.all.map(pointOf)
      const outcomes = points.map((p) => session.recorded(p)?.outcome)
      const open = [...points.keys()].filter((k) => !outcomes[k])
      const size = batch ?? (await session.batch())
      for (let at = 0; at < open.length; at += size) {
        signal?.throwIfAborted()
        onProgress(points.length - open.length + at)
        const some = open.slice(at, at + size)
        const asked = some.map((k): EvaluationRequest => ({ point: points[k]!, share: 1 }))
        const found = await session.evaluate(asked, signal ? { signal } : {})
        for (const [n, k] of some.entries()) outcomes[k] = found[n]
      }
      const { seed: _, ...given } = session.evaluator.bench.data.inputs
      const wrong = outcomes.flatMap((o, k) =>
        o?.status === 'wrong'
          ? [{ space: space.name, point: points[k]!, message: o.message, trace: o.trace, seed: o.seed }]
          : [],
      )
      return { outcomes: outcomes as Outcome[], wrong, values: questions.valuesOn(this.device, given) }
    }, shared)
  }
}
