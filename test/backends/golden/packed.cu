extern "C" __global__ void __launch_bounds__(64) search_0(
  float* __restrict__ C,
  const float* __restrict__ arena_f32,
  const int* __restrict__ arena_i32,
  int m,
  int n,
  int base_A,
  int base_B,
  int base_j_indptr,
  int base_j_indices,
  int base_k_indptr,
  int base_k_indices
) {
  const int block_x = (int)blockIdx.x;
  const int at = block_x * 64 + (int)threadIdx.x;
  const int at_2 = at * n;
  const int at_3 = at + 1;
  if (at < m) {
    const int j_indptr_at = arena_i32[base_j_indptr + at];
    const int j_indptr_at_2 = arena_i32[base_j_indptr + at_3];
    const int k_indptr_at = arena_i32[base_k_indptr + at];
    const int k_indptr_at_2 = arena_i32[base_k_indptr + at_3];
    for (int c = 0; c < n; ++c) {
      int lo;
      lo = j_indptr_at;
      int hi;
      hi = j_indptr_at_2;
      while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (arena_i32[base_j_indices + mid] < c) {
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
        if (arena_i32[base_k_indices + mid_2] < c) {
          lo_2 = mid_2 + 1;
        } else {
          hi_2 = mid_2;
        }
      }
      const int found_2 = lo_2;
      C[at_2 + c] = (found < j_indptr_at_2 && arena_i32[base_j_indices + found] == c ? arena_f32[base_A + found] : 0.0f) + (found_2 < k_indptr_at_2 && arena_i32[base_k_indices + found_2] == c ? arena_f32[base_B + found_2] : 0.0f);
    }
  }
}
