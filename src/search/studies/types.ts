/** What a shared study carries, so that a worker on another machine can do its trials. All of it is JSON. */
import type { TraceStep } from '../../api/kernel.ts'
import type { Source } from '../../ast/diagnostic.ts'
import type { Compared } from '../evaluate/test-bench.ts'
import type { Study, TrialRecord } from '../records/types.ts'
import type { Point } from '../types.ts'

/** Where a worker gets a tensor from. */
export type SharedInput =
  /** A file, by a path that the workers have as well. */
  | { readonly file: string }
  /** A member of a generated family, with its size and seed: `road:100000:7`. */
  | { readonly family: string }

export interface SharedProgram {
  /** The name of its own text. */
  readonly entry: string
  /** That text and all that it imports. */
  readonly sources: readonly Source[]
}

export interface SharedStudy {
  /** What its times hold for: its device and compiler are those of the workers that do it. */
  readonly study: Study
  readonly program: SharedProgram
  readonly kernel: string
  readonly tensors: Readonly<Record<string, SharedInput>>
  readonly params: Readonly<Record<string, number>>
  /** Of the random data of what has no input. */
  readonly seed?: number | undefined
}

/** A trial that is to be done. */
export interface SharedTrial {
  readonly point: Point
  /** Its kernel's steps: workers need no space. */
  readonly trace: readonly TraceStep[]
  /** Of a usual measurement's effort; 1. With another share it is another trial. */
  readonly share?: number | undefined
  readonly predicted?: number | undefined
  readonly terms?: Readonly<Record<string, number>> | undefined
}

/** What came of one; the worker adds who did it, and when. */
export interface SharedResult
  extends Pick<TrialRecord, 'outcome' | 'share' | 'predicted' | 'terms' | 'duration'> {
  /** How it compares with the reference, where that is known. */
  readonly compared?: Compared | undefined
}

/** What a worker sends back. */
export interface SharedReport extends SharedResult, Pick<TrialRecord, 'worker'> {
  readonly time: number
}
