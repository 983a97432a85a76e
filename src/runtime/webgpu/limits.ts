/** Limits and features requested from an adapter, and those that its device offers. */
import type { DeviceLimits } from '../device.ts'

/** Limits relevant for compute; each is raised to the adapter's. */
const WANTED = [
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

/** Features that are switched on where the adapter has them. */
const USEFUL = ['shader-f16', 'subgroups', 'timestamp-query'] as const

/** The largest limits an adapter grants, by name. */
export function adapterLimits(adapter: GPUAdapter): Record<string, number> {
  const limits: Record<string, number> = {}
  for (const name of WANTED) {
    const value: number | undefined = adapter.limits[name]
    if (value !== undefined) limits[name] = value
  }
  return limits
}

/** The useful features, and `extra` ones (experimental names among them), that the adapter offers. */
export function adapterFeatures(adapter: GPUAdapter, extra: readonly string[]): GPUFeatureName[] {
  return [...new Set<string>([...USEFUL, ...extra])].filter((f) =>
    adapter.features.has(f),
  ) as GPUFeatureName[]
}

/** Capabilities that declarations can require: the device's features, under their WGSL names too, and its properties. */
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

/** A product of subgroup matrices that a device has (Dawn; experimental). */
interface MatrixConfig {
  readonly M: number
  readonly N: number
  readonly K: number
  readonly componentType: string
  readonly resultComponentType: string
}

/** Buffers are rounded up to this many bytes. */
export const BUFFER_ALIGN = 16
const wholeBuffers = (bytes: number): number => bytes - (bytes % BUFFER_ALIGN)

/** A device's limits in the runtime's terms. */
export function deviceLimits(limits: GPUSupportedLimits): DeviceLimits {
  const grid = limits.maxComputeWorkgroupsPerDimension
  return {
    maxBufferBytes: wholeBuffers(limits.maxBufferSize),
    maxBindingBytes: wholeBuffers(limits.maxStorageBufferBindingSize),
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

/** A readable name: the first known of device, architecture and vendor, then the driver. */
export function adapterName(info: GPUAdapterInfo): string {
  const chip = [info.device, [info.vendor, info.architecture].filter(Boolean).join(' ')]
    .map((s) => s.replace(/^[-\s]+|[-\s]+$/g, ''))
    .find((s) => s.length > 0)
  const driver = info.description.trim()
  if (chip === undefined) return driver || 'WebGPU adapter'
  return driver && driver !== chip ? `${chip} (${driver})` : chip
}
