struct Params {
  m: i32,
}

@group(0) @binding(3) var<uniform> params: Params;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

var<workgroup> x_shared: array<f32, 64>;

@compute @workgroup_size(16, 1, 1)
fn tile_0(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let linear = i32(group.x + group.y * groups.x);
  if (linear >= params.m) {
    return;
  }
  let block_x = linear;
  let at_2 = block_x * 64i;
  for (var round_1 = 0i; round_1 < 4i; round_1++) {
    let at = round_1 * 16i + i32(local.x);
    x_shared[at] = x[at_2 + at];
  }
  workgroupBarrier();
  let at_3 = block_x * 16i + i32(local.x);
  y[at_3] = 0.0f;
  for (var c = 0i; c < 64i; c++) {
    y[at_3] = y[at_3] + x_shared[c] * w[c * 16i + i32(local.x)];
  }
}
