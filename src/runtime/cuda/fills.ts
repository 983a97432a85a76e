/**
 * Zero-fill by a kernel, used before launches of the same run. Unlike the driver's memset, it supports overlapping launches
 * (`backends/targets/cuda/programmatic-dependent-launch.ts`) and fills several buffers at once.
 */
import type { ModuleText } from '../device.ts'
import type { Chip } from './chip.ts'
import type { CudaBuffer } from './memory.ts'
import type { ArgumentBlock } from './pack-arguments.ts'

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
