/**
 * What of a kernel has which name, kept from step to step: a step changes one or a few nests of many, and looking at the
 * others again would make a schedule's time quadratic in them.
 */

import { unusedNumber } from '../ir/bound-names.ts'
import { definitionsIn } from '../ir/definitions.ts'
import { differing } from '../ir/lists.ts'
import type { Buffer, Kernel2, Stmt } from '../ir/loops.ts'
import type { Body } from '../ir/tree.ts'

/** A loop that a step replaced. */
interface Gone {
  readonly var: string
}

/** Follows kernels: those before and after a step, or others, which takes it longer. */
export class KernelNames {
  /** How many have the name. */
  readonly #counts = new Map<string, number>()
  /** Statements of the body by what users call the loops in them. */
  readonly #nests = new Map<string, Set<Stmt>>()
  /** The least number after a name that is not known to be taken. */
  readonly #free = new Map<string, number>()
  #params: Kernel2['params'] = []
  #buffers: readonly Buffer[] = []
  #body: Body = []
  #consumed: readonly Gone[] = []

  follow({ params, buffers, body }: Kernel2, consumed: readonly Gone[]): this {
    const same = params === this.#params && buffers === this.#buffers && body === this.#body
    if (same && consumed === this.#consumed) return this
    const left: string[] = []
    const count = (name: string, by: 1 | -1): void => {
      const n = (this.#counts.get(name) ?? 0) + by
      this.#counts.set(name, n)
      if (n === 0) left.push(name)
    }
    const named = (x: { readonly name: string }, by: 1 | -1): void => count(x.name, by)
    this.#params = changed(this.#params, params, named)
    this.#buffers = changed(this.#buffers, buffers, named)
    this.#consumed = changed(this.#consumed, consumed, (c, by) => count(c.var, by))
    this.#body = changed(this.#body, body, (s, by) => {
      const { names, named: loops } = definitionsIn(s)
      for (const name of names) count(name, by)
      for (const name of loops.keys()) {
        if (by < 0) this.#nests.get(name)!.delete(s)
        else if (!this.#nests.get(name)?.add(s)) this.#nests.set(name, new Set([s]))
      }
    })
    if (left.some((name) => !this.has(name))) this.#free.clear()
    return this
  }

  /** Whether something has the name, or a loop that is gone had it. */
  has(name: string): boolean {
    return (this.#counts.get(name) ?? 0) > 0
  }

  /** The least k from 2 on with `base_k` free: names that are asked for n times cost n steps. */
  freeNumber(base: string): number {
    const k = unusedNumber(base, (name) => this.has(name), this.#free.get(base))
    this.#free.set(base, k)
    return k
  }

  /** The statements of the body with loops that users call so, in its order. */
  nestsWith(name: string): readonly Stmt[] {
    const nests = this.#nests.get(name)
    if (!nests || nests.size < 2) return [...(nests ?? [])]
    return this.#body.filter((s) => nests.has(s))
  }
}

/** Says what stands in one list alone; the other list. */
function changed<T>(
  before: readonly T[],
  after: readonly T[],
  each: (x: T, by: 1 | -1) => void,
): readonly T[] {
  const [gone, come] = differing(before, after)
  for (const x of gone) each(x, -1)
  for (const x of come) each(x, 1)
  return after
}
