/**
 * Options of `devices.webgpu`. They do not use the types of WebGPU, so that importers need neither the DOM library (TypeScript
 * 6.0 or later) nor the package with these types (before).
 */
import { isRecord } from '../../ast/diagnostics/expect-argument.ts'
import { FLAG, oneOf, TEXT, TEXTS } from '../../ast/diagnostics/value-kinds.ts'
import type { GpuDeviceLike } from '../device.ts'

/** Uses the caller's own `GPUDevice`, with its features and limits. `dispose` leaves it intact. */
export interface SharedGpuOptions {
  readonly device: GpuDeviceLike
}

export const isShared = (options: object): options is SharedGpuOptions =>
  isRecord(options) && 'device' in options

export interface WebGpuOptions {
  /** Preferred adapter; default `high-performance`. */
  readonly powerPreference?: 'low-power' | 'high-performance'
  /** Only a software adapter. */
  readonly forceFallbackAdapter?: boolean
  /** Additional features to request if the adapter supports them (experimental names are allowed); `device.features` has the granted ones. */
  readonly features?: readonly string[]
}

/** Kinds of `WebGpuOptions`. */
export const WEBGPU_OPTIONS = {
  powerPreference: oneOf(['low-power', 'high-performance']),
  forceFallbackAdapter: FLAG,
  features: TEXTS,
} as const

export const WEBGPU_CHOICES = ['auto', 'hardware', 'swiftshader'] as const
export type WebGpuChoice = (typeof WEBGPU_CHOICES)[number]

export interface NodeWebGpuOptions extends WebGpuOptions {
  /** Default: `SPT_WEBGPU`, otherwise `auto`. */
  readonly adapter?: WebGpuChoice
  /**
   * Bounds checks that the driver adds to every access (default: on, as in browsers). Without these checks, an access out of
   * range is undefined behaviour.
   */
  readonly robustness?: boolean
  /** Additional Dawn toggles to enable, such as `allow_unsafe_apis`. */
  readonly toggles?: readonly string[]
}

/** Kinds of `NodeWebGpuOptions`. */
export const NODE_WEBGPU_OPTIONS = {
  ...WEBGPU_OPTIONS,
  adapter: TEXT,
  robustness: FLAG,
  toggles: TEXTS,
} as const
