/** The models whose steps are measured. */
import type { Command, Device } from '../../src/runtime/device.ts'
import type { DataSet } from '../verify-all/data.ts'
import { ENCODERS, type EncoderSize, encoder } from './encoder.ts'
import { EXPERTS, type ExpertsSize, experts } from './experts.ts'
import { graphSage } from './graph-sage.ts'
import { rgcn } from './rgcn.ts'

/** A bound model. */
export interface Step {
  readonly schedule: string
  readonly sizes: Readonly<Record<string, number>>
  /** Inputs, for the peer. */
  readonly arrays: Readonly<Record<string, Float32Array | Int32Array>>
  commands(): readonly Command[]
  /** Runs the step; its outputs. */
  results(): Promise<Readonly<Record<string, Float32Array>>>
  free(): void
}

/** A model, on data sets or on sizes of its own. It is left out for data that does not fit it. */
export type Case = DataSet | EncoderSize | ExpertsSize

export interface Model {
  /** Own sizes; data sets if undefined. */
  readonly sizes?: readonly Case[]
  readonly step: (device: Device, of: Case) => Promise<Step | null>
}

export const MODELS: Readonly<Record<string, Model>> = {
  'graph-sage': { step: async (device, of) => (of.kind === 'matrix' ? graphSage(device, of) : null) },
  rgcn: { step: async (device, of) => (of.kind === 'triples' ? rgcn(device, of) : null) },
  encoder: {
    sizes: ENCODERS,
    step: async (device, of) => (of.kind === 'encoder' ? encoder(device, of) : null),
  },
  experts: {
    sizes: EXPERTS,
    step: async (device, of) => (of.kind === 'experts' ? experts(device, of) : null),
  },
}

/** Uniform values in ± `scale`, the same in every run for a seed. */
export function uniform(count: number, scale: number, seed: number): Float32Array {
  let state = seed >>> 0 || 1
  return Float32Array.from({ length: count }, () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return ((state >>> 0) / 2 ** 31 - 1) * scale
  })
}
