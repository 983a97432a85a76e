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

@compute @workgroup_size(32, 1, 1)
fn rows_0(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  var block_x = i32(group.x);
  var block_y = i32(group.y);
  if (i32(groups.x) != params.m || i32(groups.y) != ((params.d + 31i) / 32i) || i32(groups.z) != 1i) {
    let linear = i32(group.x + group.y * groups.x);
    if (linear >= params.m * ((params.d + 31i) / 32i)) {
      return;
    }
    block_x = linear % params.m;
    block_y = linear / params.m;
  }
  let at = block_y * 32i + i32(local.x);
  let j_indptr_at = j_indptr[block_x];
  let length_1 = j_indptr[block_x + 1i] - j_indptr_at;
  let at_3 = block_x * params.d + at;
  if (at < params.d) {
    var C_register: f32;
    C_register = 0.0f;
    for (var j = 0i; j < length_1; j++) {
      let at_2 = j_indptr_at + j;
      C_register = C_register + A[at_2] * B[j_indices[at_2] * params.d + at];
    }
    C[at_3] = C_register;
  }
}
