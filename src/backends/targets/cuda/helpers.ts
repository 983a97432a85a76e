/** Helper functions and types that CUDA code defines on demand. */
import { helpersOf } from '../../print/spellings.ts'

/** Minimum and maximum that propagate NaN, unlike fminf and fmaxf. */
const minMaxHelper = (name: 'min' | 'max', op: '<' | '>'): string =>
  `template <typename T> static __device__ __forceinline__ T ${name}_of(T a, T b) { return a != a || a ${op} b ? a : b; }
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ float ${name}_of(float a, float b) { float r; asm("${name}.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#endif`

/** Packs two values into a word; the first is the lower half. */
const packHelper = (t: 'f16' | 'bf16'): string =>
  `static __device__ __forceinline__ unsigned f32_to_${t}x2(float low, float high) {
#if __CUDA_ARCH__ >= 800
  unsigned w; asm("cvt.rn.${t}x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low)); return w;
#else
  return (unsigned)f32_to_${t}(low) | (unsigned)f32_to_${t}(high) << 16;
#endif
}`

export const HELPERS: Readonly<Record<string, string>> = {
  f16_to_f32:
    'static __device__ __forceinline__ float f16_to_f32(unsigned short h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }',
  f32_to_f16:
    'static __device__ __forceinline__ unsigned short f32_to_f16(float f) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }',
  bf16_to_f32:
    'static __device__ __forceinline__ float bf16_to_f32(unsigned short h) { return __uint_as_float((unsigned)h << 16); }',
  f32_to_bf16: `static __device__ __forceinline__ unsigned short f32_to_bf16(float f) {
#if __CUDA_ARCH__ >= 800
  unsigned short h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h;
#else
  unsigned u = __float_as_uint(f);
  return f != f ? 0x7fc0 : (unsigned short)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
#endif
}`,
  f32_to_f16x2: packHelper('f16'),
  f32_to_bf16x2: packHelper('bf16'),
  // Round-to-odd avoids double rounding when the f32 result is rounded to a narrower type.
  odd: `static __device__ __forceinline__ float odd(double x) {
  const float f = __double2float_rz(x);
  return x != x || (double)f == x ? f : __uint_as_float(__float_as_uint(f) | 1u);
}`,
  min_of: minMaxHelper('min', '<'),
  max_of: minMaxHelper('max', '>'),
  to_int: `template <typename T, typename F> static __device__ __forceinline__ T to_int(F x, F lo, F hi, T least, T most) {
  return x != x ? T(0) : x <= lo ? least : x >= hi ? most : T(x);
}`,
  // Mask of the thread's group of N lanes; other lanes of the warp may have diverged.
  lanes:
    'template <int N> static __device__ __forceinline__ unsigned lanes() { unsigned lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane)); return ((1u << N) - 1u) << (lane & ~(N - 1u)); }',
  // Vector atomics need compute capability 9.0 and global memory.
  add_4: `static __device__ __forceinline__ void add_4(float* to, float x, float y, float z, float w) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
#else
  atomicAdd(to, x), atomicAdd(to + 1, y), atomicAdd(to + 2, z), atomicAdd(to + 3, w);
#endif
}`,
  add_2: `static __device__ __forceinline__ void add_2(float* to, float x, float y) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "f"(x), "f"(y) : "memory");
#else
  atomicAdd(to, x), atomicAdd(to + 1, y);
#endif
}`,
  // One instruction for f32. exp2f takes four, because it handles subnormal results.
  exp2_of: `static __device__ __forceinline__ float exp2_of(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
static __device__ __forceinline__ double exp2_of(double x) { return exp2(x); }`,
  // From compute capability 9.0 on, ptxas 13.0 fuses nested minima (or maxima) into one instruction and loses the sign of a
  // negated operand. The byte permutation, an identity, prevents the fusion. A `lop3` identity is not usable, because ptxas
  // crashes if it has one register three times in a condition.
  apart: `static __device__ __forceinline__ int apart(int x) {
#if __CUDA_ARCH__ >= 900
  return (int)__byte_perm((unsigned)x, (unsigned)x, 0x7210);
#else
  return x;
#endif
}`,
  // `abs` of INT_MIN is undefined, and assemblers assume that the result of `abs.s32` is positive. The byte permutation, an
  // identity, hides the value.
  abs_of: `static __device__ __forceinline__ int abs_of(int x) {
  const unsigned value = x < 0 ? 0u - (unsigned)x : (unsigned)x;
  return (int)__byte_perm(value, value, 0x7210);
}`,
  // Hides the origin of a condition from the compiler.
  hidden:
    'static __device__ __forceinline__ bool hidden(bool c) { int x = c; asm("" : "+r"(x)); return x != 0; }',
  sign_of:
    'template <typename T> static __device__ __forceinline__ T sign_of(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }',
}

const overlapHelper = (name: string, instruction: string) => ({
  name,
  text: `static __device__ __forceinline__ void ${name}() {
#if __CUDA_ARCH__ >= 900
  asm volatile("${instruction};" ::: "memory");
#endif
}`,
})

/** Overlapping launches (programmatic dependent launch): allows the next launch to begin; waits for the previous one. */
export const OVERLAP = {
  begin: overlapHelper('begin_next_launch', 'griddepcontrol.launch_dependents'),
  wait: overlapHelper('await_last_launch', 'griddepcontrol.wait'),
}

/** Opaque descriptor of a matrix, filled by the driver (`CUtensorMap`). */
export const MATRIX = {
  name: 'Matrix',
  text: 'struct __align__(64) Matrix { unsigned long long words[16]; };',
}

export const { addHelper, helperCall, helperFunction } = helpersOf(HELPERS)
