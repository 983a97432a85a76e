struct Params {
  n: i32,
}

@group(0) @binding(1) var<uniform> params: Params;

@group(0) @binding(0) var<storage, read_write> top: array<f32>;

fn inf() -> f32 {
  var bits = 0x7f800000u;
  return bitcast<f32>(bits);
}

@compute @workgroup_size(256, 1, 1)
fn scatter_0(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let linear = i32(group.x + group.y * groups.x);
  if (linear >= ((params.n + 255i) / 256i)) {
    return;
  }
  let block_x = linear;
  let at = block_x * 256i + i32(local.x);
  if (at < params.n) {
    top[at] = -inf();
  }
}

// ----

struct Params {
  m: i32,
}

@group(0) @binding(5) var<uniform> params: Params;

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read_write> top: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> count: array<atomic<i32>>;
@group(0) @binding(3) var<storage, read> j_indptr: array<i32>;
@group(0) @binding(4) var<storage, read> j_indices: array<i32>;

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn max_f32(a: f32, b: f32) -> f32 {
  return select(select(b, a, a > b), a, is_nan(a));
}

@compute @workgroup_size(1, 1, 1)
fn scatter_2(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let linear = i32(group.x + group.y * groups.x);
  if (linear >= params.m) {
    return;
  }
  let block_x = linear;
  let j_indptr_at = j_indptr[block_x];
  let j_end = j_indptr[block_x + 1i] - j_indptr_at;
  for (var j = 0i; j < j_end; j++) {
    let at_2 = j_indptr_at + j;
    let j_indices_at = j_indices[at_2];
    loop {
      let old_word = atomicLoad(&top[j_indices_at]);
      if (atomicCompareExchangeWeak(&top[j_indices_at], old_word, bitcast<u32>(max_f32(bitcast<f32>(old_word), A[at_2]))).exchanged) {
        break;
      }
    }
    atomicAdd(&count[j_indices_at], 1i);
  }
}
