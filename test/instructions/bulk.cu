struct __align__(64) Matrix { unsigned long long words[16]; };

extern "C" __global__ void __launch_bounds__(8) blocks_0(
  float* __restrict__ C,
  const int* __restrict__ j_indptr,
  const int* __restrict__ j_indices,
  int m,
  int d,
  const __grid_constant__ Matrix A_matrix,
  const __grid_constant__ Matrix B_matrix
) {
  int block_x = (int)blockIdx.x;
  int block_y = (int)blockIdx.y;
  if ((int)gridDim.x != ((d + 7) / 8)) {
    block_x = (int)blockIdx.x % ((d + 7) / 8);
    block_y = (int)blockIdx.x / ((d + 7) / 8);
  }
  const int j_indptr_at = j_indptr[block_y];
  const int length = j_indptr[block_y + 1] - j_indptr_at;
  const bool test = 0 < length;
  if (test) {
    float C_register[4];
    for (int jt_3 = 0; jt_3 < 2; ++jt_3) {
      const int at = jt_3 * 2;
      for (int ir_3 = 0; ir_3 < 2; ++ir_3) {
        C_register[at + ir_3] = 0.0f;
      }
    }
    __shared__ __align__(128) float As[192];
    __shared__ __align__(128) float Bs[384];
    __shared__ __align__(16) unsigned arrived[6];
    const bool test_2 = (int)threadIdx.x + ((int)threadIdx.y + (int)threadIdx.z) == 0;
    if (test_2) {
      prepare(((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(0) * 4u), 1);
      prepare(((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(2) * 4u), 1);
      prepare(((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(4) * 4u), 1);
    }
    __syncthreads();
    const int at_2 = (int)threadIdx.y * 4 + (int)threadIdx.x;
    const bool test_3 = at_2 < 2;
    const int at_3 = at_2 * 32;
    const int at_4 = at_2 * 2;
    const bool test_4 = at_2 < 4;
    const int at_6 = (int)threadIdx.y * 2 + (int)threadIdx.x / 2;
    const int at_7 = at_6 * 2;
    const int rest = (int)threadIdx.x % 2;
    const int at_8 = (at_7 + rest) * 32;
    const int at_10 = block_x * 8 + rest * 4;
    if (test) {
      const int at_5 = j_indptr_at * 4 + at_4;
      const int at_9 = j_indices[j_indptr_at] * 4 + at_7;
      if (test_2) {
        expect(((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(0) * 4u), 192);
      }
      if (test_3) {
        bulk((As + (at_3)), &A_matrix, at_5, 0, ((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(0) * 4u));
      }
      if (test_4) {
        bulk((Bs + (at_8)), &B_matrix, at_9, at_10, ((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(0) * 4u));
      }
    }
    const int at_11 = (2 + at_2) * 32;
    const int at_14 = ((2 + at_6) * 2 + rest) * 32;
    if (1 < length) {
      const int at_12 = j_indptr_at + 1;
      const int at_13 = at_12 * 4 + at_4;
      const int at_15 = j_indices[at_12] * 4 + at_7;
      if (test_2) {
        expect(((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(2) * 4u), 192);
      }
      if (test_3) {
        bulk((As + (at_11)), &A_matrix, at_13, 0, ((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(2) * 4u));
      }
      if (test_4) {
        bulk((Bs + (at_14)), &B_matrix, at_15, at_10, ((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(2) * 4u));
      }
    }
    int j_indices_next;
    if (2 < length) {
      const int j_indices_at = j_indices[j_indptr_at + 2];
      if (test_4) {
        j_indices_next = j_indices_at;
      }
    }
    const int part = (int)threadIdx.x / 4;
    const int rest_2 = (int)threadIdx.x % 4;
    for (int j = 0; j < length; ++j) {
      const int at_16 = (j + 2) % 3 * 2;
      const int at_17 = (at_16 + at_2) * 32;
      const int at_19 = ((at_16 + at_6) * 2 + rest) * 32;
      const int at_20 = j % 3 * 2;
      if (j + 2 < length) {
        const int at_18 = (j_indptr_at + j + 2) * 4 + at_4;
        if (test_2) {
          expect(((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(at_16) * 4u), 192);
        }
        if (test_3) {
          bulk((As + (at_17)), &A_matrix, at_18, 0, ((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(at_16) * 4u));
        }
        if (test_4) {
          bulk((Bs + (at_19)), &B_matrix, j_indices_next * 4 + at_7, at_10, ((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(at_16) * 4u));
        }
      }
      if (j + 3 < length) {
        const int j_indices_at_2 = j_indices[j_indptr_at + j + 3];
        if (test_4) {
          j_indices_next = j_indices_at_2;
        }
      }
      arrived(((unsigned)__cvta_generic_to_shared(arrived) + (unsigned)(at_20) * 4u), j / 3 % 2);
      for (int jt = 0; jt < 2; ++jt) {
        const int at_21 = jt * 2;
        const int at_25 = jt + part;
        for (int ir = 0; ir < 2; ++ir) {
          const int at_22 = at_21 + ir;
          const int at_23 = at_20 + ((int)threadIdx.y + ir / 2);
          const int at_24 = ir % 2 * 4;
          for (int bk = 0; bk < 4; ++bk) {
            C_register[at_22] = C_register[at_22] + As[(at_23 + bk / 4) * 32 + (at_24 + bk % 4)] * Bs[((at_20 + bk / 2) * 2 + at_25) * 32 + (bk % 2 * 4 + rest_2)];
          }
        }
      }
      __syncthreads();
    }
    const int at_26 = block_y * 4;
    const int at_27 = (int)threadIdx.y * 2;
    const int at_28 = block_x * 8;
    for (int jt_2 = 0; jt_2 < 2; ++jt_2) {
      const int at_29 = at_28 + (jt_2 * 4 + (int)threadIdx.x);
      const int at_30 = jt_2 * 2;
      for (int ir_2 = 0; ir_2 < 2; ++ir_2) {
        C[(at_26 + (at_27 + ir_2)) * d + at_29] = C_register[at_30 + ir_2];
      }
    }
  } else {
    float C_register_2[4];
    for (int jt_3_2 = 0; jt_3_2 < 2; ++jt_3_2) {
      const int at_31 = jt_3_2 * 2;
      for (int ir_3_2 = 0; ir_3_2 < 2; ++ir_3_2) {
        C_register_2[at_31 + ir_3_2] = 0.0f;
      }
    }
    const int at_26_2 = block_y * 4;
    const int at_27_2 = (int)threadIdx.y * 2;
    const int at_28_2 = block_x * 8;
    for (int jt_2_2 = 0; jt_2_2 < 2; ++jt_2_2) {
      const int at_32 = at_28_2 + (jt_2_2 * 4 + (int)threadIdx.x);
      const int at_33 = jt_2_2 * 2;
      for (int ir_2_2 = 0; ir_2_2 < 2; ++ir_2_2) {
        C[(at_26_2 + (at_27_2 + ir_2_2)) * d + at_32] = C_register_2[at_33 + ir_2_2];
      }
    }
  }
}
