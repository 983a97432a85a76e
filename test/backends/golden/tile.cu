extern "C" __global__ void __launch_bounds__(16) tile_0(
  const float* __restrict__ x,
  const float* __restrict__ w,
  float* y,
  int m
) {
  const int block_x = (int)blockIdx.x;
  const int at_2 = block_x * 64;
  __shared__ __align__(16) float x_shared[64];
  for (int round = 0; round < 4; ++round) {
    const int at = round * 16 + (int)threadIdx.x;
    x_shared[at] = x[at_2 + at];
  }
  __syncthreads();
  const int at_3 = block_x * 16 + (int)threadIdx.x;
  y[at_3] = 0.0f;
  for (int c = 0; c < 64; ++c) {
    y[at_3] = y[at_3] + x_shared[c] * w[c * 16 + (int)threadIdx.x];
  }
}
