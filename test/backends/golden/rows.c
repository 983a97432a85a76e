#include <math.h>
#include <stdbool.h>

void rows_0(const float* restrict A, const float* restrict B, float* restrict C, const int* restrict j_indptr, const int* restrict j_indices, int m, int d) {
  for (int i = 0; i < m; ++i) {
    const int at = (int)((unsigned)i * (unsigned)d);
    const int j_indptr_at = j_indptr[i];
    for (int f_2 = 0; f_2 < d; ++f_2) {
      C[at + f_2] = 0.0f;
    }
    const int j_end = j_indptr[i + 1] - j_indptr_at;
    for (int j = 0; j < j_end; ++j) {
      const int at_2 = j_indptr_at + j;
      const float A_at = A[at_2];
      const int at_3 = (int)((unsigned)j_indices[at_2] * (unsigned)d);
      for (int f = 0; f < d; ++f) {
        C[at + f] = C[at + f] + A_at * B[at_3 + f];
      }
    }
  }
}
