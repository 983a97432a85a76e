/**
 * Options of `devices.webgpu`. They use none of WebGPU's own types: TypeScript ships these in its DOM library from 6.0 on and
 * in a package before, and importers of this module should need neither.
 */

export interface WebGpuOptions {
  /** Preferred adapter; default `high-performance`. */
  readonly powerPreference?: 'low-power' | 'high-performance'
  /** Only a software adapter. */
  readonly forceFallbackAdapter?: boolean
  /** Further features to switch on where the adapter has them (experimental names are allowed). */
  readonly features?: readonly string[]
}

export const WEBGPU_CHOICES = ['auto', 'hardware', 'swiftshader'] as const
export type WebGpuChoice = (typeof WEBGPU_CHOICES)[number]

export interface NodeWebGpuOptions extends WebGpuOptions {
  /** Default: `SPT_WEBGPU`, else `auto`. */
  readonly choice?: WebGpuChoice
  /**
   * Bounds checks that the driver adds to every access (default: on, as in every browser). Without them a
   * kernel that reads out of range is undefined behaviour.
   */
  readonly robustness?: boolean
  /** Further Dawn toggles to enable, such as `allow_unsafe_apis`. */
  readonly toggles?: readonly string[]
}
