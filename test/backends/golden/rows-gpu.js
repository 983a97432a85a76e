export function rows_0(A, B, C, j_indptr, j_indices, m, d) {
  for (let block_y = 0; block_y < (((d + 31) / 32) | 0); block_y++) {
    for (let block_x = 0; block_x < m; block_x++) {
      for (let thread_x = 0; thread_x < 32; thread_x++) {
        const at = Math.imul(block_y, 32) + thread_x;
        const j_indptr_at = j_indptr[block_x];
        const length = j_indptr[block_x + 1] - j_indptr_at;
        const at_3 = Math.imul(block_x, d) + at;
        if (at < d) {
          let C_register = 0;
          C_register = 0;
          for (let j = 0; j < length; j++) {
            const at_2 = j_indptr_at + j;
            C_register = C_register + A[at_2] * B[Math.imul(j_indices[at_2], d) + at];
          }
          C[at_3] = C_register;
        }
      }
    }
  }
}
