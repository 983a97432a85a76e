/** Points of a space on a device, with data: applied, lowered, compiled, compared with the reference and measured. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { CompiledSchedule, PreparedKernel } from '../../api/compiled.ts'
import type { Kernel, TraceStep } from '../../api/kernel.ts'
import { SptError } from '../../ast/diagnostic.ts'
import { runOn } from '../../run/default-schedules.ts'
import { lanesOf } from '../../run/execute.ts'
import { formatKey } from '../../run/format-key.ts'
import type { Device } from '../../runtime/device.ts'
import { EventTurns } from '../measuring/event-turns.ts'
import { pointKey } from '../points.ts'
import type { EvaluationContext, EvaluationRequest } from '../search-options.ts'
import type { KernelSpace, Outcome, Point } from '../types.ts'
import { EvaluationThreads, type ThreadOptions } from './evaluation-threads.ts'
import { isLost, Outcomes, outcomeOf } from './outcomes.ts'
import { type Compared, type MeasuringOptions, TestBench } from './test-bench.ts'

export interface EvaluatorOptions extends ThreadOptions, MeasuringOptions {
  readonly space: KernelSpace<Kernel>
  /** The kernel as written, whose inputs are bound. */
  readonly kernel: Kernel
  readonly inputs: RunInputs
  readonly device: Device
  /** Another device of the kind, once the first is lost; without it, that ends the study. */
  readonly reopen?: (() => Promise<Device>) | undefined
}

/** Facts about an evaluated point besides its outcome. */
export interface Tried extends Partial<Compared> {
  /** As the language writes them. */
  readonly steps: readonly string[]
  readonly trace: readonly TraceStep[]
  /** Worker that measured it, if not this process. */
  readonly worker?: string | undefined
  /** Milliseconds that it took there. */
  readonly duration?: number | undefined
}

/** Tries points: here, or where others do it. */
export interface Trier {
  /** Outcomes of points, in their order, for `search`. */
  evaluate(
    asked: readonly EvaluationRequest[],
    context?: Partial<EvaluationContext>,
  ): Promise<readonly Outcome[]>
  /** Facts about an evaluated point, as far as its steps could be applied. */
  tried(point: Point): Tried | undefined
}

/** The kernel of a point with its steps, or the diagnostic that rejects it. */
export function appliedAt(
  space: KernelSpace<Kernel>,
  point: Point,
): { readonly kernel: Kernel; readonly tried: Tried } | { readonly refused: Outcome } {
  try {
    const kernel = space.kernel(point)
    return { kernel, tried: { steps: kernel.trace, trace: kernel.toJSON() } }
  } catch (e) {
    return { refused: outcomeOf(e) }
  }
}

/** A point on its way. */
interface Candidate {
  /** Index in the batch. */
  readonly at: number
  readonly share: number
  readonly point: Point
  /** Steps as JSON: points may have the same. */
  readonly key: string
  readonly kernel: Kernel
  compiled?: CompiledSchedule | undefined
  prepared?: PreparedKernel | undefined
}

/** Who was not at it when the device was lost. */
interface Loss {
  readonly others: readonly Candidate[]
  readonly why: unknown
}

/** Maximum milliseconds of a measurement round with several candidates. */
const ROUND_MS = 1000

export class Evaluator implements Trier {
  readonly #options: EvaluatorOptions
  readonly #threads: EvaluationThreads
  #bench: TestBench
  #reopened = false
  readonly #tried = new Map<string, Tried>()

  constructor(options: EvaluatorOptions) {
    this.#options = options
    this.#threads = new EvaluationThreads(options)
    this.#bench = this.#benchOn(options.device)
  }

  #benchOn(device: Device): TestBench {
    const { kernel, inputs } = this.#options
    return new TestBench(device, kernel, inputs, this.#options, this.#threads)
  }

  /** The device, which is another one after one was lost, with the inputs on it. */
  get bench(): TestBench {
    return this.#bench
  }

  tried(point: Point): Tried | undefined {
    return this.#tried.get(pointKey(point))
  }

  readonly evaluate = async (
    asked: readonly EvaluationRequest[],
    { signal, report }: Partial<EvaluationContext> = {},
  ): Promise<readonly Outcome[]> => {
    await this.#bench.extent(signal)
    const outcomes = new Outcomes(report)
    let open: Candidate[] = []
    try {
      const turns = new EventTurns(signal)
      for (const [at, a] of asked.entries()) {
        await turns.next()
        open.push(...this.#applied(a, at, outcomes))
      }
      for (;;) {
        await this.#compileAll(open, outcomes, signal)
        const lost = await this.#onDevice(
          open.filter((c) => c.compiled),
          outcomes,
          signal,
        )
        // Who was at it when the device was lost has its outcome; the others have another chance, once.
        if (lost.length === 0 || !this.#options.reopen || this.#reopened) {
          outcomes.settle(lost.map((c) => c.at))
          return outcomes.all
        }
        this.#reopened = true
        for (const c of open) free(c)
        this.#bench = this.#benchOn(await this.#options.reopen())
        open = [...lost]
      }
    } finally {
      for (const c of open) free(c)
    }
  }

  #applied({ point, share }: EvaluationRequest, at: number, outcomes: Outcomes): Candidate[] {
    const applied = appliedAt(this.#options.space, point)
    if ('refused' in applied) {
      outcomes.set(at, applied.refused)
      return []
    }
    const { kernel, tried } = applied
    this.#tried.set(pointKey(point), tried)
    return [{ at, share, point, key: JSON.stringify(tried.trace), kernel }]
  }

  /** Starts compilations one after another, because each blocks this thread for some time. */
  async #compileAll(all: readonly Candidate[], outcomes: Outcomes, signal?: AbortSignal): Promise<void> {
    const turns = new EventTurns(signal)
    const begun: Promise<void>[] = []
    try {
      for (const c of all) {
        await turns.next()
        begun.push(this.#compileInto(c, outcomes, signal))
      }
    } finally {
      // What fails here is told below.
      await Promise.allSettled(begun)
    }
    await Promise.all(begun)
  }

  async #compileInto(c: Candidate, outcomes: Outcomes, signal?: AbortSignal): Promise<void> {
    try {
      c.compiled = await this.compiled(c.kernel, signal)
    } catch (e) {
      outcomes.set(c.at, outcomeOf(e))
    }
  }

  /** @throws SptError `search/timeout`, and as `compileSchedule`; the abort reason of `signal` */
  async compiled(kernel: Kernel, signal?: AbortSignal): Promise<CompiledSchedule> {
    const { device } = this.#bench
    const { compilation } = runOn(kernel, device.kind)
    const given = { loops: compilation.loops, options: lanesOf(device) }
    compilation.adopt(await this.#threads.plan(given, kernel.name, signal), given.options)
    return kernel.compileSchedule(device)
  }

  /** Candidates not responsible for the loss of the device; empty if it was not lost. */
  async #onDevice(
    all: readonly Candidate[],
    outcomes: Outcomes,
    signal?: AbortSignal,
  ): Promise<readonly Candidate[]> {
    const groups = alike(all)
    for (const [k, group] of groups.entries()) {
      const lost = await this.#group(group, outcomes, signal)
      if (!lost) continue
      const rest = [...lost.others, ...groups.slice(k + 1).flat()]
      for (const { at } of rest) outcomes.put(at, outcomeOf(lost.why))
      return rest
    }
    return []
  }

  /** Verifies and measures candidates with identical tensor storage together. */
  async #group(group: readonly Candidate[], outcomes: Outcomes, signal?: AbortSignal): Promise<Loss | null> {
    const right: Candidate[] = []
    const turns = new EventTurns(signal)
    try {
      for (const [k, c] of group.entries()) {
        signal?.throwIfAborted()
        try {
          const outcome = await this.#checked(c, signal)
          if (outcome) outcomes.set(c.at, outcome)
          else right.push(c)
        } catch (e) {
          outcomes.set(c.at, outcomeOf(e))
          if (isLost(e)) return { others: [...right, ...group.slice(k + 1)], why: e }
        }
        await turns.next()
      }
      const races = this.#races(right)
      for (const [k, race] of races.entries()) {
        const lost = await this.#race(race, outcomes, signal)
        if (lost) return { ...lost, others: [...lost.others, ...races.slice(k + 1).flat()] }
      }
      return null
    } finally {
      for (const c of group) free(c)
    }
  }

  /** Verifies a candidate; returns its outcome, or null if the results are correct and it can be measured. */
  async #checked(c: Candidate, signal?: AbortSignal): Promise<Outcome | null> {
    const checked = await this.#bench.checked(c.compiled!, c.key, signal)
    if ('wrong' in checked) return checked.wrong
    c.prepared = checked.prepared
    const id = pointKey(c.point)
    this.#tried.set(id, { ...this.#tried.get(id)!, ...checked.found })
    return this.#bench.hopeless(c.prepared, signal)
  }

  /** Groups of candidates measured against each other: small if they are slow, so that results are saved soon. */
  #races(right: readonly Candidate[]): readonly (readonly Candidate[])[] {
    const races: Candidate[][] = []
    let spent = Number.POSITIVE_INFINITY
    for (const c of right) {
      const time = this.#bench.firstTime(c.prepared!)
      if (spent + time > ROUND_MS) {
        races.push([])
        spent = 0
      }
      races.at(-1)!.push(c)
      spent += time
    }
    return races
  }

  async #race(race: readonly Candidate[], outcomes: Outcomes, signal?: AbortSignal): Promise<Loss | null> {
    const share = Math.max(...race.map((c) => c.share))
    const prepared = race.map((c) => c.prepared!)
    const found = await this.#bench.measured(prepared, share, signal)
    // One of those that were lost may be to blame: it is not tried again.
    const [first, ...others] = race.filter((_, k) => lossOf(found[k]!))
    for (const [k, c] of race.entries())
      if (others.includes(c)) outcomes.put(c.at, found[k]!)
      else outcomes.set(c.at, found[k]!)
    return first ? { others, why: lossOf(found[race.indexOf(first)]!) } : null
  }

  /** Ends its threads, and frees its device memory. */
  close(): void {
    this.#threads.close()
    this.#bench.free()
  }
}

const lossOf = (o: Outcome): SptError | null =>
  o.status === 'failed' && o.code === 'device/lost'
    ? new SptError({ code: o.code, message: o.message, hint: 'open the device again' })
    : null

function free(c: Candidate): void {
  c.prepared?.free()
  c.prepared = undefined
  c.compiled?.release()
  c.compiled = undefined
}

/** In the order of the first of each. */
function alike(all: readonly Candidate[]): Candidate[][] {
  const groups = new Map<string, Candidate[]>()
  for (const c of all) {
    const key = formatKey(c.kernel.compilation)
    const group = groups.get(key)
    if (group) group.push(c)
    else groups.set(key, [c])
  }
  return [...groups.values()]
}
