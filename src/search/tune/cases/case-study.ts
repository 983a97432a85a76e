/** One of several data sets on which a kernel is tuned: its search, and a comparison of the candidates of all. */
import type { RunInputs } from '../../../api/inputs/bound-inputs.ts'
import type { Kernel } from '../../../api/kernels/kernel.ts'
import { failWith, SptError } from '../../../ast/diagnostics/diagnostic.ts'
import { isRecord, show } from '../../../ast/diagnostics/expect-argument.ts'
import type { Device } from '../../../runtime/device.ts'
import type { Questions, Values } from '../../choice/conditions.ts'
import { Ending, type Limits } from '../../loop/ending.ts'
import type { SearchResult } from '../../loop/search.ts'
import { fastestTrials, type WrongResult } from '../../loop/tally.ts'
import { defaultPrior } from '../../ranking/cost-model.ts'
import { usualSpace } from '../../spaces/sketches.ts'
import type { SharedInput } from '../../studies/rebuild.ts'
import type { EvaluationRequest, KernelSpace, Outcome, StrategyOptions } from '../../types.ts'
import { standardOf } from '../alternatives.ts'
import type { QueueOptions } from '../remote-evaluator.ts'
import { Session } from '../session.ts'
import type { TuneOptions, TuneProgress } from '../tune-options.ts'
import { pointOf, type SharedCandidates } from './shared-candidates.ts'

/** One of the data sets on which a kernel is tuned. */
export interface TuneCase {
  readonly name: string
  /** Inputs as for `bind`, or a function that reads them: large ones are read on demand. */
  readonly inputs: RunInputs | (() => RunInputs | Promise<RunInputs>)
  /** Cross-validation group, for example one matrix with several sizes; default: the name. */
  readonly group?: string | undefined
  /** Name of the data in records; default: the name. */
  readonly data?: string | undefined
  /** Default: the device of the options. */
  readonly device?: Device | undefined
  /** With a queue: sources from which workers load the bound tensors. */
  readonly files?: Readonly<Record<string, SharedInput>> | undefined
}

/** Search options common to all cases. */
export interface CaseOptions
  extends Omit<
    TuneOptions,
    'space' | 'inputs' | 'prior' | 'data' | 'onProgress' | 'explain' | 'libraries' | 'queue'
  > {
  /** Default: `usualSpace`. */
  readonly space?:
    | KernelSpace<Kernel>
    | ((inputs: RunInputs, device: Device) => KernelSpace<Kernel> | Promise<KernelSpace<Kernel>>)
    | undefined
  /** Predicted milliseconds of points of a case; default: as for `tune`. */
  readonly prior?:
    | ((space: KernelSpace<Kernel>, inputs: RunInputs, device: Device) => StrategyOptions['prior'])
    | undefined
  readonly queue?: Omit<QueueOptions, 'tensors'> | undefined
}

/** Result of a search on one case. */
export interface CaseSearchResult extends Omit<SearchResult, 'best'> {
  /** Number of trials that the records contained. */
  readonly knownTrials: number
  readonly study: string | null
}

/** Outcomes of the candidates of all cases on one case. */
export interface CaseComparison {
  /** Outcomes in the order of the candidates. */
  readonly outcomes: readonly Outcome[]
  readonly wrong: readonly WrongResult[]
  /** Values of the quantities that conditions use. */
  readonly values: Values
}

export class CaseStudy {
  readonly name: string
  readonly group: string
  readonly device: Device

  constructor(
    private readonly kernel: Kernel,
    private readonly tuneCase: TuneCase,
    private readonly options: CaseOptions,
  ) {
    this.name = tuneCase.name
    this.group = tuneCase.group ?? tuneCase.name
    this.device = tuneCase.device ?? options.device
  }

  /** @throws SptError as `inputsOf`, `Session.open`, and of spaces */
  async #withSession<T>(
    work: (session: Session, space: KernelSpace<Kernel>, inputs: RunInputs) => Promise<T>,
    shared?: SharedCandidates,
  ): Promise<T> {
    const { files = {} } = this.tuneCase
    const { seed = 1, resume = true, queue, signal, seconds, ...options } = this.options
    const inputs = await inputsOf(this.tuneCase, { signal, seconds: seconds && seconds + READING_SECONDS })
    const space = await this.#space(inputs)
    using session = await Session.open(this.kernel, {
      ...options,
      space: shared?.extend(space) ?? space,
      inputs,
      device: this.device,
      seed,
      data: this.tuneCase.data ?? this.name,
      resume,
      queue: queue && { ...queue, tensors: files },
      signal,
    })
    return await work(session, space, inputs)
  }

  async #space(inputs: RunInputs): Promise<KernelSpace<Kernel>> {
    const { space } = this.options
    if (space === undefined) return usualSpace(this.kernel, this.device, inputs)
    return typeof space === 'function' ? space(inputs, this.device) : space
  }

  /** Searches, and adds the fastest `count` points and the default schedule to the candidates; returns the latter. */
  search(
    shared: SharedCandidates,
    count: number,
    onProgress: (p: TuneProgress) => void,
  ): Promise<CaseSearchResult & { readonly standard: string | null }> {
    return this.#withSession(async (session, space, inputs) => {
      const { kernel, device } = this
      const { strategy } = this.options
      const prior = this.options.prior
        ? this.options.prior(space, inputs, device)
        : defaultPrior(space, { kernel, device, inputs, strategy })
      const { best: _, ...result } = await session.search({ ...this.options, prior, onProgress })
      const { tensors = {} } = session.evaluator.bench.data.inputs
      const standard = await this.#standard(shared, { ...inputs, tensors })
      for (const { point } of fastestTrials(result).slice(0, count))
        shared.add(space.kernel(point), this.group, space.call?.(point))
      return { ...result, knownTrials: session.known.length, study: session.study, standard }
    })
  }

  /** Adds the default schedule; `null` if the kernel's choice rejects the data. */
  async #standard(shared: SharedCandidates, inputs: RunInputs): Promise<string | null> {
    try {
      const { kernel, call } = await standardOf(this.kernel, this.device, inputs)
      return shared.add(kernel, this.group, call)
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      return null
    }
  }

  /** Evaluates the candidates of all cases on this case. */
  compare(
    shared: SharedCandidates,
    questions: Questions,
    onProgress: (done: number) => void,
  ): Promise<CaseComparison> {
    return this.#withSession(async (session, space) => {
      const { signal, batch } = this.options
      const points = shared.list.map(pointOf)
      const outcomes = points.map((p) => session.recordedTrial(p)?.outcome)
      const missing = [...points.keys()].filter((k) => !outcomes[k])
      const batchSize = batch ?? session.batch()
      for (let start = 0; start < missing.length; start += batchSize) {
        signal?.throwIfAborted()
        onProgress(points.length - missing.length + start)
        const indices = missing.slice(start, start + batchSize)
        const requests = indices.map((k): EvaluationRequest => ({ point: points[k]!, share: 1 }))
        const batchOutcomes = await session.evaluate(requests, signal ? { signal } : {})
        for (const [n, k] of indices.entries()) outcomes[k] = batchOutcomes[n]!
      }
      const { seed: _, ...inputs } = session.evaluator.bench.data.inputs
      const wrong = outcomes.flatMap((o, k) =>
        o?.status === 'wrong'
          ? [{ space: space.name, point: points[k]!, message: o.message, trace: o.trace, seed: o.seed }]
          : [],
      )
      return { outcomes: outcomes as Outcome[], wrong, values: questions.valuesOn(this.device, inputs) }
    }, shared)
  }
}

// Inputs of a case, read immediately before its search.

/** Seconds for reading inputs, in addition to the time limit of a search. */
const READING_SECONDS = 30

/**
 * Reads the inputs of a case.
 * @param limits - `seconds` after which reading counts as failed
 * @throws SptError `search/inputs` if reading throws, takes too long or returns no inputs; any `SptError` of the
 * function; the abort reason of the signal
 */
export async function inputsOf(
  { name, inputs }: Pick<TuneCase, 'name' | 'inputs'>,
  { signal, seconds }: Pick<Limits, 'signal' | 'seconds'>,
): Promise<RunInputs> {
  if (typeof inputs !== 'function') return inputs
  using ending = new Ending({ signal, seconds, graceSeconds: 0 })
  try {
    const result = await ending.unlessAborted(async () => inputs())
    signal?.throwIfAborted()
    if (isRecord(result)) return result
    return rejectInputs(name, ending.signal.aborted ? `do not come in ${seconds} s` : `are ${show(result)}`)
  } catch (e) {
    if (e instanceof SptError || signal?.aborted) throw e
    return rejectInputs(name, `cannot be read: ${e instanceof Error ? e.message : show(e)}`)
  }
}

const rejectInputs = (name: string, fault: string): never =>
  failWith('search/inputs', `the inputs of case ${name} ${fault}`, {
    expected: 'a function that gives { tensors, params, … }, as for `bind`',
  })
