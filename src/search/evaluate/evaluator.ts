/** Evaluates scheduled kernels on a device with data: lowers, compiles, compares with the reference, measures. */

import type { Binding } from '../../api/built/binding.ts'
import type { Built } from '../../api/built/built.ts'
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import type { Kernel, TraceStep } from '../../api/kernels/kernel.ts'
import { type AbortSignalLike, Work } from '../../ast/work.ts'
import { groupBy } from '../../ir/memoize.ts'
import { formatKey } from '../../run/compile/compiled-program.ts'
import { lanesOf } from '../../run/compile/lowering-options.ts'
import { runOn } from '../../run/compile/program.ts'
import type { Device } from '../../runtime/device.ts'
import { atEnd } from '../../runtime/dispose.ts'
import { isLost, outcomeOf } from '../outcomes.ts'
import type { TrialFacts } from '../records/types.ts'
import type { EvaluationRequest, Outcome } from '../types.ts'
import { EvaluationThreads, type ThreadOptions } from './evaluation-threads.ts'
import { type MeasuringOptions, TestBench } from './test-bench.ts'

export interface EvaluatorOptions extends ThreadOptions, MeasuringOptions {
  /** The unscheduled kernel, whose inputs are bound. */
  readonly kernel: Kernel
  readonly inputs: RunInputs
  readonly device: Device
  /** Opens another device of the same kind, once, if the first is lost; without it, a loss ends the study. */
  readonly reopen?: (() => Promise<Device>) | undefined
}

/** A scheduled kernel to be evaluated. */
export interface Candidate extends EvaluationRequest {
  readonly kernel: Kernel
  /** Receives the outcome as soon as it is final, with facts about the evaluation. */
  settle(outcome: Outcome, facts?: TrialFacts): void
}

/** Evaluates candidates in this process or on workers; each is settled, unless the promise rejects. */
export type EvaluateCandidates = (candidates: readonly Candidate[], signal?: AbortSignalLike) => Promise<void>

/** A scheduled kernel with its steps, or the outcome that rejects one of them. */
export function applySteps(
  makeKernel: () => Kernel,
):
  | { readonly kernel: Kernel; readonly steps: readonly string[]; readonly trace: readonly TraceStep[] }
  | { readonly rejection: Outcome } {
  try {
    const kernel = makeKernel()
    return { kernel, steps: kernel.trace, trace: kernel.toJSON() }
  } catch (e) {
    return { rejection: outcomeOf(e) }
  }
}

/** A candidate during its evaluation. */
interface Evaluation {
  readonly candidate: Candidate
  /** Steps as JSON; candidates may have the same steps. */
  readonly key: string
  compiled?: Built | undefined
  prepared?: Binding | undefined
  facts?: TrialFacts | undefined
}

const settle = ({ candidate, facts }: Evaluation, outcome: Outcome): void => candidate.settle(outcome, facts)

/** The loss of the device, as an outcome, and the evaluations that are not responsible for it. */
interface DeviceLoss {
  readonly survivors: readonly Evaluation[]
  readonly outcome: Outcome
}

/** Maximum milliseconds of a measurement round with several candidates. */
const ROUND_MS = 1000

export class Evaluator {
  readonly #threads: EvaluationThreads
  #bench: TestBench
  #reopened = false

  constructor(private readonly options: EvaluatorOptions) {
    this.#threads = new EvaluationThreads(options)
    this.#bench = this.#benchOn(options.device)
  }

  #benchOn(device: Device): TestBench {
    const { kernel, inputs } = this.options
    return new TestBench(device, kernel, inputs, this.options, this.#threads)
  }

  /** The device with the inputs on it; replaced after the loss of a device. */
  get bench(): TestBench {
    return this.#bench
  }

  readonly evaluate: EvaluateCandidates = async (candidates, signal) => {
    await this.#bench.extent(signal)
    let evaluations = candidates.map(
      (candidate): Evaluation => ({ candidate, key: JSON.stringify(candidate.kernel.toJSON()) }),
    )
    using _ = atEnd(() => free(evaluations))
    for (;;) {
      await this.#compileAll(evaluations, signal)
      const compiled = evaluations.filter((e) => e.compiled)
      const loss = await new Batch(this.#bench, signal).run(compiled)
      if (!loss || loss.survivors.length === 0) return
      // Candidates that ran when the device was lost have an outcome; the others are retried once.
      if (!this.options.reopen || this.#reopened) {
        for (const e of loss.survivors) settle(e, loss.outcome)
        return
      }
      this.#reopened = true
      free(evaluations)
      this.#bench = this.#benchOn(await this.options.reopen())
      evaluations = [...loss.survivors]
    }
  }

  /** Starts compilations one after another, because each blocks this thread for some time. */
  async #compileAll(evaluations: readonly Evaluation[], signal?: AbortSignalLike): Promise<void> {
    const turns = new Work({ signal })
    const compilations: Promise<void>[] = []
    const compileInto = async (e: Evaluation): Promise<void> => {
      try {
        e.compiled = await this.compile(e.candidate.kernel, signal)
      } catch (error) {
        settle(e, outcomeOf(error))
      }
    }
    try {
      for (const e of evaluations) {
        await turns.checkpoint()
        compilations.push(compileInto(e))
      }
    } finally {
      // Errors are thrown below, after all compilations have settled.
      await Promise.allSettled(compilations)
    }
    await Promise.all(compilations)
  }

  /** @throws SptError `search/timeout`, and as `build`; the abort reason of `signal` */
  async compile(kernel: Kernel, signal?: AbortSignalLike): Promise<Built> {
    const { device } = this.#bench
    const { compilation } = runOn(kernel, device.kind)
    const input = { loops: compilation.loops, options: lanesOf(device) }
    compilation.adopt(await this.#threads.plan(input, kernel.name, signal), input.options)
    return kernel.build(device, { auto: false })
  }

  close(): void {
    this.#threads.close()
    this.#bench.free()
  }
}

/** Compiled candidates that are verified and measured on a device. */
class Batch {
  constructor(
    private readonly bench: TestBench,
    private readonly signal: AbortSignalLike | undefined,
  ) {}

  run(evaluations: readonly Evaluation[]): Promise<DeviceLoss | null> {
    const groups = [...groupBy(evaluations, (e) => formatKey(e.candidate.kernel.compilation)).values()]
    return untilLoss(groups, (group) => this.#group(group))
  }

  /** Verifies and measures candidates with identical tensor storage together. */
  async #group(group: readonly Evaluation[]): Promise<DeviceLoss | null> {
    const correct: Evaluation[] = []
    const turns = new Work({ signal: this.signal })
    using _ = atEnd(() => free(group))
    for (const [k, e] of group.entries()) {
      this.signal?.throwIfAborted()
      try {
        const outcome = await this.#verify(e)
        if (outcome) settle(e, outcome)
        else correct.push(e)
      } catch (error) {
        const outcome = outcomeOf(error)
        settle(e, outcome)
        if (isLost(error)) return { survivors: [...correct, ...group.slice(k + 1)], outcome }
      }
      await turns.checkpoint()
    }
    return await untilLoss(this.#races(correct), (race) => this.#race(race))
  }

  /** Verifies a candidate; returns its outcome, or null if the results are correct and it can be measured. */
  async #verify(e: Evaluation): Promise<Outcome | null> {
    const verification = await this.bench.verify(e.compiled!, e.key, this.signal)
    if ('wrong' in verification) return verification.wrong
    e.prepared = verification.prepared
    e.facts = verification.facts
    return this.bench.warmUp(e.prepared, this.signal)
  }

  /** Groups of candidates measured against each other: small if they are slow, so that results are saved soon. */
  #races(correct: readonly Evaluation[]): readonly (readonly Evaluation[])[] {
    const groups: Evaluation[][] = []
    let total = Number.POSITIVE_INFINITY
    for (const e of correct) {
      const time = this.bench.firstTime(e.prepared!)
      if (total + time > ROUND_MS) {
        groups.push([])
        total = 0
      }
      groups.at(-1)!.push(e)
      total += time
    }
    return groups
  }

  async #race(group: readonly Evaluation[]): Promise<DeviceLoss | null> {
    const share = Math.max(...group.map((e) => e.candidate.share))
    const prepared = group.map((e) => e.prepared!)
    const results = await this.bench.measure(prepared, share, this.signal)
    const isLoss = (o: Outcome): boolean => o.status === 'failed' && o.code === 'device/lost'
    const loss = results.find(isLoss)
    // The first of the lost candidates may have caused the loss, so it is not retried.
    const [, ...survivors] = group.filter((_, k) => isLoss(results[k]!))
    for (const [k, e] of group.entries()) if (!survivors.includes(e)) settle(e, results[k]!)
    return loss ? { survivors, outcome: loss } : null
  }
}

/** Works on one part after another until the device is lost; the parts after it survive. */
async function untilLoss(
  parts: readonly (readonly Evaluation[])[],
  work: (part: readonly Evaluation[]) => Promise<DeviceLoss | null>,
): Promise<DeviceLoss | null> {
  for (const [k, part] of parts.entries()) {
    const loss = await work(part)
    if (loss) return { ...loss, survivors: [...loss.survivors, ...parts.slice(k + 1).flat()] }
  }
  return null
}

function free(evaluations: readonly Evaluation[]): void {
  for (const e of evaluations) {
    e.prepared?.free()
    e.prepared = undefined
    e.compiled?.release()
    e.compiled = undefined
  }
}
