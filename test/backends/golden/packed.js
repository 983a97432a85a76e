export function search_0(C, arena_f32, arena_i32, m, n, base_A, base_B, base_j_indptr, base_j_indices, base_k_indptr, base_k_indices) {
  for (let block_y = 0; block_y < (((n + 31) / 32) | 0); block_y++) {
    for (let block_x = 0; block_x < (((m + 3) / 4) | 0); block_x++) {
      for (let thread_y = 0; thread_y < 4; thread_y++) {
        for (let thread_x = 0; thread_x < 32; thread_x++) {
          const at = Math.imul(block_x, 4) + thread_y;
          const at_2 = Math.imul(block_y, 32) + thread_x;
          const test = at_2 < n;
          const at_3 = Math.imul(at, n) + at_2;
          const at_4 = at + 1;
          if (at < m) {
            const j_indptr_at = arena_i32[base_j_indptr + at];
            const j_indptr_at_2 = arena_i32[base_j_indptr + at_4];
            const k_indptr_at = arena_i32[base_k_indptr + at];
            const k_indptr_at_2 = arena_i32[base_k_indptr + at_4];
            if (test) {
              let lo = 0;
              lo = j_indptr_at;
              let hi = 0;
              hi = j_indptr_at_2;
              while (lo < hi) {
                const mid = lo + (((hi - lo) / 2) | 0);
                if (arena_i32[base_j_indices + mid] < at_2) {
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
                const mid_2 = lo_2 + (((hi_2 - lo_2) / 2) | 0);
                if (arena_i32[base_k_indices + mid_2] < at_2) {
                  lo_2 = mid_2 + 1;
                } else {
                  hi_2 = mid_2;
                }
              }
              const found_2 = lo_2;
              C[at_3] = (found < j_indptr_at_2 && (arena_i32[base_j_indices + found] === at_2) ? arena_f32[base_A + found] : 0) + (found_2 < k_indptr_at_2 && (arena_i32[base_k_indices + found_2] === at_2) ? arena_f32[base_B + found_2] : 0);
            }
          }
        }
      }
    }
  }
}
