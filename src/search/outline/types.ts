import type { DecisionValue } from '../types.ts'

/** A decision, wherever in the space it is asked for. */
export interface OutlinedDecision {
  readonly name: string
  /** What it is in some point; numbers that are ordered ascend. */
  readonly values: readonly DecisionValue[]
  /** What it can be as far as was looked, without a point that has it: of these it is not known whether there is one. */
  readonly unsure: readonly DecisionValue[]
  readonly ordered: boolean
  /** How many points have each of the values; `null` where the space was sampled. */
  readonly points: readonly number[] | null
  /** It is asked for only where each of these was decided to be one of the values. */
  readonly after: readonly { readonly name: string; readonly values: readonly DecisionValue[] }[]
}

export interface Outline {
  /** In the order in which they are asked for. */
  readonly decisions: readonly OutlinedDecision[]
  readonly points: number
  /** Whether the space was gone through; else it was sampled. */
  readonly isExact: boolean
}
