/**
 * An incremental index of the names in a kernel. A step changes few of many loop nests, and scanning all of them again
 * would make the time of a schedule quadratic.
 */

import { failAt, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { isRecord, show } from '../../ast/diagnostics/expect-argument.ts'
import { isName } from '../../ast/nodes/names.ts'
import { unusedNumber } from '../../ir/expressions/bound-names.ts'
import { differing } from '../../ir/lists.ts'
import { definitionsIn, loopsOf } from '../../ir/statements/definitions.ts'
import type { Buffer, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import type { Body } from '../../ir/statements/tree.ts'

interface Gone {
  readonly var: string
}

/** The text on which a new name is based, given the names that it depends on. */
export type NameBase = (nameOf: (text: string) => string) => string

/**
 * The index follows a sequence of kernels. The index is fast for kernels before and after a step, and slower for
 * unrelated kernels.
 */
export class KernelNames {
  /** Makes all fresh names: names for a schedule that is repeated with other names. */
  readonly placeholder?: (base: NameBase, of: 'definition' | 'nest') => string
  readonly #counts = new Map<string, number>()
  /** Statements of the body, by the users' names of the loops in them. */
  readonly #nests = new Map<string, Set<Stmt>>()
  /** For each name, the least numeric suffix that may be unused. */
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

  /** Returns whether a definition, or a loop that was replaced, has the name. */
  has(name: string): boolean {
    return (this.#counts.get(name) ?? 0) > 0
  }

  /** Returns the least k ≥ 2 for which `base_k` is unused; n calls for one name cost n steps in all. */
  freeNumber(base: string): number {
    const k = unusedNumber(base, (name) => this.has(name), this.#free.get(base))
    this.#free.set(base, k)
    return k
  }

  /** Returns whether a loop has this user's name. */
  hasLoop(name: string): boolean {
    return (this.#nests.get(name)?.size ?? 0) > 0
  }

  /** Returns whether several loops have this user's name. */
  isShared(name: string): boolean {
    const nests = [...(this.#nests.get(name) ?? [])]
    return nests.length > 1 || nests.some((s) => definitionsIn(s).named.get(name)!.length > 1)
  }

  /** Returns the statements of the body with a loop of this user's name, in order. */
  nestsWith(name: string): readonly Stmt[] {
    const nests = this.#nests.get(name)
    if (!nests || nests.size < 2) return [...(nests ?? [])]
    return this.#body.filter((s) => nests.has(s))
  }
}

/** Calls `each` for the elements that only one of the lists has: -1 for the old one, 1 for the new one. */
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

// Validity of names that steps give to loops and buffers: a trace can be printed only if they are names of
// the language.

/** Checks the new names of a step. @throws SptError `schedule/bad-name` */
export function checkNewNames(step: unknown): void {
  const at = (step ?? {}) as { readonly kind?: unknown; readonly into?: unknown; readonly span?: Span }
  for (const name of [at.into].flat()) {
    // Values that are not strings are rejected by the check of the step.
    if (typeof name !== 'string' || isName(name)) continue
    failAt('schedule/bad-name', at.span, {
      message: `${show(name)} is not a valid name for a result of ${String(at.kind)}`,
      expected: 'a name: a letter or _, then letters, digits and _',
      ...(/^[a-z]+$/.test(name) && { hint: 'this word is reserved; choose another name' }),
    })
  }
}

// Names of loops in the language.

/** Returns the name of each loop by its variable; `nest.name` if several loops have the name. */
export function loopNames(body: Body): ReadonlyMap<string, string> {
  const loops = loopsOf(body)
  const counts = new Map<string, number>()
  for (const { name } of loops) counts.set(name, (counts.get(name) ?? 0) + 1)
  return new Map(loops.map((l) => [l.var, counts.get(l.name)! > 1 ? `${l.nest}.${l.name}` : l.name]))
}

/**
 * A reference to a loop: the user's name (`i`, or `nest.i` if several loop nests have an `i`), or a handle with the
 * variable.
 */
export type LoopRef = string | LoopHandle
export interface LoopHandle {
  readonly var: string
}

export const isHandle = (x: unknown): x is LoopHandle => isRecord(x) && typeof x.var === 'string'
