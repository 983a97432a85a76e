static __device__ __forceinline__ float f16_to_f32(unsigned short h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }

static __device__ __forceinline__ unsigned short f32_to_bf16(float f) {
#if __CUDA_ARCH__ >= 800
  unsigned short h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h;
#else
  unsigned u = __float_as_uint(f);
  return f != f ? 0x7fc0 : (unsigned short)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
#endif
}

template <typename T, typename F> static __device__ __forceinline__ T to_int(F x, F lo, F hi, T least, T most) {
  return x != x ? T(0) : x <= lo ? least : x >= hi ? most : T(x);
}

extern "C" __global__ void __launch_bounds__(64) narrow_0(
  const unsigned short* __restrict__ h,
  const signed char* __restrict__ b,
  unsigned char* __restrict__ flag,
  unsigned short* __restrict__ half,
  unsigned char* __restrict__ byte_1,
  int n,
  float limit,
  bool on
) {
  const int block_x = (int)blockIdx.x;
  const int at = block_x * 64 + (int)threadIdx.x;
  if (at < n) {
    const float h_at = f16_to_f32(h[at]);
    const float value = (float)((int)b[at]);
    flag[at] = (unsigned char)(on && h_at < limit ? 1 : 0);
    half[at] = f32_to_bf16(h_at * value);
    byte_1[at] = (unsigned char)(to_int<int>(expf(value), 0.0f, 255.0f, 0, 255));
  }
}
