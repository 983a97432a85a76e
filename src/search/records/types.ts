/** Contents of the records: studies, which define where times are valid, and their trials. */
import type { TraceStep } from '../../api/kernels/kernel.ts'
import type { DeviceKind } from '../../backends/target.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { Outcome, Trial } from '../types.ts'

/** A device as far as its times depend on it. */
export interface DeviceIdentity {
  readonly kind: DeviceKind
  /** The adapter's, chip's or processor's name. */
  readonly name: string
  readonly driver: string
}

/** Conditions under which the times of a study are valid. */
export interface StudyKey {
  /** Hash of the kernel's text at Stage I, before any step. */
  readonly kernel: string
  /** Text of the space; empty where points come from none. */
  readonly space: string
  readonly device: DeviceIdentity
  readonly compiler: string
  /** Fingerprint of the tensors (`fingerprintTensors`). */
  readonly fingerprint: string
  readonly sizes: Readonly<Record<string, number>>
}

/** Description of a study's data for display; the fingerprint identifies them. */
export interface StudyData {
  /** Name of the data: mostly their files'. */
  readonly name?: string | undefined
  readonly tensors: readonly TunedTensor[]
}

export interface TunedTensor {
  readonly name: string
  readonly shape: readonly number[]
  readonly dtype: Dtype
  /** Elements that it stores; `null` of a dense one. */
  readonly stored: number | null
}

export interface Study extends StudyKey {
  /** Hash of the key (`studyId`). */
  readonly id: string
  readonly kernelName: string
  /** Strategy and seed of the first search; later searches of the study may use others. */
  readonly strategy?: string | undefined
  readonly seed?: number | undefined
  readonly data?: StudyData | undefined
  /** Milliseconds since 1970. */
  readonly created: number
}

export interface TrialRecord extends Trial {
  readonly study: string
  /** Schedule steps in the syntax of the language; absent if a step was rejected. */
  readonly steps?: readonly string[] | undefined
  readonly trace?: readonly TraceStep[] | undefined
  /** Bytes on the device. */
  readonly bytes?: number | undefined
  /** Largest |x - r| / max(|r|, scale of r) of its outputs, and whether a sample of them was compared or all. */
  readonly relativeError?: number | undefined
  readonly sampled?: boolean | undefined
  /** Expected work of its kernel on the data, by the terms of the cost model (`spt calibrate --train`). */
  readonly terms?: Readonly<Record<string, number>> | undefined
  /** Milliseconds that it took, with all that was done before it was measured. */
  readonly duration?: number | undefined
  /** Worker that measured the trial. */
  readonly worker?: string | undefined
  /** When it ended, in milliseconds since 1970; default: when it is added. */
  readonly time?: number | undefined
}

/** Facts about an evaluated point besides its outcome. */
export type TrialFacts = Pick<TrialRecord, 'bytes' | 'relativeError' | 'sampled' | 'duration' | 'worker'>

/** A trial as it is kept. */
export interface StoredTrial extends TrialRecord {
  /** Hash of the study's and the point (`trialId`). */
  readonly id: string
  readonly time: number
}

export type Status = Outcome['status']
export const STATUSES = [
  'rejected',
  'failed',
  'wrong',
  'bounded',
  'measured',
] as const satisfies readonly Status[]

/** Conditions that all hold. */
export interface RecordFilter {
  /** Prefix of the trial's id. */
  readonly id?: string | undefined
  readonly studies?: readonly string[] | undefined
  /** The kernel's name or its hash. */
  readonly kernel?: string | undefined
  /** The device's kind or name. */
  readonly device?: string | undefined
  readonly compiler?: string | undefined
  readonly fingerprint?: string | undefined
  /** Under any space, these steps and no others. */
  readonly trace?: readonly TraceStep[] | undefined
  readonly status?: Status | readonly Status[] | undefined
  /** Trials that ended then or later, in milliseconds since 1970. */
  readonly since?: number | undefined
  /** Maximum number of results. */
  readonly limit?: number | undefined
}

export interface PruneOptions {
  /** Trials before that, in milliseconds since 1970. */
  readonly olderThan?: number | undefined
  /** Number of fastest trials of each study that are kept; without `olderThan`, all others are removed. */
  readonly keepBest?: number | undefined
  /** Ids of the studies to prune; without another option, they are removed completely. */
  readonly studies?: readonly string[] | undefined
}

/** A study with its trials counted. */
export interface StudySummary extends Study {
  readonly trials: Readonly<Record<Status, number>>
  /** Milliseconds of the fastest. */
  readonly best: number | null
  /** When its latest trial ended. */
  readonly latest: number | null
}
