/** Evaluates points of a space on a device with data: lowers, compiles, compares with the reference, measures. */

import type { CompiledSchedule, PreparedKernel } from '../../api/compiled/compiled.ts'
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import type { Kernel, TraceStep } from '../../api/kernels/kernel.ts'
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { groupBy } from '../../ir/memoize.ts'
import { formatKey, runOn } from '../../run/compile/compiled-program.ts'
import { lanesOf } from '../../run/execution/execute.ts'
import type { Device } from '../../runtime/device.ts'
import { isLost, Outcomes, outcomeOf } from '../outcomes.ts'
import type { TrialRecord } from '../records/types.ts'
import { pointKey } from '../spaces/points.ts'
import { EventTurns } from '../stepwise.ts'
import type { EvaluationContext, EvaluationRequest, KernelSpace, Outcome, Point } from '../types.ts'
import { EvaluationThreads, type ThreadOptions } from './evaluation-threads.ts'
import { type MeasuringOptions, TestBench } from './test-bench.ts'

export interface EvaluatorOptions extends ThreadOptions, MeasuringOptions {
  readonly space: KernelSpace<Kernel>
  /** The unscheduled kernel, whose inputs are bound. */
  readonly kernel: Kernel
  readonly inputs: RunInputs
  readonly device: Device
  /** Opens another device of the same kind, once, if the first is lost; without it, a loss ends the study. */
  readonly reopen?: (() => Promise<Device>) | undefined
}

/** Facts about an evaluated point in addition to its outcome. */
export interface PointFacts
  extends Pick<TrialRecord, 'bytes' | 'relativeError' | 'sampled' | 'worker' | 'duration'> {
  readonly steps: readonly string[]
  readonly trace: readonly TraceStep[]
}

/** Evaluates points in this process or on workers. */
export interface PointEvaluator {
  /** Outcomes of points, in their order, for `search`. */
  evaluate(
    requests: readonly EvaluationRequest[],
    context?: Partial<EvaluationContext>,
  ): Promise<readonly Outcome[]>
  /** Facts about an evaluated point, as far as its steps could be applied. */
  factsOf(point: Point): PointFacts | undefined
}

/** The kernel of a point with its steps, or the diagnostic that rejects it. */
export function applyPoint(
  space: KernelSpace<Kernel>,
  point: Point,
): { readonly kernel: Kernel; readonly facts: PointFacts } | { readonly rejection: Outcome } {
  try {
    const kernel = space.kernel(point)
    return { kernel, facts: { steps: kernel.trace, trace: kernel.toJSON() } }
  } catch (e) {
    return { rejection: outcomeOf(e) }
  }
}

/** A point during its evaluation. */
interface Candidate {
  /** Index in the batch. */
  readonly index: number
  readonly share: number
  readonly point: Point
  /** Steps as JSON; points may have the same steps. */
  readonly key: string
  readonly kernel: Kernel
  compiled?: CompiledSchedule | undefined
  prepared?: PreparedKernel | undefined
}

/** Candidates that were not running when the device was lost. */
interface DeviceLoss {
  readonly survivors: readonly Candidate[]
  readonly cause: unknown
}

/** Maximum milliseconds of a measurement round with several candidates. */
const ROUND_MS = 1000

export class Evaluator implements PointEvaluator {
  readonly #threads: EvaluationThreads
  #bench: TestBench
  #reopened = false
  readonly #facts = new Map<string, PointFacts>()

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

  factsOf(point: Point): PointFacts | undefined {
    return this.#facts.get(pointKey(point))
  }

  readonly evaluate = async (
    requests: readonly EvaluationRequest[],
    { signal, report }: Partial<EvaluationContext> = {},
  ): Promise<readonly Outcome[]> => {
    await this.#bench.extent(signal)
    const outcomes = new Outcomes(report)
    let candidates: Candidate[] = []
    try {
      const turns = new EventTurns(signal)
      for (const [index, request] of requests.entries()) {
        await turns.next()
        candidates.push(...this.#apply(request, index, outcomes))
      }
      for (;;) {
        await this.#compileAll(candidates, outcomes, signal)
        const compiled = candidates.filter((c) => c.compiled)
        const survivors = await new Batch(this.#bench, this.#facts, outcomes, signal).run(compiled)
        // Candidates that ran when the device was lost have an outcome; the others are retried once.
        if (survivors.length === 0 || !this.options.reopen || this.#reopened) {
          for (const { index } of survivors) outcomes.report(index, outcomes.list[index]!)
          return outcomes.list
        }
        this.#reopened = true
        for (const c of candidates) free(c)
        this.#bench = this.#benchOn(await this.options.reopen())
        candidates = [...survivors]
      }
    } finally {
      for (const c of candidates) free(c)
    }
  }

  #apply({ point, share }: EvaluationRequest, index: number, outcomes: Outcomes): Candidate[] {
    const application = applyPoint(this.options.space, point)
    if ('rejection' in application) {
      outcomes.report(index, application.rejection)
      return []
    }
    const { kernel, facts } = application
    this.#facts.set(pointKey(point), facts)
    return [{ index, share, point, key: JSON.stringify(facts.trace), kernel }]
  }

  /** Starts compilations one after another, because each blocks this thread for some time. */
  async #compileAll(
    candidates: readonly Candidate[],
    outcomes: Outcomes,
    signal?: AbortSignal,
  ): Promise<void> {
    const turns = new EventTurns(signal)
    const compilations: Promise<void>[] = []
    const compileInto = async (c: Candidate): Promise<void> => {
      try {
        c.compiled = await this.compile(c.kernel, signal)
      } catch (e) {
        outcomes.report(c.index, outcomeOf(e))
      }
    }
    try {
      for (const c of candidates) {
        await turns.next()
        compilations.push(compileInto(c))
      }
    } finally {
      // Errors are thrown below, after all compilations have settled.
      await Promise.allSettled(compilations)
    }
    await Promise.all(compilations)
  }

  /** @throws SptError `search/timeout`, and as `compileSchedule`; the abort reason of `signal` */
  async compile(kernel: Kernel, signal?: AbortSignal): Promise<CompiledSchedule> {
    const { device } = this.#bench
    const { compilation } = runOn(kernel, device.kind)
    const input = { loops: compilation.loops, options: lanesOf(device) }
    compilation.adopt(await this.#threads.plan(input, kernel.name, signal), input.options)
    return kernel.compileSchedule(device)
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
    private readonly facts: Map<string, PointFacts>,
    private readonly outcomes: Outcomes,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** Returns the candidates that are not responsible for the loss of the device; empty if it was not lost. */
  async run(candidates: readonly Candidate[]): Promise<readonly Candidate[]> {
    const groups = [...groupBy(candidates, (c) => formatKey(c.kernel.compilation)).values()]
    for (const [k, group] of groups.entries()) {
      const loss = await this.#group(group)
      if (!loss) continue
      const survivors = [...loss.survivors, ...groups.slice(k + 1).flat()]
      for (const { index } of survivors) this.outcomes.list[index] = outcomeOf(loss.cause)
      return survivors
    }
    return []
  }

  /** Verifies and measures candidates with identical tensor storage together. */
  async #group(group: readonly Candidate[]): Promise<DeviceLoss | null> {
    const correct: Candidate[] = []
    const turns = new EventTurns(this.signal)
    try {
      for (const [k, c] of group.entries()) {
        this.signal?.throwIfAborted()
        try {
          const outcome = await this.#verify(c)
          if (outcome) this.outcomes.report(c.index, outcome)
          else correct.push(c)
        } catch (e) {
          this.outcomes.report(c.index, outcomeOf(e))
          if (isLost(e)) return { survivors: [...correct, ...group.slice(k + 1)], cause: e }
        }
        await turns.next()
      }
      const races = this.#races(correct)
      for (const [k, race] of races.entries()) {
        const loss = await this.#race(race)
        if (loss) return { ...loss, survivors: [...loss.survivors, ...races.slice(k + 1).flat()] }
      }
      return null
    } finally {
      for (const c of group) free(c)
    }
  }

  /** Verifies a candidate; returns its outcome, or null if the results are correct and it can be measured. */
  async #verify(c: Candidate): Promise<Outcome | null> {
    const verification = await this.bench.verify(c.compiled!, c.key, this.signal)
    if ('wrong' in verification) return verification.wrong
    c.prepared = verification.prepared
    const id = pointKey(c.point)
    this.facts.set(id, { ...this.facts.get(id)!, ...verification.facts })
    return this.bench.warmUp(c.prepared, this.signal)
  }

  /** Groups of candidates measured against each other: small if they are slow, so that results are saved soon. */
  #races(correct: readonly Candidate[]): readonly (readonly Candidate[])[] {
    const groups: Candidate[][] = []
    let total = Number.POSITIVE_INFINITY
    for (const c of correct) {
      const time = this.bench.firstTime(c.prepared!)
      if (total + time > ROUND_MS) {
        groups.push([])
        total = 0
      }
      groups.at(-1)!.push(c)
      total += time
    }
    return groups
  }

  async #race(group: readonly Candidate[]): Promise<DeviceLoss | null> {
    const share = Math.max(...group.map((c) => c.share))
    const prepared = group.map((c) => c.prepared!)
    const results = await this.bench.measure(prepared, share, this.signal)
    // The first of the lost candidates may have caused the loss, so it is not retried.
    const [suspect, ...survivors] = group.filter((_, k) => lossErrorOf(results[k]!))
    for (const [k, c] of group.entries())
      if (survivors.includes(c)) this.outcomes.list[c.index] = results[k]!
      else this.outcomes.report(c.index, results[k]!)
    return suspect ? { survivors, cause: lossErrorOf(results[group.indexOf(suspect)]!) } : null
  }
}

const lossErrorOf = (o: Outcome): SptError | null =>
  o.status === 'failed' && o.code === 'device/lost'
    ? new SptError({ code: o.code, message: o.message, hint: 'open the device again' })
    : null

function free(c: Candidate): void {
  c.prepared?.free()
  c.prepared = undefined
  c.compiled?.release()
  c.compiled = undefined
}
