/** Barriers of a block, and conditions that are uniform across its threads. */
import type { If, Stmt } from './loops.ts'
import { someStmt } from './tree.ts'

/** True if the statement contains a barrier of the whole block. */
export const hasBlockBarrier = (s: Stmt): boolean =>
  someStmt([s], (x) => x.kind === 'barrier' && x.lanes === undefined)

/** True for a condition around a barrier: it must have the same value in all threads of the block. */
export const isUniformCondition = (s: Stmt): s is If => s.kind === 'if' && hasBlockBarrier(s)
