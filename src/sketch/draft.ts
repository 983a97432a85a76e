/** A kernel under construction: schedule steps by loop variable, each of which may be rejected. */
import { invariant, resultOrError, SptError } from '../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { unusedName } from '../ir/expressions/bound-names.ts'
import type { ThreadAxis } from '../ir/expressions/expr.ts'
import { definitionsIn, findLoop } from '../ir/statements/definitions.ts'
import type { For, Kernel2, Stmt } from '../ir/statements/loops.ts'
import { someStmt } from '../ir/statements/tree.ts'
import { KernelNames } from '../schedule/names/kernel-names.ts'
import type { ScheduleState } from '../schedule/state/state.ts'
import type { Step } from '../schedule/steps/resolve.ts'
import type { LoopStep } from '../schedule/steps/step-data.ts'

/** Basis of sketches: a kernel as an immutable value that accepts schedule steps. */
export interface Schedulable<K> {
  readonly compilation: { readonly kernel: Kernel1; readonly loops: Kernel2 }
  /** @throws SptError if a step is rejected */
  apply(steps: readonly Step[]): K
  /** Applies steps on loops whose result is known. */
  repeated?(repeat: (state: ScheduleState) => ScheduleState): K
  /** Makes the names of new loops and buffers, instead of the first unused name with this base. */
  placeholder?(base: string, of: 'loop' | 'buffer'): string
}

export class Draft<K extends Schedulable<K>> {
  kernel: K
  readonly #names = new KernelNames()

  constructor(kernel: K) {
    this.kernel = kernel
  }

  get loops(): Kernel2 {
    return this.kernel.compilation.loops
  }

  step(step: LoopStep): void {
    this.kernel = this.kernel.apply([{ stage: 2, step }])
  }

  /** Applies all of the steps or none; returns the error of the step that is rejected. */
  rejection(steps: () => void): SptError | null {
    const previous = this.kernel
    const result: unknown = resultOrError(steps)
    if (!(result instanceof SptError)) return null
    this.kernel = previous
    return result
  }

  /** Applies all of the steps or none; returns true if they were applied. */
  attempt(steps: () => void): boolean {
    return this.rejection(steps) === null
  }

  /** Makes updates of a buffer atomic, unless they are. */
  atomic(buffer: string): void {
    const isUpdate = (s: Stmt): boolean =>
      s.kind === 'reduce' && !s.atomic && s.targets.some((t) => t.buffer === buffer)
    if (someStmt(this.loops.body, isUpdate)) this.step({ kind: 'atomic', buffer })
  }

  loop(variable: string): For | undefined {
    return findLoop(this.loops.body, variable)?.loop
  }

  /** An unused name for a new buffer. */
  freshBuffer(base: string): string {
    const names = this.#names.follow(this.loops, [])
    return (
      this.kernel.placeholder?.(base, 'buffer') ?? unusedName(base, (n) => names.has(n) || names.hasLoop(n))
    )
  }

  /** Index of the top-level statement with a loop. */
  #indexOf(variable: string): number {
    return this.loops.body.findIndex((s) => definitionsIn(s).loops.some((l) => l.var === variable))
  }

  /** Splits a loop; returns the variables of the outer and the inner loop. */
  split(variable: string, by: number): readonly [outer: string, inner: string] {
    const loop = this.loop(variable)!
    const at = this.#indexOf(variable)
    const names = this.#names.follow(this.loops, [])
    const into = ['o', 'i'].map((end) => {
      const base = `${loop.name}${end}`
      return this.kernel.placeholder?.(base, 'loop') ?? unusedName(base, (n) => names.hasLoop(n))
    })
    this.step({ kind: 'split', loop: { var: variable }, by, into: into as [string, string] })
    const { loops: all } = definitionsIn(this.loops.body[at]!)
    const loops = all.filter((l) => l.nest === loop.nest)
    const [outer, inner] = into.map((name) => loops.find((l) => l.name === name)!.var)
    return [outer!, inner!]
  }

  /** Reorders loops if their order differs; `undefined` entries are skipped. */
  reorder(order: readonly (string | undefined)[]): void {
    const variables = order.filter((v) => v !== undefined)
    const { loops } = definitionsIn(this.loops.body[this.#indexOf(variables[0]!)]!)
    const current = loops.filter((l) => variables.includes(l.var))
    if (current.every((l, k) => l.var === variables[k])) return
    this.step({ kind: 'reorder', loops: variables.map((v) => ({ var: v })) })
  }

  /** Splits a loop unless `by` is 1: then it is the outer loop. */
  splitUnlessOne(variable: string, by: number): readonly [outer: string, inner: string | undefined] {
    return by > 1 ? this.split(variable, by) : [variable, undefined]
  }

  /** Binds loops; `undefined` entries are skipped. */
  bind(bindings: readonly (readonly [variable: string | undefined, to: ThreadAxis])[]): void {
    const given = bindings.flatMap(([v, to]) => (v === undefined ? [] : [{ loop: { var: v }, to }]))
    this.step({ kind: 'bind', bindings: given })
  }

  /** Unrolls a loop by a factor: 1 leaves the loop unchanged, 0 unrolls it completely. */
  unroll(variable: string, by: number, predicated = false): void {
    if (by === 1) return
    const options = by === 0 ? {} : { by, ...(predicated && { predicated }) }
    this.step({ kind: 'unroll', loop: { var: variable }, ...options })
  }

  vectorize(variable: string): void {
    this.step({ kind: 'vectorize', loop: { var: variable } })
  }

  /** Accumulates buffers in registers within the body of a loop, if that is legal. */
  cacheInRegisters(buffers: readonly string[], loop: string): void {
    for (const buffer of buffers)
      this.attempt(() => this.step({ kind: 'cache_write', buffer, at: { var: loop }, scope: 'register' }))
  }
}

// Result of sketch rules: steps that are planned before any is applied, so that decisions are cheap.

/** Plans the loop order of one strand or nest, before its copies and loop modes. */
export type Plan = <K extends Schedulable<K>>(draft: Draft<K>) => Arrangement

/** Loops after reordering and binding. */
export interface Arrangement {
  /** The innermost loop outside of all reductions, if there is one: results are complete at its end. */
  readonly completeAt?: string | undefined
  /** Applies copies and loop modes, after which nothing can be moved into the loops. */
  finish<K extends Schedulable<K>>(draft: Draft<K>): void
}

// Decisions by replay: a rule requests values as it runs, and is rerun with one more value for each decision, so that a decision may depend on all earlier values.

/** A point of a space, or the first part of one: values by decision. */
export type PartialPoint = Readonly<Record<string, number | string>>

/** A decision that a rule requests. */
export interface Decision {
  readonly name: string
  readonly values: readonly (number | string)[]
  readonly ordered: boolean
  /** Values that are more often the best than others; for numbers, their neighbours as well. */
  readonly likely: readonly (number | string)[]
}

/** Thrown to leave a rule at the first decision without a value. */
class Interruption {
  constructor(readonly decision: Decision) {}
}

export class Decisions {
  readonly #values: Record<string, number | string> = {}
  readonly #requests: Decision[] = []
  readonly #forms: string[] = []

  /**
   * A replay. @param point - Given values; `null`: heuristic defaults for all decisions
   * @param useGuesses - Use the default for decisions without a valid value, instead of leaving the rule
   */
  constructor(
    private readonly point: PartialPoint | null,
    private readonly useGuesses = point === null,
  ) {}

  /** The values so far. */
  get values(): PartialPoint {
    return this.#values
  }

  /** The decisions so far, in order. */
  get requests(): readonly Decision[] {
    return this.#requests
  }

  /** Names of the decisions on which the other decisions depend. */
  get forms(): readonly string[] {
    return this.#forms
  }

  /** Like `choose`, for decisions on the partition of loops, which determine the other decisions. */
  form<T extends number | string>(name: string, values: readonly T[], guess: T = values[0]!): T {
    const isNew = values.length > 1 && !Object.hasOwn(this.#values, name)
    if (isNew) this.#forms.push(name)
    return this.choose(name, values, guess)
  }

  /**
   * The value of a decision. A decision with a single value is not recorded. Points have been checked before.
   * @param values - Ascending, if they are numbers
   * @param guess - The heuristic default; default: the first value
   * @param likely - Values that may be the best in addition to the guess
   */
  choose<T extends number | string>(
    name: string,
    values: readonly T[],
    guess: T = values[0]!,
    likely: readonly T[] = [guess],
  ): T {
    if (values.length === 1) return values[0]!
    // Nests that share decisions are isomorphic except for constants, which may exclude the shared value.
    if (Object.hasOwn(this.#values, name)) return values.find((v) => v === this.#values[name]) ?? guess
    const preset = this.point !== null && Object.hasOwn(this.point, name) ? this.point[name] : undefined
    const match = values.find((v) => v === preset)
    const decision = { name, values, ordered: values.every((v) => typeof v === 'number'), likely }
    if (!this.useGuesses) {
      if (preset === undefined) throw new Interruption(decision)
      invariant(match !== undefined, () => `${name} is not ${preset} here`)
    }
    const value = match ?? guess
    this.#requests.push(decision)
    this.#values[name] = value
    return value
  }
}

/** The first decision of a rule that the point leaves open; `null` if the point is complete. */
export function nextDecision(point: PartialPoint, rule: (decisions: Decisions) => void): Decision | null {
  try {
    rule(new Decisions(point))
    return null
  } catch (e) {
    if (e instanceof Interruption) return e.decision
    throw e
  }
}
