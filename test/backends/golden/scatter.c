#include <math.h>
#include <stdbool.h>

static inline float max_f32(float a, float b) { return a != a || a > b ? a : b; }

void scatter_0(float* restrict top, int n) {
  #pragma omp parallel for
  for (int block_x = 0; block_x < (n + 255) / 256; ++block_x) {
    for (int thread_x = 0; thread_x < 256; ++thread_x) {
      const int at = block_x * 256 + thread_x;
      if (at < n) {
        top[at] = -INFINITY;
      }
    }
  }
}

void scatter_2(const float* restrict A, float* restrict top, int* restrict count, const int* restrict j_indptr, const int* restrict j_indices, int m) {
  #pragma omp parallel for
  for (int block_x = 0; block_x < m; ++block_x) {
    const int j_indptr_at = j_indptr[block_x];
    const int j_end = j_indptr[block_x + 1] - j_indptr_at;
    for (int j = 0; j < j_end; ++j) {
      const int at_2 = j_indptr_at + j;
      const int j_indices_at = j_indices[at_2];
      _Pragma("omp critical")
      { top[j_indices_at] = max_f32(top[j_indices_at], A[at_2]); }
      _Pragma("omp atomic") ((unsigned*)count)[j_indices_at] += (unsigned)(1);
    }
  }
}
