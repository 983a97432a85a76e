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
    let length_1 = j_indptr[i + 1i] - j_indptr_at;
    let part = min(length_1, 1i);
    let part_2 = max((length_1 - 1i), 0i);
    for (var f = 0i; f < params.d; f++) {
      let at_2 = at + f;
      C[at_2] = 0.0f;
      for (var j = 0i; j < part; j++) {
        let at_3 = j_indptr_at + j;
        C[at_2] = C[at_2] + A[at_3] * B[j_indices[at_3] * params.d + f];
      }
      for (var j_2 = 0i; j_2 < part_2; j_2++) {
        let at_4 = j_indptr_at + j_2 + 1i;
        C[at_2] = C[at_2] + A[at_4] * B[j_indices[at_4] * params.d + f];
      }
    }
  }
}
