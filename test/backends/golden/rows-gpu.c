#include <math.h>
#include <stdbool.h>

void rows_0(const float* restrict A, const float* restrict B, float* restrict C, const int* restrict j_indptr, const int* restrict j_indices, int m, int d) {
  #pragma omp parallel for collapse(2)
  for (int block_y = 0; block_y < (d + 31) / 32; ++block_y) {
    for (int block_x = 0; block_x < m; ++block_x) {
      for (int thread_x = 0; thread_x < 32; ++thread_x) {
        const int at = block_y * 32 + thread_x;
        const int j_indptr_at = j_indptr[block_x];
        const int length = j_indptr[block_x + 1] - j_indptr_at;
        const int at_3 = (int)((unsigned)(int)((unsigned)block_x * (unsigned)d) + (unsigned)at);
        if (at < d) {
          float C_register;
          C_register = 0.0f;
          for (int j = 0; j < length; ++j) {
            const int at_2 = j_indptr_at + j;
            C_register = C_register + A[at_2] * B[j_indices[at_2] * d + at];
          }
          C[at_3] = C_register;
        }
      }
    }
  }
}
