export function rows_0(A, B, C, j_indptr, j_indices, m, d) {
  for (let i = 0; i < m; i++) {
    const at = Math.imul(i, d);
    const j_indptr_at = j_indptr[i];
    const length = j_indptr[i + 1] - j_indptr_at;
    const part = Math.min(length, 1);
    const part_2 = Math.max((length - 1), 0);
    for (let f = 0; f < d; f++) {
      let C_at = 0;
      C_at = 0;
      for (let j = 0; j < part; j++) {
        const at_3 = j_indptr_at + j;
        C_at = C_at + A[at_3] * B[Math.imul(j_indices[at_3], d) + f];
      }
      const at_2 = at + f;
      C[at_2] = C_at;
      let C_at_2 = 0;
      C_at_2 = C[at_2];
      for (let j_2 = 0; j_2 < part_2; j_2++) {
        const at_4 = j_indptr_at + j_2 + 1;
        C_at_2 = C_at_2 + A[at_4] * B[Math.imul(j_indices[at_4], d) + f];
      }
      C[at_2] = C_at_2;
    }
  }
}
