#include <math.h>
#include <stdbool.h>

static inline float float_of(unsigned x) { union { unsigned u; float f; } v = {x}; return v.f; }

static inline unsigned bits_of(float x) { union { float f; unsigned u; } v = {x}; return v.u; }

static inline float f16_to_f32(unsigned short h) {
  const unsigned sign = (h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 1023u;
  if (e == 0) return float_of(sign | bits_of((float)m * 5.9604644775390625e-8f));
  return float_of(sign | (e == 31 ? 0x7f800000u : (e + 112u) << 23) | m << 13);
}

static inline unsigned short f32_to_bf16(float x) {
  const unsigned u = bits_of(x);
  return x != x ? 0x7fc0 : (unsigned short)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

static inline int to_u8(double x) { return x != x ? 0 : (int)(x < 0.0 ? 0.0 : x > 255.0 ? 255.0 : x); }

void narrow_0(const unsigned short* restrict h, const signed char* restrict b, unsigned char* restrict flag, unsigned short* restrict half, unsigned char* restrict byte, int n, float limit, bool on) {
  #pragma omp parallel for
  for (int block_x = 0; block_x < (n + 63) / 64; ++block_x) {
    for (int thread_x = 0; thread_x < 64; ++thread_x) {
      const int at = block_x * 64 + thread_x;
      if (at < n) {
        const float h_at = f16_to_f32(h[at]);
        const float value = (float)((int)b[at]);
        flag[at] = on && h_at < limit;
        half[at] = f32_to_bf16(h_at * value);
        byte[at] = (unsigned char)(to_u8(expf(value)));
      }
    }
  }
}
