import type { DecisionValue } from '../../types.ts'

/** A decision, wherever in the space it is asked for. */
export interface OutlinedDecision {
  readonly name: string
  /** Values that occur in some point; numbers that are ordered ascend. */
  readonly values: readonly DecisionValue[]
  /** Values seen without a point that contains them: there may be none. */
  readonly unconfirmed: readonly DecisionValue[]
  readonly ordered: boolean
  /** Number of points with each value; `null` if the space was sampled. */
  readonly points: readonly number[] | null
  /** It is asked for only where each of these was decided to be one of the values. */
  readonly dependsOn: readonly { readonly name: string; readonly values: readonly DecisionValue[] }[]
}

export interface Outline {
  /** Decisions in their order. */
  readonly decisions: readonly OutlinedDecision[]
  readonly points: number
  /** True if the space was enumerated; otherwise it was sampled. */
  readonly isExact: boolean
}
