/** Limits and features requested from an adapter, and those that its device offers. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
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

export function adapterLimits(adapter: GPUAdapter): Record<string, number> {
  const limits: Record<string, number> = {}
  for (const name of REQUESTED_LIMITS) {
    const value: number | undefined = adapter.limits[name]
    if (value !== undefined) limits[name] = value
  }
  return limits
}

/** Further features of WebGPU, which an adapter may lack. */
const OTHER_FEATURES = [
  'bgra8unorm-storage',
  'clip-distances',
  'core-features-and-limits',
  'depth-clip-control',
  'depth32float-stencil8',
  'dual-source-blending',
  'float32-blendable',
  'float32-filterable',
  'indirect-first-instance',
  'primitive-index',
  'rg11b10ufloat-renderable',
  'texture-component-swizzle',
  'texture-compression-astc',
  'texture-compression-astc-sliced-3d',
  'texture-compression-bc',
  'texture-compression-bc-sliced-3d',
  'texture-compression-etc2',
  'texture-formats-tier1',
  'texture-formats-tier2',
] as const

/**
 * Requested features, and `extra` features (including experimental ones), that the adapter supports. Throws SptError `api/argument` for
 * names that WebGPU does not have.
 */
export function adapterFeatures(adapter: GPUAdapter, extra: readonly string[]): GPUFeatureName[] {
  const candidates = [...new Set<string>([...REQUESTED_FEATURES, ...OTHER_FEATURES, ...adapter.features])]
  const name = extra.find((f) => !candidates.includes(f) && !f.includes('experimental'))
  if (name !== undefined)
    failWith('api/argument', `WebGPU has no feature ${name}`, {
      lookup: { name, candidates },
      expected: 'names of WebGPU features, such as shader-f16',
    })
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

// Measures which threads of a block can exchange registers. WebGPU guarantees a minimum subgroup size, but
// not which threads form a subgroup, so the device runs test exchanges in blocks of several shapes.

/** Largest group of consecutive threads that is tested for register exchange. */
const MAX_LANES = 32
const SHAPES = [
  [64, 1, 1],
  [8, 8, 1],
  [16, 4, 1],
  [4, 2, 8],
  [32, 2, 1],
] as const
const THREADS = 64
const STEPS = Math.log2(MAX_LANES)

/**
 * Number of consecutive aligned threads that can exchange registers in every kernel: a power of two, at most the smallest
 * subgroup size; 1 without subgroups or if threads are numbered in another order.
 */
export async function lanesOf(device: GPUDevice, smallest: number | undefined): Promise<number> {
  if (!device.features.has('subgroups') || smallest === undefined) return 1
  const bytes = SHAPES.length * THREADS * STEPS * 4
  const output = device.createBuffer({ size: bytes, usage: GPU_STORAGE | GPU_COPY_SRC })
  const staging = device.createBuffer({ size: bytes, usage: GPU_MAP_READ | GPU_COPY_DST })
  device.pushErrorScope('validation')
  try {
    const encoder = device.createCommandEncoder()
    for (const [k, shape] of SHAPES.entries()) {
      const module = device.createShaderModule({ code: shaderSource(shape, k) })
      const pipeline = device.createComputePipeline({
        layout: 'auto',
        compute: { module, entryPoint: 'ask' },
      })
      const group = device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: { buffer: output } }],
      })
      const pass = encoder.beginComputePass()
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, group)
      pass.dispatchWorkgroups(1)
      pass.end()
    }
    encoder.copyBufferToBuffer(output, 0, staging, 0, bytes)
    device.queue.submit([encoder.finish()])
    const error = device.popErrorScope()
    await staging.mapAsync(GPU_READ)
    if (await error) return 1
    return lanesFromExchanges(new Uint32Array(staging.getMappedRange().slice(0)), smallest)
  } catch {
    // If the test fails, kernels on this device do not exchange registers.
    return 1
  } finally {
    output.destroy()
    staging.destroy()
  }
}

const [GPU_MAP_READ, GPU_COPY_SRC, GPU_COPY_DST, GPU_STORAGE] = [1, 4, 8, 128]
const GPU_READ = 1

/** Shader that stores, for each thread and step, the index of the thread that it exchanges with. */
const shaderSource = ([x, y, z]: (typeof SHAPES)[number], shapeIndex: number): string => `enable subgroups;
@group(0) @binding(0) var<storage, read_write> seen: array<u32>;
@compute @workgroup_size(${x}, ${y}, ${z})
fn ask(@builtin(local_invocation_index) own: u32) {
${Array.from({ length: STEPS }, (_, k) => `  seen[${shapeIndex * THREADS * STEPS + k}u + own * ${STEPS}u] = subgroupShuffleXor(own, ${2 ** k}u);`).join('\n')}
}`

/** Number of lanes from the partners that were measured. @param partners - By shape, thread and step */
export function lanesFromExchanges(partners: Uint32Array, smallest: number): number {
  let lanes = 1
  for (let k = 0; 2 * lanes <= Math.min(MAX_LANES, smallest); k++) {
    for (let thread = 0; thread < SHAPES.length * THREADS; thread++)
      if (partners[thread * STEPS + k] !== ((thread % THREADS) ^ lanes)) return lanes
    lanes *= 2
  }
  return lanes
}
