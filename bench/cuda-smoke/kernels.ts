/** The kernels of the CUDA smoke test, as a backend would print them. */
import type { Dtype } from '../../src/ir/values/dtype.ts'
import type { Entry, HostArray, ModuleText } from '../../src/runtime/device.ts'

type Args = readonly (readonly [name: string, dtype: Dtype, kind: 'in' | 'out' | 'scalar'])[]

function moduleOf(
  name: string,
  args: Args,
  text: string,
  block: Entry['block'] = [256, 1, 1],
  sharedBytes = 0,
): ModuleText {
  const entry: Entry = {
    name,
    block,
    sharedBytes,
    args: args.map(([arg, dtype, kind]) =>
      kind === 'scalar'
        ? { kind, name: arg, dtype }
        : { kind: 'buffer', name: arg, dtype, access: kind === 'in' ? 'read' : 'read_write' },
    ),
  }
  return { target: 'cuda', name, text, entries: [entry] }
}

/** The launch may begin before the one before it has finished. */
const early = (text: ModuleText): ModuleText => ({
  ...text,
  entries: text.entries.map((e) => ({ ...e, waits: true })),
})

/** Each element goes `stride` places on and grows by one; a block in seven is late. */
const relay = (name: string, waits: boolean): ModuleText =>
  early(
    moduleOf(
      name,
      [
        ['x', 'i32', 'in'],
        ['y', 'i32', 'out'],
        ['n', 'i32', 'scalar'],
        ['stride', 'i32', 'scalar'],
      ],
      `extern "C" __global__ void ${name}(const int* x, int* y, int n, int stride) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
${waits ? '  asm volatile("griddepcontrol.wait;" ::: "memory");\n' : ''}#endif
  const long long start = clock64();
  if (blockIdx.x % 7 == 3) while (clock64() - start < 4000);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[(i + stride) % n] = x[i] + 1;
}
`,
    ),
  )

const INDEX = 'const int i = blockIdx.x * blockDim.x + threadIdx.x;'
export const SCALARS: readonly (readonly [Dtype, string, number])[] = [
  ['i32', 'int', -2147483648],
  ['u32', 'unsigned', 4294967295],
  ['f32', 'float', -1.5],
  ['f64', 'double', 1 / 3],
  ['f16', 'float', 0.25],
  ['bf16', 'float', -3],
  ['i8', 'int', -128],
  ['u8', 'int', 255],
  ['bool', 'int', 1],
]
export const TYPES: readonly (readonly [Dtype, string, HostArray])[] = [
  ['f64', 'double', Float64Array.of(1 / 3, -0, 2 ** 60)],
  ['f32', 'float', Float32Array.of(0.1, -2, Infinity)],
  ['f16', '__half', Uint16Array.of(0x3c00, 0xc000, 0x7c00)],
  ['bf16', '__nv_bfloat16', Uint16Array.of(0x3f80, 0xc000, 0x7f80)],
  ['i32', 'int', Int32Array.of(1, -2, 2147483647)],
  ['u32', 'unsigned', Uint32Array.of(1, 2, 4294967295)],
  ['i8', 'signed char', Int8Array.of(1, -128, 127)],
  ['u8', 'unsigned char', Uint8Array.of(1, 128, 255)],
  ['bool', 'bool', Uint8Array.of(1, 0, 1)],
]

export const KERNELS = {
  scale: moduleOf(
    'scale',
    [
      ['x', 'f32', 'in'],
      ['y', 'f32', 'out'],
      ['n', 'i32', 'scalar'],
      ['a', 'f32', 'scalar'],
    ],
    `extern "C" __global__ void scale(const float* __restrict__ x, float* __restrict__ y, int n, float a) {
  ${INDEX}
  if (i < n) y[i] = a * x[i];
}
`,
  ),
  sum: moduleOf(
    'sum',
    [
      ['x', 'f32', 'in'],
      ['y', 'f32', 'out'],
      ['n', 'i32', 'scalar'],
    ],
    `extern "C" __global__ void sum(const float* x, float* y, int n) {
  __shared__ float tile[256];
  ${INDEX}
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int w = 128; w > 0; w /= 2) {
    if (threadIdx.x < w) tile[threadIdx.x] += tile[threadIdx.x + w];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(y, tile[0]);
}
`,
  ),
  scalars: moduleOf(
    'scalars',
    [['y', 'f64', 'out'], ...SCALARS.map(([d], k) => [`s${k}`, d, 'scalar'] as const)],
    `extern "C" __global__ void scalars(double* y, ${SCALARS.map(([, c], k) => `${c} s${k}`).join(', ')}) {
${SCALARS.map((_, k) => `  y[${k}] = s${k};`).join('\n')}
}
`,
    [1, 1, 1],
  ),
  types: moduleOf(
    'types',
    TYPES.flatMap(([d]) => [[`${d}_x`, d, 'in'] as const, [`${d}_y`, d, 'out'] as const]),
    `#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void types(${TYPES.map(([d, c]) => `const ${c}* ${d}_x, ${c}* ${d}_y`).join(', ')}) {
  const int i = threadIdx.x;
${TYPES.map(([d]) => `  ${d}_y[i] = ${d}_x[i];`).join('\n')}
}
`,
    [3, 1, 1],
  ),
  reverse: moduleOf(
    'reverse',
    [
      ['x', 'f32', 'in'],
      ['y', 'f32', 'out'],
      ['n', 'i32', 'scalar'],
    ],
    `extern "C" __global__ void reverse(const float* x, float* y, int n) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = tile[n - 1 - i];
}
`,
    [256, 1, 1],
    160 * 1024,
  ),
  wide: moduleOf(
    'wide',
    [['y', 'f32', 'out']],
    `extern "C" __global__ void wide(float* y) {
  __shared__ float tile[24 * 1024];
  for (int i = threadIdx.x; i < 24 * 1024; i += blockDim.x) tile[i] = i;
  __syncthreads();
  for (int i = threadIdx.x; i < 24 * 1024; i += blockDim.x) y[i] = tile[24 * 1024 - 1 - i];
}
`,
  ),
  step: moduleOf(
    'step',
    [
      ['y', 'i32', 'out'],
      ['k', 'i32', 'scalar'],
    ],
    `extern "C" __global__ void step(int* y, int k) { if (*y == k) *y = k + 1; }\n`,
    [1, 1, 1],
  ),
  grid: moduleOf(
    'grid',
    [['y', 'i32', 'out']],
    `extern "C" __global__ void grid(int* y) {
  const int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int n = b * blockDim.x * blockDim.y * blockDim.z + t;
  y[n] = n;
}
`,
    [2, 3, 4],
  ),
  spin: moduleOf(
    'spin',
    [
      ['y', 'i32', 'out'],
      ['ms', 'i32', 'scalar'],
    ],
    `extern "C" __global__ void spin(int* y, int ms) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); } while (now - start < ms * 1000000ull);
  *y = ms;
}
`,
    [1, 1, 1],
  ),
  copy: moduleOf(
    'copy',
    [
      ['x', 'f32', 'in'],
      ['y', 'f32', 'out'],
      ['n', 'i32', 'scalar'],
    ],
    `extern "C" __global__ void copy(const float4* __restrict__ x, float4* __restrict__ y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}
`,
  ),
  relay: relay('relay', true),
  /** Wrong: it does not wait. Shows that launches overlap. */
  rushed: relay('rushed', false),
  fence: moduleOf(
    'fence',
    [['y', 'i32', 'out']],
    `extern "C" __global__ void fence(int* y) {
#if __CUDA_ARCH__ == 900
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
  if (threadIdx.x == 0) *y = 7;
}
`,
    [128, 1, 1],
  ),
  cluster: moduleOf(
    'cluster',
    [['y', 'i32', 'out']],
    `extern "C" __global__ void cluster(int* y) {
#if __CUDA_ARCH__ >= 900
  int n;
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
  if (threadIdx.x == 0) y[blockIdx.x] = n;
#endif
}
`,
    [32, 1, 1],
  ),
  wild: moduleOf(
    'wild',
    [['y', 'i32', 'out']],
    `extern "C" __global__ void wild(int* y) { y[(1ll << 40) + threadIdx.x] = 1; }\n`,
    [1, 1, 1],
  ),
  crooked: moduleOf(
    'crooked',
    [['y', 'i32', 'out']],
    `extern "C" __global__ void crooked(int* y) { *(int*)((char*)y + 1) = 1; }\n`,
    [1, 1, 1],
  ),
} satisfies Record<string, ModuleText>
