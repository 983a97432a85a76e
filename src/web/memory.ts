/** Execution of a plan's steps in the memory of a device, after inputs are checked. */
import type { TypedArray } from '../ir/values/arrays.ts'
import type { PlanBuffer } from '../plan/schema.ts'
import type { Bound } from './inputs.ts'

/** Memory of one binding. */
export interface Memory {
  /** Copies values before it returns. */
  write(buffer: PlanBuffer, values: TypedArray): void
  read(buffer: PlanBuffer, length: number): Promise<TypedArray>
  /** Executes the steps; resolves when they have finished. */
  run(): Promise<void>
  free(): void
}

/** Memory that can be recorded and shared. */
export interface GpuMemory extends Memory {
  record(encoder: GPUCommandEncoder): void
  buffer(name: string): GPUBuffer
}

/** A plan compiled for a device. */
export type Executor = (bound: Bound) => Promise<Memory>
