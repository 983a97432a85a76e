export function search_0(C, arena_f32, arena_i32, m, n, base_A, base_B, base_j_indptr, base_j_indices, base_k_indptr, base_k_indices) {
  for (let block_x = 0; block_x < (((m + 63) / 64) | 0); block_x++) {
    for (let thread_x = 0; thread_x < 64; thread_x++) {
      const at = Math.imul(block_x, 64) + thread_x;
      const at_2 = Math.imul(at, n);
      const at_3 = at + 1;
      if (at < m) {
        const j_indptr_at = arena_i32[base_j_indptr + at];
        const j_indptr_at_2 = arena_i32[base_j_indptr + at_3];
        const k_indptr_at = arena_i32[base_k_indptr + at];
        const k_indptr_at_2 = arena_i32[base_k_indptr + at_3];
        for (let c = 0; c < n; c++) {
          let lo = 0;
          lo = j_indptr_at;
          let hi = 0;
          hi = j_indptr_at_2;
          while (lo < hi) {
            const mid = ((lo + ((((hi - lo) | 0) / 2) | 0)) | 0);
            if (arena_i32[base_j_indices + mid] < c) {
              lo = mid + 1;
            } else {
              hi = mid;
            }
          }
          const found = lo;
          let lo_2 = 0;
          lo_2 = k_indptr_at;
          let hi_2 = 0;
          hi_2 = k_indptr_at_2;
          while (lo_2 < hi_2) {
            const mid_2 = ((lo_2 + ((((hi_2 - lo_2) | 0) / 2) | 0)) | 0);
            if (arena_i32[base_k_indices + mid_2] < c) {
              lo_2 = mid_2 + 1;
            } else {
              hi_2 = mid_2;
            }
          }
          const found_2 = lo_2;
          C[at_2 + c] = (found < j_indptr_at_2 && (arena_i32[base_j_indices + found] === c) ? arena_f32[base_A + found] : 0) + (found_2 < k_indptr_at_2 && (arena_i32[base_k_indices + found_2] === c) ? arena_f32[base_B + found_2] : 0);
        }
      }
    }
  }
}
