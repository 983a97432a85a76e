/**
 * Inlining of lets. Names for values: a `let` stands for what its value was where it stands. It is written out at every
 * use, unless what it reads may have been written by then.
 */

import { writesOf } from '../../ir/accesses.ts'
import type { Names } from '../../ir/bound-names.ts'
import { computeType, isHalf } from '../../ir/dtype.ts'
import { type Expr, int, load } from '../../ir/expr.ts'
import { mentions, readsSome } from '../../ir/expr-tree.ts'
import type { Buffer, Stmt } from '../../ir/loops.ts'
import type { Stmt1 } from '../../ir/stage1.ts'
import { exprsOf1 } from '../../ir/stage1-tree.ts'
import { alloc, store } from '../../ir/statement-builders.ts'

/** Whether `name`, with a value that reads memory, is used in statements where some of that may have been written. */
export function usedChanged(rest: readonly Stmt1[], name: string, value: Expr): boolean {
  let found = false
  const uses = (e: Expr): boolean => mentions(e, name)
  /** Whether it is written by the end; `before`: whether it was. */
  const visit = (body: readonly Stmt1[], before: boolean): boolean => {
    let written = before
    for (const s of body) {
      found ||= written && exprsOf1(s).some(uses)
      if (s.kind === 'iterate') {
        // What one round writes, the next one finds.
        const writtenAgain = visit(s.body, written)
        if (writtenAgain && !written) visit(s.body, true)
        found ||= writtenAgain && s.where.some(uses)
        written = writtenAgain
      } else if (s.kind === 'if') {
        const [then, otherwise] = [visit(s.then, written), visit(s.else, written)]
        written = then || otherwise
      } else if (s.kind !== 'let') {
        written ||= s.targets.some((t) => readsSome(value, new Set([t.buffer])))
      }
    }
    return written
  }
  visit(rest, false)
  return found
}

/** Values that are kept where what they read changes. */
export class Copies {
  /** How many loops are around. */
  around = 0
  /** What holds them from one launch to the next. */
  readonly buffers: Buffer[] = []
  readonly #names: Names

  constructor(names: Names) {
    this.#names = names
  }

  /** `value` from here on: in a register inside of loops, in memory outside of all. What puts it there goes to `out`. */
  keep(value: Expr, base: string, out: Stmt[]): Expr {
    // Memory, and a register, would round halves, which is for the statement that stores them.
    const dtype = isHalf(value.dtype) ? computeType(value.dtype) : value.dtype
    const inside = this.around > 0
    const name = this.#names.fresh(base)
    const buffer: Buffer = Object.freeze({
      name,
      dtype,
      scope: inside ? 'register' : 'global',
      role: 'local',
      shape: [int(1)],
      fill: 0,
      accumulate: dtype,
    })
    if (inside) out.push(alloc(buffer))
    else this.buffers.push(buffer)
    out.push(store(name, [int(0)], value))
    return load(name, [int(0)], dtype)
  }

  /** A condition on the launches of `body`, of which no block may change what others ask: it is asked before. */
  decided(cond: Expr, body: readonly Stmt[], out: Stmt[]): Expr {
    return this.around === 0 && readsSome(cond, writesOf(body)) ? this.keep(cond, 'holds', out) : cond
  }
}
