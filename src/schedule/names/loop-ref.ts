import { isRecord } from '../../ast/diagnostics/expect-argument.ts'

/**
 * A reference to a loop: the user's name (`i`, or `nest.i` if several loop nests have an `i`), or a handle with the
 * variable.
 */
export type LoopRef = string | LoopHandle
export interface LoopHandle {
  readonly var: string
}

export const isHandle = (x: unknown): x is LoopHandle => isRecord(x) && typeof x.var === 'string'
