#include <math.h>
#include <stdbool.h>

static inline int min_i32(int a, int b) { return a < b ? a : b; }

static inline int max_i32(int a, int b) { return a > b ? a : b; }

void rows_0(const float* restrict A, const float* restrict B, float* restrict C, const int* restrict j_indptr, const int* restrict j_indices, int m, int d) {
  for (int i = 0; i < m; ++i) {
    const int at = (int)((unsigned)i * (unsigned)d);
    const int j_indptr_at = j_indptr[i];
    const int length = j_indptr[i + 1] - j_indptr_at;
    const int part = min_i32(length, 1);
    const int part_2 = max_i32((length - 1), 0);
    for (int f = 0; f < d; ++f) {
      float C_at;
      C_at = 0.0f;
      for (int j = 0; j < part; ++j) {
        const int at_3 = j_indptr_at + j;
        C_at = C_at + A[at_3] * B[j_indices[at_3] * d + f];
      }
      const int at_2 = at + f;
      C[at_2] = C_at;
      float C_at_2;
      C_at_2 = C[at_2];
      for (int j_2 = 0; j_2 < part_2; ++j_2) {
        const int at_4 = j_indptr_at + j_2 + 1;
        C_at_2 = C_at_2 + A[at_4] * B[j_indices[at_4] * d + f];
      }
      C[at_2] = C_at_2;
    }
  }
}
