/** JSON form of a shared study, complete enough for a worker on another machine to run its trials. */
import type { TraceStep } from '../../api/kernels/kernel.ts'
import type { Source } from '../../ast/diagnostics/diagnostic.ts'
import type { ComparisonFacts } from '../evaluate/test-bench.ts'
import type { Study, TrialRecord } from '../records/types.ts'
import type { Point } from '../types.ts'

/** Source of a tensor for workers. */
export type SharedInput =
  /** A file, by a path that the workers have as well. */
  | { readonly file: string }
  /** A member of a generated family, with its size and seed: `road:100000:7`. */
  | { readonly family: string }

export interface SharedProgram {
  /** Name of the program's main source. */
  readonly entry: string
  /** The main source and all that it imports. */
  readonly sources: readonly Source[]
}

export interface SharedStudy {
  /** Identity of the study, with the device and compiler of its workers. */
  readonly study: Study
  readonly program: SharedProgram
  readonly kernel: string
  readonly tensors: Readonly<Record<string, SharedInput>>
  readonly params: Readonly<Record<string, number>>
  /** Seed of the random data of unbound inputs. */
  readonly seed?: number | undefined
}

/** A trial to be evaluated. */
export interface SharedTrial {
  readonly point: Point
  /** Steps of its kernel, so workers need no space. */
  readonly trace: readonly TraceStep[]
  /** Fraction of a full measurement; default 1. Different fractions are different trials. */
  readonly share?: number | undefined
  readonly predicted?: number | undefined
  readonly terms?: Readonly<Record<string, number>> | undefined
}

/** Result of one trial; the worker adds its name and the time. */
export interface SharedResult
  extends Pick<TrialRecord, 'outcome' | 'share' | 'predicted' | 'terms' | 'duration'> {
  /** Comparison with the reference, if it was made. */
  readonly compared?: ComparisonFacts | undefined
}

/** Report that a worker sends back. */
export interface SharedReport extends SharedResult, Pick<TrialRecord, 'worker'> {
  readonly time: number
}
