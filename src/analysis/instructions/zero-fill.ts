/**
 * Zero-filling copies. Beyond the edges of a matrix, the device fills a box with zeros (PTX ISA, copies of tensors), so
 * that all of the box is written; in a stored box, elements beyond the edges are skipped. Other copies have one
 * condition for all of their elements (`filled`: source sizes of asynchronous copies).
 */
import { conjuncts, type Expr, type Load, lt } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, mentionsSome, someExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import type { Buffer, For, Stmt, Store } from '../../ir/statements/loops.ts'
import { boundKey } from '../integers/linear.ts'
import { type Around, type Mismatch, no } from './operands.ts'

/** A store under the conditions `where`; if one fails, zero is stored to the element. */
export interface Filled {
  readonly store: Store
  readonly where: readonly Expr[]
}

export function filled(s: Stmt): Filled | undefined {
  if (s.kind !== 'if' || s.then.length !== 1 || s.else.length !== 1) return undefined
  const [store, zero] = [s.then[0]!, s.else[0]!]
  if (store.kind !== 'store' || zero.kind !== 'store' || store.buffer !== zero.buffer) return undefined
  const same = store.index.every((e, k) => keyOf(e) === keyOf(zero.index[k]!))
  const isZero = zero.value.kind === 'const' && Object.is(zero.value.value, 0)
  return same && isZero ? { store, where: conjuncts(s.cond) } : undefined
}

/** Returns whether the instruction stores to a box of a matrix, of which it skips elements beyond the edges. */
export const storesBox = (instr: Instr): boolean =>
  instr.operands.some((o) => o.mapped !== undefined && o.mode === 'write')

/**
 * Checks the conditions of a copy: the conditions have one value for all copied elements, or are the bounds of the
 * matrix, beyond which its box has zeros.
 */
export function fillProblem(
  instr: Instr,
  loops: readonly For[],
  operands: ReadonlyMap<string, Load>,
  where: readonly Expr[],
  around: Around,
): Mismatch | undefined {
  if (where.length === 0) return undefined
  if (instr.filled) {
    const by = where.find((g) => loops.some((l) => mentions(g, l.var)))
    if (!by) return undefined
    return no(
      'schedule/guarded',
      `${printExpr(by)} decides which of the elements that are copied together are there`,
      {
        expected: 'conditions with one value for the whole tile',
        hint: 'split the loops so that each copy has only elements that exist under the same condition',
      },
    )
  }
  const box = instr.operands.find((o) => o.mapped)
  const l = box && operands.get(box.name)
  const b = l && around.buffer(l.buffer)
  if (!b || instr.body.kind !== 'store')
    return no(
      'schedule/guarded',
      `not all elements are copied, only where ${where.map((g) => printExpr(g)).join(' and ')}`,
      {
        expected:
          'a copy without conditions, of a box of a matrix, which is zero outside the matrix, or by an instruction with a filled text',
        hint: 'require that the tiles divide the sizes',
      },
    )
  const limits = limitsOf(b, l)
  const known = new Set(limits.map(boundKey))
  const other = where.find((g) => !known.has(boundKey(g)))
  if (other)
    return no(
      'schedule/guarded',
      `${printExpr(other)} decides which elements are copied, and is not an edge of ${b.name}, beyond which boxes ${box.mode === 'write' ? 'are not stored' : 'have zeros'}`,
      {
        expected: limits.map((g) => printExpr(g)).join(' or '),
        hint: 'require that the tiles divide the sizes',
      },
    )
  return undefined
}

/**
 * Returns the bounds of columns and rows of a matrix. Rows are all dimensions but the last. Of these dimensions, only
 * the first can exceed the matrix, because each other dimension continues in the matrix's next row.
 */
const limitsOf = (b: Buffer, l: Load): readonly Expr[] => [
  lt(l.index[0]!, b.shape[0]!),
  lt(l.index.at(-1)!, b.shape.at(-1)!),
]

/**
 * Returns a read in an index that the conditions may protect, because the box is accessed even if they fail; undefined
 * if there is no such read. (For use before lowering, which reads addresses ahead of their use.)
 */
export function protectedRead(index: readonly Expr[], where: readonly Expr[]): Expr | undefined {
  const isRead = (e: Expr): boolean => e.kind === 'load' || e.kind === 'search'
  const reads = (g: Expr, key: string): boolean => someExpr(g, (y) => isRead(y) && keyOf(y) === key)
  let found: Expr | undefined
  for (const e of index)
    someExpr(e, (x) => {
      if (!isRead(x)) return false
      const [key, names] = [keyOf(x), freeVars(x)]
      if (where.some((g) => !reads(g, key) && mentionsSome(g, names))) found ??= x
      return found !== undefined
    })
  return found
}
