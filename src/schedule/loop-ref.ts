import { isRecord } from '../ast/expect-argument.ts'

/**
 * A loop: by the user's name (`i`, or `nest.i` where several nests have one), or, from a handle, by its
 * variable.
 */
export type LoopRef = string | LoopHandle
export interface LoopHandle {
  readonly var: string
}

export const isHandle = (x: unknown): x is LoopHandle => isRecord(x) && typeof x.var === 'string'
