extern "C" __global__ void __launch_bounds__(128) search_0(
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
  int block_x = (int)blockIdx.x;
  int block_y = (int)blockIdx.y;
  if ((int)gridDim.x != ((m + 3) / 4)) {
    block_x = (int)blockIdx.x % ((m + 3) / 4);
    block_y = (int)blockIdx.x / ((m + 3) / 4);
  }
  const int at = block_x * 4 + (int)threadIdx.y;
  const int at_2 = block_y * 32 + (int)threadIdx.x;
  const bool test = at_2 < n;
  const int at_3 = at * n + at_2;
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
