/**
 * Assigns statements to threads when bound loops are interpreted as a device runs them. Registers exist once per thread. A
 * statement outside the loops of a thread axis runs in all threads of that axis if it writes registers, otherwise in the
 * first one only. A reduction across threads delivers its result to the first thread, or to each thread if the target is a
 * register.
 */

import type { ThreadAxis } from '../ir/expr.ts'
import { boundIndex } from '../ir/hardware-axes.ts'
import type { For, Lanes, Stmt } from '../ir/loops.ts'
import { type Body, walkStmts } from '../ir/tree.ts'

interface Axis {
  readonly extent: number
  value: number
}

export class Threads {
  readonly #axes = new Map<ThreadAxis, Axis>()
  /** Thread axes of the loops around the statement being compiled. */
  readonly #around: ThreadAxis[] = []

  /** With `enabled` false there is one thread. */
  constructor(body: Body, enabled: boolean) {
    if (!enabled) return
    walkStmts(body, (s: Stmt) => {
      const axis = boundIndex(s, 'thread')
      if (s.kind !== 'for' || axis === undefined || s.extent.kind !== 'const') return
      const extent = Math.max(1, s.extent.value, this.#axes.get(axis)?.extent ?? 1)
      this.#axes.set(axis, { extent, value: 0 })
    })
  }

  get count(): number {
    return [...this.#axes.values()].reduce((n, a) => n * a.extent, 1)
  }

  /** The number of the current thread. */
  rank(): number {
    let rank = 0
    for (const a of this.#axes.values()) rank = rank * a.extent + a.value
    return rank
  }

  /** Compiles the body of a loop; `enter` prepares an iteration, if the loop needs it. */
  inside<T>(loop: For, compile: () => T): { readonly inner: T; readonly enter?: (k: number) => void } {
    const name = boundIndex(loop, 'thread')
    const axis = name === undefined ? undefined : this.#axes.get(name)
    if (name === undefined || !axis) return { inner: compile() }
    this.#around.push(name)
    const inner = compile()
    this.#around.pop()
    return {
      inner,
      enter: (k) => {
        axis.value = k
      },
    }
  }

  /** `action` as a statement here: by all threads of the axes that no loop around is on, or by the first. */
  statement(action: () => void, byAll: boolean): () => void {
    const idle = [...this.#axes].flatMap(([name, a]) => (this.#around.includes(name) ? [] : [a]))
    if (idle.length === 0) return action
    const reset = (): void => {
      for (const a of idle) a.value = 0
    }
    if (!byAll)
      return () => {
        reset()
        action()
      }
    const count = idle.reduce((n, a) => n * a.extent, 1)
    return () => {
      for (let k = 0; k < count; k++) {
        let rest = k
        for (const a of idle) {
          a.value = rest % a.extent
          rest = Math.floor(rest / a.extent)
        }
        action()
      }
      reset()
    }
  }

  /**
   * Butterfly reduction along thread.x in steps, for all threads of the axes that are not bound by a surrounding loop: `take`
   * reads the current thread's value, `put` combines it with its partner's.
   */
  exchange(
    { first = 1, width }: Lanes,
    take: () => readonly number[],
    put: (other: readonly number[]) => void,
  ): () => void {
    const x = this.#axes.get('thread.x')
    // One thread stands for all: what they have is together already.
    if (!x) return () => {}
    this.#around.push('thread.x')
    const rounds = this.statement(() => {
      for (let xor = first; xor < width; xor *= 2) {
        const registers = Array.from({ length: x.extent }, (_, k) => {
          x.value = k
          return take()
        })
        registers.forEach((_, k) => {
          x.value = k
          put(registers[k ^ xor]!)
        })
      }
      x.value = 0
    }, true)
    this.#around.pop()
    return rounds
  }

  /** `action` at the first thread of the axes of these loops, or at each of them. */
  reached(loops: readonly For[], byAll: boolean, action: () => void): () => void {
    const axes = loops.flatMap((l) => {
      const name = boundIndex(l, 'thread')
      const axis = name === undefined ? undefined : this.#axes.get(name)
      return axis ? [axis] : []
    })
    if (axes.length === 0) return action
    const at = (k: number): void => {
      const axis = axes[k]
      if (!axis) {
        action()
        return
      }
      const before = axis.value
      for (axis.value = 0; axis.value < (byAll ? axis.extent : 1); axis.value++) at(k + 1)
      axis.value = before
    }
    return () => at(0)
  }
}
