struct Params {
  m: i32,
  d: i32,
}

@group(0) @binding(5) var<uniform> params: Params;

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<storage, read> j_indptr: array<i32>;
@group(0) @binding(4) var<storage, read> j_indices: array<i32>;

@compute @workgroup_size(1, 1, 1)
fn rows_0() {
  for (var i = 0i; i < params.m; i++) {
    let at = i * params.d;
    let j_indptr_at = j_indptr[i];
    for (var f_2 = 0i; f_2 < params.d; f_2++) {
      C[at + f_2] = 0.0f;
    }
    let j_end = j_indptr[i + 1i] - j_indptr_at;
    for (var j = 0i; j < j_end; j++) {
      let at_2 = j_indptr_at + j;
      let A_at = A[at_2];
      let at_3 = j_indices[at_2] * params.d;
      for (var f = 0i; f < params.d; f++) {
        C[at + f] = C[at + f] + A_at * B[at_3 + f];
      }
    }
  }
}
