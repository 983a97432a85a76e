/** A kernel under construction: schedule steps by loop variable, each of which may be rejected. */
import { resultOrError, SptError } from '../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { unusedName } from '../ir/expressions/bound-names.ts'
import type { ThreadAxis } from '../ir/expressions/expr.ts'
import { findLoop, loopsOf } from '../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../ir/statements/loops.ts'
import type { CoordStep } from '../schedule/coordinates/steps.ts'
import type { Step } from '../schedule/steps/resolve.ts'
import type { LoopStep } from '../schedule/steps/step-data.ts'

/** Basis of sketches: a kernel as an immutable value that accepts schedule steps. */
export interface Schedulable<K> {
  readonly compilation: { readonly kernel: Kernel1; readonly loops: Kernel2 }
  /** @throws SptError if a step is rejected */
  apply(steps: readonly Step[]): K
}

export class Draft<K extends Schedulable<K>> {
  kernel: K

  constructor(kernel: K) {
    this.kernel = kernel
  }

  get loops(): Kernel2 {
    return this.kernel.compilation.loops
  }

  coordStep(step: CoordStep): void {
    this.kernel = this.kernel.apply([{ stage: 1, step }])
  }

  step(step: LoopStep): void {
    this.kernel = this.kernel.apply([{ stage: 2, step }])
  }

  /** Applies all of the steps or none; returns true if they were applied. */
  attempt(steps: () => void): boolean {
    const previous = this.kernel
    if (!(resultOrError(steps) instanceof SptError)) return true
    this.kernel = previous
    return false
  }

  loop(variable: string): For | undefined {
    return findLoop(this.loops.body, variable)?.loop
  }

  /** An unused name for a new buffer. */
  freshBuffer(base: string): string {
    const { buffers, params, body } = this.loops
    const usedNames = new Set([...buffers, ...params, ...loopsOf(body)].map((x) => x.name))
    for (const l of loopsOf(body))
      for (const s of l.body) if (s.kind === 'alloc') usedNames.add(s.buffer.name)
    return unusedName(base, (n) => usedNames.has(n))
  }

  /** Splits a loop; returns the variables of the outer and the inner loop. */
  split(variable: string, by: number): readonly [outer: string, inner: string] {
    const loop = this.loop(variable)!
    const usedNames = new Set(loopsOf(this.loops.body).map((l) => l.name))
    const into = ['o', 'i'].map((end) => unusedName(`${loop.name}${end}`, (n) => usedNames.has(n)))
    this.step({ kind: 'split', loop: { var: variable }, by, into: into as [string, string] })
    const loops = loopsOf(this.loops.body).filter((l) => l.nest === loop.nest)
    const [outer, inner] = into.map((name) => loops.find((l) => l.name === name)!.var)
    return [outer!, inner!]
  }

  /** Reorders loops if their order differs; `undefined` entries are skipped. */
  reorder(order: readonly (string | undefined)[]): void {
    const variables = order.filter((v) => v !== undefined)
    const current = loopsOf(this.loops.body).filter((l) => variables.includes(l.var))
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
    const options = by === 0 ? {} : { by, ...(predicated ? { predicated } : {}) }
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
