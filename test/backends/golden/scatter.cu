static __device__ __forceinline__ void begin_next_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ __forceinline__ void await_last_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <typename T> static __device__ __forceinline__ T max_of(T a, T b) { return a != a || a > b ? a : b; }
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ float max_of(float a, float b) { float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#endif

extern "C" __global__ void __launch_bounds__(256) scatter_0(
  float* __restrict__ top,
  int n
) {
  begin_next_launch();
  const int block_x = (int)blockIdx.x;
  const int at = block_x * 256 + (int)threadIdx.x;
  if (at < n) {
    top[at] = -__int_as_float(0x7f800000);
  }
}

extern "C" __global__ void __launch_bounds__(1) scatter_2(
  const float* __restrict__ A,
  float* top,
  int* count,
  const int* __restrict__ j_indptr,
  const int* __restrict__ j_indices,
  int m
) {
  const int block_x = (int)blockIdx.x;
  const int j_indptr_at = j_indptr[block_x];
  const int j_end = j_indptr[block_x + 1] - j_indptr_at;
  await_last_launch();
  for (int j = 0; j < j_end; ++j) {
    const int at_2 = j_indptr_at + j;
    const int j_indices_at = j_indices[at_2];
    {
      unsigned* cell = (unsigned*)&top[j_indices_at];
      unsigned old_bits = *cell, seen;
      do { seen = old_bits; old_bits = atomicCAS(cell, seen, (unsigned)__float_as_uint(max_of(__uint_as_float(seen), A[at_2]))); } while (old_bits != seen);
    }
    atomicAdd(&count[j_indices_at], 1);
  }
}
