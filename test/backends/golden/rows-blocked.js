export function rows_0(A, B, C, jo_indptr, jo_indices, m, n, d) {
  for (let block_x = 0; block_x < (((m + 3) / 4) | 0); block_x++) {
    const at = Math.imul(block_x, 4);
    const jo_indptr_at = jo_indptr[block_x];
    for (let ii_2 = 0; ii_2 < 4; ii_2++) {
      const at_2 = at + ii_2;
      const at_3 = Math.imul(at_2, d);
      if (at_2 < m) {
        for (let f_2 = 0; f_2 < d; f_2++) {
          C[at_3 + f_2] = 0;
        }
      }
    }
    const jo_end = jo_indptr[block_x + 1] - jo_indptr_at;
    for (let jo = 0; jo < jo_end; jo++) {
      for (let ii = 0; ii < 4; ii++) {
        const at_4 = at + ii;
        const at_8 = Math.imul(at_4, d);
        if (at_4 < m) {
          const at_5 = jo_indptr_at + jo;
          const at_6 = Math.imul(jo_indices[at_5], 4);
          for (let ji = 0; ji < 4; ji++) {
            const at_7 = at_6 + ji;
            if (at_7 < n) {
              const A_at = A[Math.imul((Math.imul(at_5, 4) + ii), 4) + ji];
              const at_9 = Math.imul(at_7, d);
              for (let f = 0; f < d; f++) {
                C[at_8 + f] = C[at_8 + f] + A_at * B[at_9 + f];
              }
            }
          }
        }
      }
    }
  }
}
