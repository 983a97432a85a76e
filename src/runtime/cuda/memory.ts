/** Device memory: allocation, accounting, and range checks. */
import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import type { DeviceBuffer, DeviceLimits, ModuleText, NativeRange } from '../device.ts'
import { checkAlloc, checkBuffer, failForeignBuffer } from '../device-checks.ts'
import type { Chip } from './chip.ts'
import { type CudaDriver, check } from './driver.ts'
import { CUDA, outOfMemory } from './errors.ts'
import type { ArgumentBlock } from './pack-arguments.ts'

/** Allocation size of empty buffers, which gives every buffer a distinct address. */
const EMPTY_BYTES = 256

/** `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`. */
const DEVICE_ORDINAL = 9
/** Kernels may read 16 bytes at once. */
const ADDRESS_ALIGN = 16

export class CudaBuffer implements DeviceBuffer {
  freed = false

  constructor(
    readonly owner: CudaMemory,
    readonly bytes: number,
    readonly label: string,
    readonly address: bigint,
    private readonly release: (buffer: CudaBuffer) => void,
    /** False for memory of the caller. */
    readonly isOwn = true,
  ) {}

  free(): void {
    if (!this.freed) this.release(this)
  }
}

export class CudaMemory {
  readonly live = new Set<CudaBuffer>()
  allocated = 0

  constructor(
    private readonly driver: CudaDriver,
    private readonly limits: DeviceLimits,
    /** Number of the device. */
    private readonly device: number,
  ) {}

  /** Allocates a buffer. The context must be current. @throws SptError `device/out-of-memory`, `device/buffer-too-large` */
  alloc(bytes: number, label: string, release: (buffer: CudaBuffer) => void): CudaBuffer {
    checkAlloc(bytes, label, this.limits)
    const out = new BigUint64Array(1)
    const code = this.driver.calls.cuMemAlloc_v2(out, Math.max(bytes, EMPTY_BYTES))
    if (code === CUDA.OUT_OF_MEMORY) throw outOfMemory(this.state(bytes, label))
    check(this.driver, 'cuMemAlloc_v2', code)
    const buffer = new CudaBuffer(this, bytes, label, out[0]!, release)
    this.live.add(buffer)
    this.allocated += bytes
    return buffer
  }

  /**
   * A buffer in the caller's memory. The context must be current.
   * @throws SptError `api/argument`, `device/range`, `device/foreign-buffer`
   */
  wrap(
    { memory, offset, bytes }: NativeRange,
    label: string,
    release: (buffer: CudaBuffer) => void,
  ): CudaBuffer {
    const call = `wrap ${label}`
    expectArgument(typeof memory === 'bigint', `the memory of ${label}`, memory, 'a device address: a bigint')
    checkAlloc(bytes, label, this.limits)
    expectArgument(
      Number.isSafeInteger(offset) && offset >= 0,
      `the offset of ${label}`,
      offset,
      'an integer from 0 on',
    )
    const address = (memory as bigint) + BigInt(offset)
    const { calls } = this.driver
    const [ordinal, start, size] = [new Int32Array(1), new BigUint64Array(1), new BigUint64Array(1)]
    const isKnown = calls.cuPointerGetAttribute(ordinal, DEVICE_ORDINAL, address) === CUDA.SUCCESS
    const isOurs = isKnown && ordinal[0] === this.device
    const buffer = new CudaBuffer(this, bytes, label, address, release, false)
    if (!isOurs || calls.cuMemGetAddressRange_v2(start, size, address) !== CUDA.SUCCESS)
      failForeignBuffer(buffer, call)
    const end = start[0]! + size[0]!
    if (address % BigInt(ADDRESS_ALIGN) !== 0n || address + BigInt(bytes) > end)
      failAs('device/range', {
        message: `${label} needs ${bytes} bytes from address ${address} on, and the allocation ends at ${end}`,
        expected: `a range within the allocation, at a multiple of ${ADDRESS_ALIGN} bytes`,
      })
    this.live.add(buffer)
    return buffer
  }

  /** The buffer behind a handle. @throws SptError `device/freed-buffer`, `device/foreign-buffer` */
  resolve(buffer: DeviceBuffer, call: string): CudaBuffer {
    checkBuffer(buffer, this, call)
    return buffer as CudaBuffer
  }

  /** Frees the buffer; returns the driver's result code. */
  free(buffer: CudaBuffer): number {
    buffer.freed = true
    this.live.delete(buffer)
    if (!buffer.isOwn) return CUDA.SUCCESS
    this.allocated -= buffer.bytes
    return this.driver.calls.cuMemFree_v2(buffer.address)
  }

  state(requested: number, label: string) {
    const [free, total] = [new BigUint64Array(1), new BigUint64Array(1)]
    const isKnown = this.driver.calls.cuMemGetInfo_v2(free, total) === CUDA.SUCCESS
    return {
      requested,
      label,
      free: isKnown ? Number(free[0]!) : 0,
      total: isKnown ? Number(total[0]!) : this.limits.maxBufferBytes,
      allocated: this.allocated,
    }
  }
}

/** Allocates host memory for a download. @throws SptError `device/out-of-memory` */
export function allocHost(bytes: number, label: string): ArrayBuffer {
  try {
    return new ArrayBuffer(bytes)
  } catch {
    failWith('device/out-of-memory', `no host memory for the ${bytes} bytes of '${label}'`, {
      hint: 'download a part of the buffer, or use a machine with more memory',
    })
  }
}

// Zero-fill by a kernel, used before launches of the same run. Unlike the driver's memset, it supports
// overlapping launches (`backends/targets/cuda/programmatic-dependent-launch.ts`) and fills several buffers
// at once.

/** Maximum number of buffers that one launch fills. */
export const FILL_RANGES = 8

const THREADS = 256
/** Bytes a thread writes at once. */
const WIDTH = 16
/** Leaves half of the threads of an SM to the next launch. */
const BLOCKS_PER_MULTIPROCESSOR = 4

/**
 * Zero-fill kernel. It first waits for all earlier work, including other runs, so that overlapping launches may follow. Its
 * argument is a structure in the slots of the argument block: addresses, then sizes in bytes.
 */
export const FILL: ModuleText & { readonly name: 'fill_zero' } = {
  target: 'cuda',
  name: 'fill_zero',
  text: `struct Ranges {
  unsigned char* at[${FILL_RANGES}];
  unsigned long long bytes[${FILL_RANGES}];
};

extern "C" __global__ void __launch_bounds__(${THREADS}) fill_zero(const __grid_constant__ Ranges ranges) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  unsigned char* const at = ranges.at[blockIdx.y];
  const unsigned long long bytes = ranges.bytes[blockIdx.y];
  const unsigned long long thread = blockIdx.x * ${THREADS}ull + threadIdx.x;
  const unsigned long long whole = bytes / ${WIDTH};
  #pragma unroll 4
  for (unsigned long long k = thread; k < whole; k += gridDim.x * ${THREADS}ull)
    ((uint4*)at)[k] = make_uint4(0, 0, 0, 0);
  if (thread < bytes % ${WIDTH}) at[whole * ${WIDTH} + thread] = 0;
}
`,
  entries: [{ name: 'fill_zero', args: [], block: [THREADS, 1, 1], sharedBytes: 0, waits: true }],
}

/** Packs the arguments for at most `FILL_RANGES` buffers; returns the grid. */
export function packFill(
  block: ArgumentBlock,
  buffers: readonly Pick<CudaBuffer, 'address' | 'bytes'>[],
  chip: Pick<Chip, 'multiprocessors'>,
): readonly [number, number, number] {
  block.clear()
  let largest = 0
  for (const [k, { address, bytes }] of buffers.entries()) {
    block.setPointer(k, address)
    block.setPointer(FILL_RANGES + k, BigInt(bytes))
    largest = Math.max(largest, bytes)
  }
  const blocks = Math.ceil(largest / (THREADS * WIDTH))
  return [Math.max(1, Math.min(blocks, BLOCKS_PER_MULTIPROCESSOR * chip.multiprocessors)), buffers.length, 1]
}
