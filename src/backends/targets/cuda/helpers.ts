/** Functions and types that CUDA texts define where they need them. */
import type { Helpers } from '../../spellings.ts'

/** fminf and fmaxf drop NaN; one instruction keeps it. */
const extreme = (name: 'min' | 'max', op: '<' | '>'): string =>
  `template <typename T> static __device__ __forceinline__ T ${name}_of(T a, T b) { return a != a || a ${op} b ? a : b; }
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ float ${name}_of(float a, float b) { float r; asm("${name}.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#endif`

/** Two values as a word, of which the first is the lower half. */
const pair = (t: 'f16' | 'bf16'): string =>
  `static __device__ __forceinline__ unsigned f32_to_${t}x2(float low, float high) {
#if __CUDA_ARCH__ >= 800
  unsigned w; asm("cvt.rn.${t}x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low)); return w;
#else
  return (unsigned)f32_to_${t}(low) | (unsigned)f32_to_${t}(high) << 16;
#endif
}`

export const HELPER: Readonly<Record<string, string>> = {
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
  f32_to_f16x2: pair('f16'),
  f32_to_bf16x2: pair('bf16'),
  // Rounded to odd, what f32 does not hold rounds to narrower types as it would by itself.
  odd: `static __device__ __forceinline__ float odd(double x) {
  const float f = __double2float_rz(x);
  return x != x || (double)f == x ? f : __uint_as_float(__float_as_uint(f) | 1u);
}`,
  min_of: extreme('min', '<'),
  max_of: extreme('max', '>'),
  to_int: `template <typename T, typename F> static __device__ __forceinline__ T to_int(F x, F lo, F hi, T least, T most) {
  return x != x ? T(0) : x <= lo ? least : x >= hi ? most : T(x);
}`,
  // The mask of the thread's group of N lanes: lanes outside of it may be elsewhere.
  lanes:
    'template <int N> static __device__ __forceinline__ unsigned lanes() { unsigned lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane)); return ((1u << N) - 1u) << (lane & ~(N - 1u)); }',
  // Vectors are added at once from compute capability 9.0 on, to memory that is known to be global.
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
  // In f32 one instruction; exp2f is four, to tell results that are less than the least normal number.
  exp2: `static __device__ __forceinline__ float exp2_of(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
static __device__ __forceinline__ double exp2_of(double x) { return exp2(x); }`,
  // From compute capability 9.0 on, assemblers (ptxas 13.0) make one instruction of a minimum within a minimum, or a maximum
  // within a maximum, and lose the sign of an operand that is negated. They do not see that these bytes are those of x;
  // and they crash where a `lop3` has one register three times in a condition.
  apart: `static __device__ __forceinline__ int apart(int x) {
#if __CUDA_ARCH__ >= 900
  return (int)__byte_perm((unsigned)x, (unsigned)x, 0x7210);
#else
  return x;
#endif
}`,
  // `abs` of the least number is undefined, and assemblers take what `abs.s32` gives for positive: they do not see that these
  // bytes are those.
  abs: `static __device__ __forceinline__ int abs_of(int x) {
  const unsigned value = x < 0 ? 0u - (unsigned)x : (unsigned)x;
  return (int)__byte_perm(value, value, 0x7210);
}`,
  // The same truth, of which the compiler does not know where it comes from.
  hidden:
    'static __device__ __forceinline__ bool hidden(bool c) { int x = c; asm("" : "+r"(x)); return x != 0; }',
  sign: 'template <typename T> static __device__ __forceinline__ T sign_of(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }',
}

const overlap = (name: string, instruction: string) => ({
  name,
  text: `static __device__ __forceinline__ void ${name}() {
#if __CUDA_ARCH__ >= 900
  asm volatile("${instruction};" ::: "memory");
#endif
}`,
})

/** Overlapping launches (programmatic dependent launch): allows the next launch to begin; waits for the previous one. */
export const OVERLAP = {
  begin: overlap('begin_next_launch', 'griddepcontrol.launch_dependents'),
  wait: overlap('await_last_launch', 'griddepcontrol.wait'),
}

/** Opaque descriptor of a matrix, filled by the driver (`CUtensorMap`). */
export const MATRIX = {
  name: 'Matrix',
  text: 'struct __align__(64) Matrix { unsigned long long words[16]; };',
}

export const need = (helpers: Helpers, name: string): void => void helpers.set(name, HELPER[name]!)
