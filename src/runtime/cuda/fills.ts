/**
 * Zeroing memory by a kernel where launches of the same run follow: unlike the driver's own fills it takes part in
 * overlapping launches (`backends/targets/cuda/programmatic-dependent-launch.ts`), and it fills several buffers at once.
 */
import type { ModuleText } from '../device.ts'
import type { Chip } from './chip.ts'
import type { CudaBuffer } from './memory.ts'
import type { ArgumentBlock } from './pack-arguments.ts'

/** Buffers that one launch fills. */
export const FILL_RANGES = 8

const THREADS = 256
/** Bytes a thread writes at once. */
const WIDTH = 16
/** Leaves half of the threads of a multiprocessor to the launch that follows. */
const BLOCKS_PER_MULTIPROCESSOR = 4

/**
 * Kernel that zero-fills; it waits first, so that overlapping launches find all earlier work finished, including that of
 * other runs. Its one argument is a structure in the slots of the argument block: addresses, then bytes.
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

/** Fills the block for at most `FILL_RANGES` buffers; gives the grid. */
export function packFill(
  block: ArgumentBlock,
  buffers: readonly Pick<CudaBuffer, 'address' | 'bytes'>[],
  chip: Pick<Chip, 'multiprocessors'>,
): readonly [number, number, number] {
  block.clear()
  let most = 0
  for (const [k, { address, bytes }] of buffers.entries()) {
    block.setPointer(k, address)
    block.setPointer(FILL_RANGES + k, BigInt(bytes))
    most = Math.max(most, bytes)
  }
  const blocks = Math.ceil(most / (THREADS * WIDTH))
  return [Math.max(1, Math.min(blocks, BLOCKS_PER_MULTIPROCESSOR * chip.multiprocessors)), buffers.length, 1]
}
