/** Objects of the caller, without the types of WebGPU, which importers then need not have. */

/** A caller's `GPUDevice`. */
export interface GpuDeviceLike {
  readonly label: string
  readonly queue: object
  readonly limits: object
  readonly features: ReadonlySet<string>
  destroy(): void
}

/** A caller's `GPUBuffer`. */
export interface GpuBufferLike {
  readonly label: string
  readonly size: number
  readonly usage: number
  readonly mapState: string
  destroy(): void
}

/** `GPUBuffer` in programs with the types of WebGPU. */
export type OwnGpuBuffer = typeof globalThis extends { GPUBuffer: { prototype: infer B } } ? B : GpuBufferLike

/** A caller's `GPUCommandEncoder`. */
export interface GpuEncoderLike {
  readonly label: string
  beginComputePass(...descriptor: never[]): object
  clearBuffer(...range: never[]): void
}

/** Memory of a caller or of a library on the same device: a `GPUBuffer` (webgpu), an address (cuda), an `ArrayBuffer` (cpu). */
export type NativeMemory = GpuBufferLike | bigint | ArrayBuffer

/** A range of bytes in native memory. */
export interface NativeRange {
  readonly memory: NativeMemory
  readonly offset: number
  readonly bytes: number
}
