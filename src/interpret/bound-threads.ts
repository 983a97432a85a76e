/**
 * Assigns statements to threads when bound loops are interpreted as a device runs them. Registers exist once per thread. A
 * statement outside the loops of a thread axis runs in all threads of that axis if it writes registers, otherwise in the
 * first one only. A reduction across threads delivers its result to the first thread, or to each thread if the target is a
 * register.
 */
import type { ThreadAxis } from '../ir/expressions/expr.ts'
import { boundIndex } from '../ir/instructions/hardware-axes.ts'
import { loopsOf } from '../ir/statements/definitions.ts'
import type { For, Lanes } from '../ir/statements/loops.ts'
import type { Body } from '../ir/statements/tree.ts'

interface Axis {
  readonly extent: number
  value: number
}

/** @param enabled `false`: a single thread runs everything */
export function threadsOf(body: Body, enabled: boolean) {
  const threadAxes = new Map<ThreadAxis, Axis>()
  /** Thread axes of the enclosing loops of the statement being compiled. */
  const enclosing: ThreadAxis[] = []
  for (const l of enabled ? loopsOf(body) : []) {
    const axis = boundIndex(l, 'thread')
    if (axis === undefined || l.extent.kind !== 'const') continue
    threadAxes.set(axis, {
      extent: Math.max(1, l.extent.value, threadAxes.get(axis)?.extent ?? 1),
      value: 0,
    })
  }
  /** Row-major number of the current thread. */
  const rank = (): number => {
    let rank = 0
    for (const a of threadAxes.values()) rank = rank * a.extent + a.value
    return rank
  }
  /** Compiles the body of a loop; for a loop that is bound to a thread axis, `enter` selects the thread of an iteration. */
  const compileLoop = <T>(
    loop: For,
    compile: () => T,
  ): { readonly inner: T; readonly enter?: (k: number) => void } => {
    const name = boundIndex(loop, 'thread')
    const axis = name === undefined ? undefined : threadAxes.get(name)
    if (name === undefined || !axis) return { inner: compile() }
    enclosing.push(name)
    const inner = compile()
    enclosing.pop()
    return {
      inner,
      enter: (k) => {
        axis.value = k
      },
    }
  }
  /** Runs `action` in all threads of the axes that no enclosing loop is bound to, or only in the first. */
  const statement = (action: () => void, runsInAll: boolean): (() => void) => {
    const unboundAxes = [...threadAxes].flatMap(([name, a]) => (enclosing.includes(name) ? [] : [a]))
    if (unboundAxes.length === 0) return action
    const reset = (): void => {
      for (const a of unboundAxes) a.value = 0
    }
    if (!runsInAll)
      return () => {
        reset()
        action()
      }
    const count = unboundAxes.reduce((n, a) => n * a.extent, 1)
    return () => {
      for (let k = 0; k < count; k++) {
        let remainder = k
        for (const a of unboundAxes) {
          a.value = remainder % a.extent
          remainder = Math.floor(remainder / a.extent)
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
  const exchange = (
    { first = 1, width }: Lanes,
    read: () => readonly number[],
    combine: (other: readonly number[]) => void,
  ): (() => void) => {
    const x = threadAxes.get('thread.x')
    // With a single thread, the value is already combined.
    if (!x) return () => {}
    enclosing.push('thread.x')
    const reduction = statement(() => {
      for (let mask = first; mask < width; mask *= 2) {
        const registers = Array.from({ length: x.extent }, (_, k) => {
          x.value = k
          return read()
        })
        registers.forEach((_, k) => {
          x.value = k
          combine(registers[k ^ mask]!)
        })
      }
      x.value = 0
    }, true)
    enclosing.pop()
    return reduction
  }
  /** `action` in the first thread of the axes that these loops are bound to, or with `atEach` in each thread. */
  const atThreads = (loops: readonly For[], atEach: boolean, action: () => void): (() => void) => {
    const axes = loops.flatMap((l) => {
      const name = boundIndex(l, 'thread')
      const axis = name === undefined ? undefined : threadAxes.get(name)
      return axis ? [axis] : []
    })
    if (axes.length === 0) return action
    const visit = (k: number): void => {
      const axis = axes[k]
      if (!axis) {
        action()
        return
      }
      const previous = axis.value
      for (axis.value = 0; axis.value < (atEach ? axis.extent : 1); axis.value++) visit(k + 1)
      axis.value = previous
    }
    return () => visit(0)
  }
  return {
    get count(): number {
      return [...threadAxes.values()].reduce((n, a) => n * a.extent, 1)
    },
    rank,
    compileLoop,
    statement,
    exchange,
    atThreads,
  }
}
