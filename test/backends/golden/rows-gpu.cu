extern "C" __global__ void __launch_bounds__(32) rows_0(
  const float* __restrict__ A,
  const float* __restrict__ B,
  float* __restrict__ C,
  const int* __restrict__ j_indptr,
  const int* __restrict__ j_indices,
  int m,
  int d
) {
  int block_x = (int)blockIdx.x;
  int block_y = (int)blockIdx.y;
  if ((int)gridDim.x != m) {
    block_x = (int)blockIdx.x % m;
    block_y = (int)blockIdx.x / m;
  }
  const int at = block_y * 32 + (int)threadIdx.x;
  const int j_indptr_at = j_indptr[block_x];
  const int length = j_indptr[block_x + 1] - j_indptr_at;
  const int at_3 = block_x * d + at;
  if (at < d) {
    float C_register;
    C_register = 0.0f;
    for (int j = 0; j < length; ++j) {
      const int at_2 = j_indptr_at + j;
      C_register = C_register + A[at_2] * B[j_indices[at_2] * d + at];
    }
    C[at_3] = C_register;
  }
}
