#include <math.h>
#include <stdbool.h>

void search_0(float* restrict C, const float* restrict arena_f32, const int* restrict arena_i32, int m, int n, int base_A, int base_B, int base_j_indptr, int base_j_indices, int base_k_indptr, int base_k_indices) {
  #pragma omp parallel for collapse(2)
  for (int block_y = 0; block_y < (n + 31) / 32; ++block_y) {
    for (int block_x = 0; block_x < (m + 3) / 4; ++block_x) {
      for (int thread_y = 0; thread_y < 4; ++thread_y) {
        for (int thread_x = 0; thread_x < 32; ++thread_x) {
          const int at = block_x * 4 + thread_y;
          const int at_2 = block_y * 32 + thread_x;
          const bool test = at_2 < n;
          const int at_3 = (int)((unsigned)(int)((unsigned)at * (unsigned)n) + (unsigned)at_2);
          const int at_4 = at + 1;
          if (at < m) {
            const int j_indptr_at = arena_i32[base_j_indptr + at];
            const int j_indptr_at_2 = arena_i32[base_j_indptr + at_4];
            const int k_indptr_at = arena_i32[base_k_indptr + at];
            const int k_indptr_at_2 = arena_i32[base_k_indptr + at_4];
            if (test) {
              int lo;
              lo = j_indptr_at;
              int hi;
              hi = j_indptr_at_2;
              while (lo < hi) {
                const int mid = lo + (hi - lo) / 2;
                if (arena_i32[base_j_indices + mid] < at_2) {
                  lo = mid + 1;
                } else {
                  hi = mid;
                }
              }
              const int found = lo;
              int lo_2;
              lo_2 = k_indptr_at;
              int hi_2;
              hi_2 = k_indptr_at_2;
              while (lo_2 < hi_2) {
                const int mid_2 = lo_2 + (hi_2 - lo_2) / 2;
                if (arena_i32[base_k_indices + mid_2] < at_2) {
                  lo_2 = mid_2 + 1;
                } else {
                  hi_2 = mid_2;
                }
              }
              const int found_2 = lo_2;
              C[at_3] = (found < j_indptr_at_2 && arena_i32[base_j_indices + found] == at_2 ? arena_f32[base_A + found] : 0.0f) + (found_2 < k_indptr_at_2 && arena_i32[base_k_indices + found_2] == at_2 ? arena_f32[base_B + found_2] : 0.0f);
            }
          }
        }
      }
    }
  }
}
