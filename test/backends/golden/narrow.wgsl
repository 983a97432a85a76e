struct Params {
  n: i32,
  limit: f32,
  on: u32,
}

@group(0) @binding(5) var<uniform> params: Params;

@group(0) @binding(0) var<storage, read> h: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<i32>;
@group(0) @binding(2) var<storage, read_write> flag: array<u32>;
@group(0) @binding(3) var<storage, read_write> half: array<f32>;
@group(0) @binding(4) var<storage, read_write> byte: array<u32>;

fn round_bf16(x: f32) -> f32 {
  let u = bitcast<u32>(x);
  let r = (u + 0x7fffu + ((u >> 16u) & 1u)) & 0xffff0000u;
  return bitcast<f32>(select(r, u, (u & 0x7fffffffu) > 0x7f800000u));
}

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn exp_f32(x: f32) -> f32 {
  return select(exp(x), x, is_nan(x));
}

fn to_u8(x: f32) -> i32 {
  let whole = select(i32(clamp(x, 0.0, 255.0)), i32(255), x >= 255.0);
  return select(select(whole, i32(0), x <= 0.0), i32(0), is_nan(x));
}

@compute @workgroup_size(64, 1, 1)
fn narrow_0(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let linear = i32(group.x + group.y * groups.x);
  if (linear >= ((params.n + 63i) / 64i)) {
    return;
  }
  let block_x = linear;
  let at = block_x * 64i + i32(local.x);
  if (at < params.n) {
    let h_at = h[at];
    let value = f32(b[at]);
    flag[at] = select(0u, 1u, (params.on != 0u) & (h_at < params.limit));
    half[at] = round_bf16(h_at * value);
    byte[at] = u32(((to_u8(exp_f32(value))) & 255));
  }
}
