export function scatter_0(top, n) {
  for (let block_x = 0; block_x < (((n + 255) / 256) | 0); block_x++) {
    for (let thread_x = 0; thread_x < 256; thread_x++) {
      const at = Math.imul(block_x, 256) + thread_x;
      if (at < n) {
        top[at] = -Infinity;
      }
    }
  }
}

export function scatter_2(A, top, count, j_indptr, j_indices, m) {
  for (let block_x = 0; block_x < m; block_x++) {
    const j_indptr_at = j_indptr[block_x];
    const j_end = j_indptr[block_x + 1] - j_indptr_at;
    for (let j = 0; j < j_end; j++) {
      const at_2 = j_indptr_at + j;
      const j_indices_at = j_indices[at_2];
      top[j_indices_at] = Math.max(top[j_indices_at], A[at_2]);
      count[j_indices_at] = ((count[j_indices_at] + 1) | 0);
    }
  }
}
