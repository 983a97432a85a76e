/**
 * Inlining of lets: a `let` is substituted at every use, unless a statement before the use may have written the memory that its value
 * reads.
 */

import type { Stmt1 } from '../../ir/coordinates/stage1.ts'
import { exprsOf1 } from '../../ir/coordinates/stage1-tree.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { type Expr, int, load } from '../../ir/expressions/expr.ts'
import { mentions, readsSome } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { Buffer, Stmt } from '../../ir/statements/loops.ts'
import { alloc, local, store } from '../../ir/statements/statement-builders.ts'
import { computeType, isHalf, scalarType } from '../../ir/values/dtype.ts'

/** Returns true if `name` is used after a statement that may have written memory that `value` reads. */
export function usedChanged(rest: readonly Stmt1[], name: string, value: Expr): boolean {
  let found = false
  const uses = (e: Expr): boolean => mentions(e, name)
  /** Returns true if this memory may be written by the end of `body`. `before`: it may have been written before. */
  const visit = (body: readonly Stmt1[], before: boolean): boolean => {
    let written = before
    for (const s of body) {
      found ||= written && exprsOf1(s).some(uses)
      if (s.kind === 'iterate') {
        // Writes of one iteration are visible in the next.
        const writtenAgain = visit(s.body, written)
        if (writtenAgain && !written) visit(s.body, true)
        found ||= writtenAgain && s.where.some(uses)
        written = writtenAgain
      } else if (s.kind === 'if') {
        const [then, otherwise] = [visit(s.then, written), visit(s.else, written)]
        written = then || otherwise
      } else if (s.kind === 'assign' || s.kind === 'reduce') {
        written ||= s.targets.some((t) => readsSome(value, new Set([t.buffer])))
      }
    }
    return written
  }
  visit(rest, false)
  return found
}

/** Copies of values whose source memory may be written before the last use of the value. */
export class Copies {
  /** The number of loops around the current statement. */
  around = 0
  /** Global buffers that carry copies between launches. */
  readonly buffers: Buffer[] = []

  constructor(private readonly names: Names) {}

  /** Copies `value` into a register (inside loops) or a global buffer (outside), appends the store to `out`, and returns the load. */
  keep(value: Expr, base: string, out: Stmt[]): Expr {
    // Half-precision values are copied in their compute type, because only the original statement may round.
    const dtype = isHalf(value.dtype) ? computeType(value.dtype) : scalarType(value.dtype)
    const inside = this.around > 0
    const buffer = local(this.names.fresh(base), dtype, [], inside ? 'register' : 'global')
    if (inside) out.push(alloc(buffer))
    else this.buffers.push(buffer)
    out.push(store(buffer.name, [int(0)], value))
    return load(buffer.name, [int(0)], dtype)
  }

  /** Copies a launch condition that reads memory written in `body`, so that no block can change it for others. */
  decided(cond: Expr, body: readonly Stmt[], out: Stmt[]): Expr {
    return this.around === 0 && readsSome(cond, writesOf(body)) ? this.keep(cond, 'holds', out) : cond
  }
}
