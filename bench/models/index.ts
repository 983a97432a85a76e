/** The models whose steps are measured; each is left out for data that does not fit it. */
import type { Command, Device } from '../../src/runtime/device.ts'
import type { DataSet } from '../verify-all/data.ts'
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

export const MODELS: Readonly<Record<string, (device: Device, set: DataSet) => Promise<Step | null>>> = {
  'graph-sage': graphSage,
  rgcn,
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
