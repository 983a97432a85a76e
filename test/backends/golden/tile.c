#include <math.h>
#include <stdbool.h>

void tile_0(const float* restrict x, const float* restrict w, float* restrict y, int m) {
  #pragma omp parallel for
  for (int block_x = 0; block_x < m; ++block_x) {
    float x_shared[64];
    for (int thread_x = 0; thread_x < 16; ++thread_x) {
      const int at_2 = block_x * 64;
      for (int round_1 = 0; round_1 < 4; ++round_1) {
        const int at = round_1 * 16 + thread_x;
        x_shared[at] = x[at_2 + at];
      }
    }
    for (int thread_x = 0; thread_x < 16; ++thread_x) {
      float y_at;
      y_at = 0.0f;
      for (int c = 0; c < 64; ++c) {
        y_at = y_at + x_shared[c] * w[c * 16 + thread_x];
      }
      const int at_3 = block_x * 16 + thread_x;
      y[at_3] = y_at;
    }
  }
}
