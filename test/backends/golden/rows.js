export function rows_0(A, B, C, j_indptr, j_indices, m, d) {
  for (let i = 0; i < m; i++) {
    const at = Math.imul(i, d);
    const j_indptr_at = j_indptr[i];
    for (let f_2 = 0; f_2 < d; f_2++) {
      C[at + f_2] = 0;
    }
    const j_end = j_indptr[i + 1] - j_indptr_at;
    for (let j = 0; j < j_end; j++) {
      const at_2 = j_indptr_at + j;
      const A_at = A[at_2];
      const at_3 = Math.imul(j_indices[at_2], d);
      for (let f = 0; f < d; f++) {
        C[at + f] = C[at + f] + A_at * B[at_3 + f];
      }
    }
  }
}
