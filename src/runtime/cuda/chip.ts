/** Properties of a CUDA device, read from the driver. */
import type { DeviceLimits } from '../device.ts'
import { type CudaDriver, invoke } from './driver.ts'
import { CUDA } from './errors.ts'

/** Numbers of a chip, in bytes for memory, by their `CUdevice_attribute`. Shared memory per block: by default, and with opt-in. */
const NUMBERS = {
  maxThreadsPerBlock: 1,
  sharedPerBlock: 8,
  warpSize: 10,
  registersPerBlock: 12,
  multiprocessors: 16,
  l2Bytes: 38,
  maxThreadsPerMultiprocessor: 39,
  major: 75,
  minor: 76,
  sharedPerMultiprocessor: 81,
  registersPerMultiprocessor: 82,
  sharedPerBlockOptin: 97,
  maxBlocksPerMultiprocessor: 106,
} as const
const BLOCK_DIM = [2, 3, 4] as const
const GRID_DIM = [5, 6, 7] as const
const CLUSTERS = 120
const TENSOR_MAPS = 127

/** Compute capability 9.0 is `{ major: 9, minor: 0 }`. */
export interface Chip extends Readonly<Record<keyof typeof NUMBERS, number>> {
  readonly ordinal: number
  readonly name: string
  readonly maxBlockDim: readonly [number, number, number]
  readonly maxGridDim: readonly [number, number, number]
  readonly memoryBytes: number
  /** Support for thread-block clusters, and for tensor maps (bulk copies of tiles). */
  readonly clusters: boolean
  readonly tensorMaps: boolean
}

export function readChip(driver: CudaDriver, ordinal: number): Chip & { readonly device: number } {
  const out = new Int32Array(1)
  invoke(driver, 'cuDeviceGet', out, ordinal)
  const device = out[0]!
  const read = (attribute: number): number => {
    invoke(driver, 'cuDeviceGetAttribute', out, attribute, device)
    return out[0]!
  }
  const three = ([x, y, z]: readonly [number, number, number]) => [read(x), read(y), read(z)] as const
  // Older drivers reject attributes that they do not have.
  const supports = (attribute: number): boolean =>
    driver.calls.cuDeviceGetAttribute(out, attribute, device) === CUDA.SUCCESS && out[0] === 1
  const name = new Uint8Array(256)
  invoke(driver, 'cuDeviceGetName', name, name.length, device)
  const bytes = new BigUint64Array(1)
  invoke(driver, 'cuDeviceTotalMem_v2', bytes, device)
  const end = name.indexOf(0)
  const numbers = Object.fromEntries(
    Object.entries(NUMBERS).map(([key, attribute]) => [key, read(attribute)]),
  ) as Record<keyof typeof NUMBERS, number>
  return {
    ...numbers,
    device,
    ordinal,
    name: new TextDecoder().decode(name.subarray(0, end < 0 ? name.length : end)),
    maxBlockDim: three(BLOCK_DIM),
    maxGridDim: three(GRID_DIM),
    sharedPerBlockOptin: Math.max(numbers.sharedPerBlock, numbers.sharedPerBlockOptin),
    memoryBytes: Number(bytes[0]!),
    clusters: supports(CLUSTERS),
    tensorMaps: supports(TENSOR_MAPS),
  }
}

/** Overlapping launches (also in graphs) need compute capability 9.0 and a driver of CUDA 12.3. */
export const canOverlap = (chip: Pick<Chip, 'major'>, driverVersion: number): boolean =>
  chip.major >= 9 && driverVersion >= 12030

const chipArch = (chip: Pick<Chip, 'major' | 'minor'>): string => `sm_${chip.major}${chip.minor}`

export function chipLimits(chip: Chip, maxArguments: number): DeviceLimits {
  return {
    maxBufferBytes: chip.memoryBytes,
    maxBindingBytes: chip.memoryBytes,
    maxBuffersPerLaunch: maxArguments,
    maxThreadsPerBlock: chip.maxThreadsPerBlock,
    maxBlockDim: chip.maxBlockDim,
    maxGridDim: chip.maxGridDim,
    maxSharedBytes: chip.sharedPerBlockOptin,
    processors: chip.multiprocessors,
  }
}

/** Capabilities under the names shared with other devices and the chip's own names, including those that declarations can require. */
export function chipFeatures(chip: Chip): ReadonlySet<string> {
  const cc = chip.major * 10 + chip.minor
  const names = ['f64', 'subgroups', `subgroup_size(${chip.warpSize})`, 'timestamp-query', chipArch(chip)]
  for (let n = 2; n <= chip.warpSize; n *= 2) names.push(`lanes(${n})`)
  if (cc >= 53) names.push('shader-f16', 'f16')
  if (cc >= 80) names.push('bf16', 'async-copy')
  if (chip.clusters) names.push('clusters')
  if (chip.tensorMaps) names.push('tensor-maps')
  return new Set(names.flatMap((f) => [f, f.replaceAll('-', '_')]))
}

export function chipFacts(chip: Chip): Record<string, string> {
  const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`
  const kib = (bytes: number): string => `${Math.round(bytes / 1024)} KiB`
  return {
    device: chip.name,
    'compute capability': `${chip.major}.${chip.minor}`,
    multiprocessors: String(chip.multiprocessors),
    memory: gib(chip.memoryBytes),
    L2: kib(chip.l2Bytes),
    'shared memory per block': `${kib(chip.sharedPerBlock)}, ${kib(chip.sharedPerBlockOptin)} by opt-in`,
  }
}
