struct Params {
  m: i32,
  n: i32,
  d: i32,
}

@group(0) @binding(5) var<uniform> params: Params;

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<storage, read> jo_indptr: array<i32>;
@group(0) @binding(4) var<storage, read> jo_indices: array<i32>;

@compute @workgroup_size(1, 1, 1)
fn rows_0(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let linear = i32(group.x + group.y * groups.x);
  if (linear >= ((params.m + 3i) / 4i)) {
    return;
  }
  let block_x = linear;
  let at = block_x * 4i;
  let jo_indptr_at = jo_indptr[block_x];
  for (var ii_2 = 0i; ii_2 < 4i; ii_2++) {
    let at_2 = at + ii_2;
    let at_3 = at_2 * params.d;
    if (at_2 < params.m) {
      for (var f_2 = 0i; f_2 < params.d; f_2++) {
        C[at_3 + f_2] = 0.0f;
      }
    }
  }
  let jo_end = jo_indptr[block_x + 1i] - jo_indptr_at;
  for (var jo = 0i; jo < jo_end; jo++) {
    for (var ii = 0i; ii < 4i; ii++) {
      let at_4 = at + ii;
      let at_8 = at_4 * params.d;
      if (at_4 < params.m) {
        let at_5 = jo_indptr_at + jo;
        let at_6 = jo_indices[at_5] * 4i;
        for (var ji = 0i; ji < 4i; ji++) {
          let at_7 = at_6 + ji;
          if (at_7 < params.n) {
            let A_at = A[(at_5 * 4i + ii) * 4i + ji];
            let at_9 = at_7 * params.d;
            for (var f = 0i; f < params.d; f++) {
              C[at_8 + f] = C[at_8 + f] + A_at * B[at_9 + f];
            }
          }
        }
      }
    }
  }
}
