/** A kernel in the making: steps by loops' variables, each an ordinary step that may be refused. */
import { orRefused, SptError } from '../../ast/diagnostic.ts'
import { unusedName } from '../../ir/bound-names.ts'
import { findLoop, loopsOf } from '../../ir/definitions.ts'
import type { ThreadAxis } from '../../ir/expr.ts'
import type { For, Kernel2 } from '../../ir/loops.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import type { CoordStep } from '../../schedule/coords/steps.ts'
import type { Step } from '../../schedule/resolve.ts'
import type { LoopStep } from '../../schedule/steps.ts'

/** Basis of sketches: a kernel as an immutable value that accepts schedule steps. */
export interface Schedulable<K> {
  readonly compilation: { readonly kernel: Kernel1; readonly loops: Kernel2 }
  /** @throws SptError where a step is refused */
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

  onCoords(step: CoordStep): void {
    this.kernel = this.kernel.apply([{ stage: 1, step }])
  }

  step(step: LoopStep): void {
    this.kernel = this.kernel.apply([{ stage: 2, step }])
  }

  /** Steps that are taken all or none; whether they are. */
  attempt(steps: () => void): boolean {
    const before = this.kernel
    if (!(orRefused(steps) instanceof SptError)) return true
    this.kernel = before
    return false
  }

  loop(variable: string): For | undefined {
    return findLoop(this.loops.body, variable)?.loop
  }

  /** A name for a buffer that a step makes. */
  freshBuffer(base: string): string {
    const { buffers, params, body } = this.loops
    const taken = new Set([...buffers, ...params, ...loopsOf(body)].map((x) => x.name))
    for (const l of loopsOf(body)) for (const s of l.body) if (s.kind === 'alloc') taken.add(s.buffer.name)
    return unusedName(base, (n) => taken.has(n))
  }

  /** The outer and the inner loop. */
  split(variable: string, by: number): readonly [outer: string, inner: string] {
    const loop = this.loop(variable)!
    const taken = new Set(loopsOf(this.loops.body).map((l) => l.name))
    const into = ['o', 'i'].map((end) => unusedName(`${loop.name}${end}`, (n) => taken.has(n)))
    this.step({ kind: 'split', loop: { var: variable }, by, into: into as [string, string] })
    const made = loopsOf(this.loops.body).filter((l) => l.nest === loop.nest)
    const [outer, inner] = into.map((name) => made.find((l) => l.name === name)!.var)
    return [outer!, inner!]
  }

  /** Loops in a new order, as far as it is one. */
  /** Loops that there are none of are left out. */
  reorder(of: readonly (string | undefined)[]): void {
    const variables = of.filter((v) => v !== undefined)
    const now = loopsOf(this.loops.body).filter((l) => variables.includes(l.var))
    if (now.every((l, k) => l.var === variables[k])) return
    this.step({ kind: 'reorder', loops: variables.map((v) => ({ var: v })) })
  }

  bind(bindings: readonly (readonly [variable: string, to: ThreadAxis])[]): void {
    this.step({ kind: 'bind', bindings: bindings.map(([v, to]) => ({ loop: { var: v }, to })) })
  }

  /** `by`: 1 leaves the loop as it is, 0 unrolls it whole. */
  unroll(variable: string, by: number, predicated = false): void {
    if (by === 1) return
    const rounds = by === 0 ? {} : { by, ...(predicated ? { predicated } : {}) }
    this.step({ kind: 'unroll', loop: { var: variable }, ...rounds })
  }

  vectorize(variable: string): void {
    this.step({ kind: 'vectorize', loop: { var: variable } })
  }

  /** Keeps what a loop's body writes of buffers in registers, where that is legal. */
  inRegisters(buffers: readonly string[], at: string): void {
    for (const buffer of buffers)
      this.attempt(() => this.step({ kind: 'cache_write', buffer, at: { var: at }, scope: 'register' }))
  }
}
