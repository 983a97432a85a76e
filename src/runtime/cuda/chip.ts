/** Properties of a CUDA device, read from the driver. */
import type { DeviceLimits } from '../device.ts'
import { type CudaDriver, check } from './driver.ts'
import { CUDA } from './errors.ts'

export interface Chip {
  readonly ordinal: number
  readonly name: string
  /** Compute capability: 9.0 is `{ major: 9, minor: 0 }`. */
  readonly major: number
  readonly minor: number
  readonly multiprocessors: number
  readonly warpSize: number
  readonly maxThreadsPerBlock: number
  readonly maxThreadsPerMultiprocessor: number
  readonly maxBlocksPerMultiprocessor: number
  readonly maxBlockDim: readonly [number, number, number]
  readonly maxGridDim: readonly [number, number, number]
  /** Bytes of shared memory per block by default, and with opt-in. */
  readonly sharedPerBlock: number
  readonly sharedPerBlockOptin: number
  readonly sharedPerMultiprocessor: number
  readonly registersPerBlock: number
  readonly registersPerMultiprocessor: number
  readonly l2Bytes: number
  readonly memoryBytes: number
  /** Support for thread-block clusters, and for tensor maps (bulk copies of tiles). */
  readonly clusters: boolean
  readonly tensorMaps: boolean
}

/** `CUdevice_attribute`. */
const ATTRIBUTE = {
  maxThreadsPerBlock: 1,
  maxBlockDimX: 2,
  maxBlockDimY: 3,
  maxBlockDimZ: 4,
  maxGridDimX: 5,
  maxGridDimY: 6,
  maxGridDimZ: 7,
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
  clusters: 120,
  tensorMaps: 127,
} as const

export function readChip(driver: CudaDriver, ordinal: number): Chip & { readonly device: number } {
  const out = new Int32Array(1)
  check(driver, 'cuDeviceGet', driver.calls.cuDeviceGet(out, ordinal))
  const device = out[0]!
  const read = (attribute: keyof typeof ATTRIBUTE): number => {
    check(
      driver,
      'cuDeviceGetAttribute',
      driver.calls.cuDeviceGetAttribute(out, ATTRIBUTE[attribute], device),
    )
    return out[0]!
  }
  // Older drivers reject attributes that they do not have.
  const supports = (attribute: 'clusters' | 'tensorMaps'): boolean =>
    driver.calls.cuDeviceGetAttribute(out, ATTRIBUTE[attribute], device) === CUDA.SUCCESS && out[0] === 1
  const name = new Uint8Array(256)
  check(driver, 'cuDeviceGetName', driver.calls.cuDeviceGetName(name, name.length, device))
  const bytes = new BigUint64Array(1)
  check(driver, 'cuDeviceTotalMem_v2', driver.calls.cuDeviceTotalMem_v2(bytes, device))
  const end = name.indexOf(0)
  const sharedPerBlock = read('sharedPerBlock')
  return {
    device,
    ordinal,
    name: new TextDecoder().decode(name.subarray(0, end < 0 ? name.length : end)),
    major: read('major'),
    minor: read('minor'),
    multiprocessors: read('multiprocessors'),
    warpSize: read('warpSize'),
    maxThreadsPerBlock: read('maxThreadsPerBlock'),
    maxThreadsPerMultiprocessor: read('maxThreadsPerMultiprocessor'),
    maxBlocksPerMultiprocessor: read('maxBlocksPerMultiprocessor'),
    maxBlockDim: [read('maxBlockDimX'), read('maxBlockDimY'), read('maxBlockDimZ')],
    maxGridDim: [read('maxGridDimX'), read('maxGridDimY'), read('maxGridDimZ')],
    sharedPerBlock,
    sharedPerBlockOptin: Math.max(sharedPerBlock, read('sharedPerBlockOptin')),
    sharedPerMultiprocessor: read('sharedPerMultiprocessor'),
    registersPerBlock: read('registersPerBlock'),
    registersPerMultiprocessor: read('registersPerMultiprocessor'),
    l2Bytes: read('l2Bytes'),
    memoryBytes: Number(bytes[0]!),
    clusters: supports('clusters'),
    tensorMaps: supports('tensorMaps'),
  }
}

/** Overlapping launches (also in graphs) need compute capability 9.0 and a driver of CUDA 12.3. */
export const canOverlap = (chip: Pick<Chip, 'major'>, driverVersion: number): boolean =>
  chip.major >= 9 && driverVersion >= 12030

/** `sm_90`. */
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

/**
 * Capabilities under the names shared with other devices and the chip's own names, including those that declarations can
 * require.
 */
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

/** Properties of the chip for `spt doctor`. */
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
