#include <math.h>
#include <stdbool.h>

void rows_0(const float* restrict A, const float* restrict B, float* restrict C, const int* restrict jo_indptr, const int* restrict jo_indices, int m, int n, int d) {
  #pragma omp parallel for
  for (int block_x = 0; block_x < (m + 3) / 4; ++block_x) {
    const int at = block_x * 4;
    const int jo_indptr_at = jo_indptr[block_x];
    for (int ii_2 = 0; ii_2 < 4; ++ii_2) {
      const int at_2 = at + ii_2;
      const int at_3 = (int)((unsigned)at_2 * (unsigned)d);
      if (at_2 < m) {
        for (int f_2 = 0; f_2 < d; ++f_2) {
          C[at_3 + f_2] = 0.0f;
        }
      }
    }
    const int jo_end = jo_indptr[block_x + 1] - jo_indptr_at;
    for (int jo = 0; jo < jo_end; ++jo) {
      for (int ii = 0; ii < 4; ++ii) {
        const int at_4 = at + ii;
        const int at_8 = (int)((unsigned)at_4 * (unsigned)d);
        if (at_4 < m) {
          const int at_5 = jo_indptr_at + jo;
          const int at_6 = jo_indices[at_5] * 4;
          for (int ji = 0; ji < 4; ++ji) {
            const int at_7 = at_6 + ji;
            if (at_7 < n) {
              const float A_at = A[(at_5 * 4 + ii) * 4 + ji];
              const int at_9 = (int)((unsigned)at_7 * (unsigned)d);
              for (int f = 0; f < d; ++f) {
                C[at_8 + f] = C[at_8 + f] + A_at * B[at_9 + f];
              }
            }
          }
        }
      }
    }
  }
}
