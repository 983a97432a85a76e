struct Params {
  m: i32,
  n: i32,
  base_A: i32,
  base_B: i32,
  base_j_indptr: i32,
  base_j_indices: i32,
  base_k_indptr: i32,
  base_k_indices: i32,
}

@group(0) @binding(3) var<uniform> params: Params;

@group(0) @binding(0) var<storage, read_write> C: array<f32>;
@group(0) @binding(1) var<storage, read> arena_f32: array<f32>;
@group(0) @binding(2) var<storage, read> arena_i32: array<i32>;

@compute @workgroup_size(32, 4, 1)
fn search_0(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  var block_x = i32(group.x);
  var block_y = i32(group.y);
  if (i32(groups.x) != ((params.m + 3i) / 4i) || i32(groups.y) != ((params.n + 31i) / 32i) || i32(groups.z) != 1i) {
    let linear = i32(group.x + group.y * groups.x);
    if (linear >= ((params.m + 3i) / 4i) * ((params.n + 31i) / 32i)) {
      return;
    }
    block_x = linear % ((params.m + 3i) / 4i);
    block_y = linear / ((params.m + 3i) / 4i);
  }
  let at = block_x * 4i + i32(local.y);
  let at_2 = block_y * 32i + i32(local.x);
  let test = at_2 < params.n;
  let at_3 = at * params.n + at_2;
  let at_4 = at + 1i;
  if (at < params.m) {
    let j_indptr_at = arena_i32[params.base_j_indptr + at];
    let j_indptr_at_2 = arena_i32[params.base_j_indptr + at_4];
    let k_indptr_at = arena_i32[params.base_k_indptr + at];
    let k_indptr_at_2 = arena_i32[params.base_k_indptr + at_4];
    if (test) {
      var lo: i32;
      lo = j_indptr_at;
      var hi: i32;
      hi = j_indptr_at_2;
      while (lo < hi) {
        let mid = lo + (hi - lo) / 2i;
        if (arena_i32[params.base_j_indices + mid] < at_2) {
          lo = mid + 1i;
        } else {
          hi = mid;
        }
      }
      let found = lo;
      var lo_2: i32;
      lo_2 = k_indptr_at;
      var hi_2: i32;
      hi_2 = k_indptr_at_2;
      while (lo_2 < hi_2) {
        let mid_2 = lo_2 + (hi_2 - lo_2) / 2i;
        if (arena_i32[params.base_k_indices + mid_2] < at_2) {
          lo_2 = mid_2 + 1i;
        } else {
          hi_2 = mid_2;
        }
      }
      let found_2 = lo_2;
      C[at_3] = select(0.0f, arena_f32[params.base_A + found], (found < j_indptr_at_2) & (arena_i32[params.base_j_indices + found] == at_2)) + select(0.0f, arena_f32[params.base_B + found_2], (found_2 < k_indptr_at_2) & (arena_i32[params.base_k_indices + found_2] == at_2));
    }
  }
}
