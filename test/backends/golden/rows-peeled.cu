extern "C" __global__ void __launch_bounds__(1) rows_0(
  const float* __restrict__ A,
  const float* __restrict__ B,
  float* __restrict__ C,
  const int* __restrict__ j_indptr,
  const int* __restrict__ j_indices,
  int m,
  int d
) {
  for (int i = 0; i < m; ++i) {
    const int at = i * d;
    const int j_indptr_at = j_indptr[i];
    const int length = j_indptr[i + 1] - j_indptr_at;
    const int part = min(length, 1);
    const int part_2 = max((length - 1), 0);
    for (int f = 0; f < d; ++f) {
      const int at_2 = at + f;
      C[at_2] = 0.0f;
      for (int j = 0; j < part; ++j) {
        const int at_3 = j_indptr_at + j;
        C[at_2] = C[at_2] + A[at_3] * B[j_indices[at_3] * d + f];
      }
      for (int j_2 = 0; j_2 < part_2; ++j_2) {
        const int at_4 = j_indptr_at + j_2 + 1;
        C[at_2] = C[at_2] + A[at_4] * B[j_indices[at_4] * d + f];
      }
    }
  }
}
