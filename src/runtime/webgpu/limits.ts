/** Limits and features requested from an adapter, and those that its device offers. */
import type { DeviceLimits } from '../device.ts'

/** Limits relevant for compute, which are requested at the adapter's maximum. */
const REQUESTED_LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxUniformBufferBindingSize',
  'maxBindingsPerBindGroup',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupSizeY',
  'maxComputeWorkgroupSizeZ',
  'maxComputeWorkgroupsPerDimension',
] as const

/** Features that are requested if the adapter supports them. */
const REQUESTED_FEATURES = ['shader-f16', 'subgroups', 'timestamp-query'] as const

/** Maximum limits of an adapter by name. */
export function adapterLimits(adapter: GPUAdapter): Record<string, number> {
  const limits: Record<string, number> = {}
  for (const name of REQUESTED_LIMITS) {
    const value: number | undefined = adapter.limits[name]
    if (value !== undefined) limits[name] = value
  }
  return limits
}

/** Requested features, and `extra` features (including experimental ones), that the adapter supports. */
export function adapterFeatures(adapter: GPUAdapter, extra: readonly string[]): GPUFeatureName[] {
  return [...new Set<string>([...REQUESTED_FEATURES, ...extra])].filter((f) =>
    adapter.features.has(f),
  ) as GPUFeatureName[]
}

/** Capabilities that declarations can require: features (also under their WGSL names) and properties of the device. */
export function capabilities(
  features: ReadonlySet<string>,
  info: GPUAdapterInfo & { readonly subgroupMatrixConfigs?: readonly MatrixConfig[] },
  lanes: number,
): ReadonlySet<string> {
  const out = new Set(features)
  for (const f of features) out.add(f.replaceAll('-', '_'))
  if (features.has('shader-f16')) out.add('f16')
  for (let n = 2; n <= lanes; n *= 2) out.add(`lanes(${n})`)
  if (features.has('subgroups') && info.subgroupMinSize === info.subgroupMaxSize)
    out.add(`subgroup_size(${info.subgroupMinSize})`)
  if (features.has('chromium-experimental-subgroup-matrix'))
    for (const { M, N, K, componentType, resultComponentType } of info.subgroupMatrixConfigs ?? [])
      out.add(`subgroup_matrix(${[M, N, K, componentType, resultComponentType].join(', ')})`)
  return out
}

/** A supported product of subgroup matrices (Dawn; experimental). */
interface MatrixConfig {
  readonly M: number
  readonly N: number
  readonly K: number
  readonly componentType: string
  readonly resultComponentType: string
}

/** Buffers are rounded up to this many bytes. */
export const BUFFER_ALIGN = 16
const roundDown = (bytes: number): number => bytes - (bytes % BUFFER_ALIGN)

/** A device's limits in the runtime's terms. */
export function deviceLimits(limits: GPUSupportedLimits): DeviceLimits {
  const grid = limits.maxComputeWorkgroupsPerDimension
  return {
    maxBufferBytes: roundDown(limits.maxBufferSize),
    maxBindingBytes: roundDown(limits.maxStorageBufferBindingSize),
    maxBuffersPerLaunch: limits.maxStorageBuffersPerShaderStage,
    maxThreadsPerBlock: limits.maxComputeInvocationsPerWorkgroup,
    maxBlockDim: [
      limits.maxComputeWorkgroupSizeX,
      limits.maxComputeWorkgroupSizeY,
      limits.maxComputeWorkgroupSizeZ,
    ],
    maxGridDim: [grid, grid, grid],
    maxSharedBytes: limits.maxComputeWorkgroupStorageSize,
  }
}

/** Display name: the first available of device, architecture and vendor, then the driver. */
export function adapterName(info: GPUAdapterInfo): string {
  const chip = [info.device, [info.vendor, info.architecture].filter(Boolean).join(' ')]
    .map((s) => s.replace(/^[-\s]+|[-\s]+$/g, ''))
    .find((s) => s.length > 0)
  const driver = info.description.trim()
  if (chip === undefined) return driver || 'WebGPU adapter'
  return driver && driver !== chip ? `${chip} (${driver})` : chip
}
