/** Where all threads of a block meet, and conditions that they agree on. */
import type { If, Stmt } from './loops.ts'
import { someStmt } from './tree.ts'

/** Whether there is a barrier of the block inside. */
export const meets = (s: Stmt): boolean => someStmt([s], (x) => x.kind === 'barrier' && x.lanes === undefined)

/** A condition that they meet under: so they agree on it, whatever it says. */
export const isAgreed = (s: Stmt): s is If => s.kind === 'if' && meets(s)
