/**
 * The loops of an epilogue over the elements that an iteration produces. If several loops of the producer write inputs
 * of the epilogue, loops over the same elements of several buffers become one loop.
 */

import { linear, linearKey } from '../../../analysis/integers/linear.ts'
import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import { substitute } from '../../../ir/expressions/expr-tree.ts'
import { keyOf, sameData } from '../../../ir/expressions/structural-equality.ts'
import { accessesOf } from '../../../ir/statements/accesses.ts'
import type { LoopLocation } from '../../../ir/statements/definitions.ts'
import type { For, Reduce, Stmt, Store } from '../../../ir/statements/loops.ts'
import { dropSingleIterations, isSingleIteration } from '../../../ir/statements/reductions.ts'
import type { Context } from '../../state/context.ts'

export class ElementLoops {
  readonly #nest: string
  readonly #fresh: (name: string) => string
  #loops: readonly For[] = []

  constructor(nest: string, fresh: (name: string) => string) {
    this.#nest = nest
    this.#fresh = fresh
  }

  get loops(): readonly For[] {
    return this.#loops
  }

  /**
   * Adds the loops that write a buffer, and returns the value of each in the consumer, by its variable. `same` has the
   * value of a consumer's loop by an earlier buffer and by this buffer: loops at the same place of both values become
   * one loop if they have the same iterations and the same mode.
   */
  add(
    inner: readonly For[],
    same: readonly (readonly [known: Expr, made: Expr])[],
  ): ReadonlyMap<string, Expr> {
    const map = new Map<string, Expr>()
    for (const l of inner) {
      const known = this.#known(l, same, map)
      const name = known?.var ?? this.#fresh(l.name)
      map.set(l.var, variable(name))
      if (!known) this.#loops = [...this.#loops, this.#clone(l, name, map)]
    }
    return map
  }

  #clone(l: For, name: string, map: ReadonlyMap<string, Expr>): For {
    return {
      ...l,
      var: name,
      nest: this.#nest,
      mode: l.mode.kind === 'bind' ? l.mode : { kind: 'serial' },
      extent: substitute(l.extent, map),
      guards: l.guards.map((g) => substitute(g, map)),
    }
  }

  /**
   * Returns the equivalent loop of an earlier buffer; undefined if there is no such loop. A loop of one iteration may
   * have the place of another loop or be absent from an index, so it is identified by its name as well.
   */
  #known(l: For, same: readonly (readonly [Expr, Expr])[], map: ReadonlyMap<string, Expr>): For | undefined {
    const taken = new Set([...map.values()].map(keyOf))
    const open = this.#loops.filter((c) => {
      const own = variable(c.var)
      return !taken.has(keyOf(own)) && alike(this.#clone(l, c.var, new Map([...map, [l.var, own]])), c)
    })
    for (const [known, made] of same) {
      const place = termOf(made, l.var)
      const other = place !== undefined && open.find((c) => termOf(known, c.var) === place)
      if (other) return other
    }
    return isSingleIteration(l) ? open.find((c) => c.name === l.name) : undefined
  }
}

/**
 * Returns whether two indices reach the same elements. Loops of one iteration are at 0, and may be in one of the two
 * only.
 */
export function sameElements(a: Expr, b: Expr, loops: readonly For[]): boolean {
  const key = (e: Expr): string => linearKey(linear(dropSingleIterations(e, loops)))
  return key(a) === key(b)
}

/** Returns the coefficient of a variable in a sum; undefined if the variable is not a term. */
const termOf = (e: Expr, name: string): number | undefined =>
  [...linear(e).terms.values()].find((t) => t.term.kind === 'var' && t.term.name === name)?.coefficient

const alike = (a: For, b: For): boolean =>
  keyOf(a.extent) === keyOf(b.extent) &&
  a.guards.length === b.guards.length &&
  a.guards.every((g, k) => keyOf(g) === keyOf(b.guards[k]!)) &&
  a.reduce === b.reduce &&
  sameData(a.mode, b.mode)

interface Write {
  readonly index: readonly Expr[]
  /** The loops around the write, inside of the given loop. */
  readonly path: readonly For[]
  readonly stmt: Store | Reduce
}

/**
 * Returns the only statement of the producer that writes the buffer, which is inside of the loop. After an iteration,
 * its elements are final, even if a condition in the iteration was false. Throws `schedule/not-complete`.
 */
export function onlyWrite(cx: Context, at: LoopLocation, producer: Stmt, buffer: string): Write {
  const writes = accessesOf([producer]).filter((a) => a.mode === 'write' && a.buffer === buffer)
  const mine = accessesOf(at.loop.body).filter((a) => a.mode === 'write' && a.buffer === buffer)
  const [write] = mine
  const element = write && (write.stmt.kind === 'store' || write.stmt.kind === 'reduce')
  if (writes.length !== 1 || !element)
    return cx.refuse({
      code: 'schedule/not-complete',
      message: `not every element of ${buffer} is written by one statement inside of ${at.loop.name}`,
      loops: [at.loop],
      hint: 'choose a loop around every producer',
    })
  return { index: write.index, path: write.path, stmt: write.stmt as Store | Reduce }
}
