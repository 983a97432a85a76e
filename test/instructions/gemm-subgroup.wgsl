enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, subgroup_uniformity);
diagnostic(off, chromium.subgroup_matrix_uniformity);

struct Params {
  m: i32,
  n: i32,
  k: i32,
}

@group(0) @binding(3) var<uniform> params: Params;

@group(0) @binding(0) var<storage, read> A: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read> B: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read_write> C: array<f16>;

var<workgroup> Cs: array<f32, 4096>;
var<workgroup> As: array<f16, 2048>;
var<workgroup> Bs: array<f16, 2048>;

fn half_bits(x: f32) -> u32 {
  let u = bitcast<u32>(x);
  let a = u & 0x7fffffffu;
  var h = ((a + 0xfffu + ((a >> 13u) & 1u)) >> 13u) - 0x1c000u;
  if (a < 0x38800000u) {
    h = u32(round(bitcast<f32>(a) * 16777216.0));
  }
  if (a >= 0x477ff000u) {
    h = select(0x7c00u, 0x7e00u, a > 0x7f800000u);
  }
  return ((u >> 16u) & 0x8000u) | h;
}

fn to_f16(x: f32) -> f16 {
  return bitcast<vec2<f16>>(half_bits(x)).x;
}

@compute @workgroup_size(32, 2, 2)
fn gemm_f16_0(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let linear = i32(group.x + group.y * groups.x);
  if (linear >= ((params.n + 63i) / 64i) * ((params.m + 63i) / 64i)) {
    return;
  }
  let block_x = linear % ((params.n + 63i) / 64i);
  let block_y = linear / ((params.n + 63i) / 64i);
  let at = i32(local.z) * 8i + (i32(local.y) * 4i + i32(local.x) / 8i);
  let at_3 = i32(local.x) % 8i * 4i;
  let at_5 = block_y * 64i;
  let at_8 = i32(local.z) * 4i + (i32(local.y) * 2i + i32(local.x) / 16i);
  let rest = i32(local.x) % 16i;
  let at_10 = rest * 4i;
  let at_13 = block_x * 64i + at_10;
  let at_15 = i32(local.z) * 32i * 32i;
  let at_16 = (i32(local.z) * 32i + 1i) * 32i;
  let at_17 = (i32(local.z) * 32i + 16i) * 32i;
  let at_18 = (i32(local.z) * 32i + 17i) * 32i;
  let at_19 = i32(local.y) * 32i;
  let at_20 = 64i + at_19;
  let at_21 = at_19 + 16i;
  let at_22 = at_20 + 16i;
  let at_23 = at_15 + 16i;
  let at_24 = at_16 + 16i;
  let at_25 = at_17 + 16i;
  let at_26 = at_18 + 16i;
  let at_27 = 1024i + at_19;
  let at_28 = 1088i + at_19;
  let at_29 = at_27 + 16i;
  let at_30 = at_28 + 16i;
  var Cr_0: subgroup_matrix_result<f32, 16, 16>;
  var Cr_1: subgroup_matrix_result<f32, 16, 16>;
  var Cr_2: subgroup_matrix_result<f32, 16, 16>;
  var Cr_3: subgroup_matrix_result<f32, 16, 16>;
  Cr_0 = subgroup_matrix_result<f32, 16, 16>(0.0f);
  Cr_1 = subgroup_matrix_result<f32, 16, 16>(0.0f);
  Cr_2 = subgroup_matrix_result<f32, 16, 16>(0.0f);
  Cr_3 = subgroup_matrix_result<f32, 16, 16>(0.0f);
  let po_end = params.k / 32i;
  for (var po = 0i; po < po_end; po++) {
    let at_6 = po * 32i + at_3;
    for (var round_1 = 0i; round_1 < 4i; round_1++) {
      let at_2 = round_1 * 16i + at;
      let at_4 = at_2 * 32i + at_3;
      let at_7 = (at_5 + at_2) * params.k + at_6;
      let A_vector = A[(at_7) >> 2u];
      let A_0 = f32(A_vector.x);
      let A_1 = f32(A_vector.y);
      let A_2 = f32(A_vector.z);
      let A_3 = f32(A_vector.w);
      As[at_4] = f16(A_0);
      As[at_4 + 1i] = f16(A_1);
      As[at_4 + 2i] = f16(A_2);
      As[at_4 + 3i] = f16(A_3);
    }
    let at_12 = po * 32i;
    for (var round_2 = 0i; round_2 < 4i; round_2++) {
      let at_9 = round_2 * 8i + at_8;
      let at_11 = at_9 * 64i + at_10;
      let at_14 = (at_12 + at_9) * params.n + at_13;
      let B_vector = B[(at_14) >> 2u];
      let B_4 = f32(B_vector.x);
      let B_5 = f32(B_vector.y);
      let B_6 = f32(B_vector.z);
      let B_7 = f32(B_vector.w);
      Bs[at_11] = f16(B_4);
      Bs[at_11 + 1i] = f16(B_5);
      Bs[at_11 + 2i] = f16(B_6);
      Bs[at_11 + 3i] = f16(B_7);
    }
    workgroupBarrier();
    var Ar_2_0: subgroup_matrix_left<f16, 16, 16>;
    var Ar_2_1: subgroup_matrix_left<f16, 16, 16>;
    Ar_2_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&As, u32((at_15)), u32((at_16) - (at_15)));
    Ar_2_1 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&As, u32((at_17)), u32((at_18) - (at_17)));
    var Br_2_0: subgroup_matrix_right<f16, 16, 16>;
    var Br_2_1: subgroup_matrix_right<f16, 16, 16>;
    Br_2_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&Bs, u32((at_19)), u32((at_20) - (at_19)));
    Br_2_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&Bs, u32((at_21)), u32((at_22) - (at_21)));
    Cr_0 = subgroupMatrixMultiplyAccumulate(Ar_2_0, Br_2_0, Cr_0);
    Cr_1 = subgroupMatrixMultiplyAccumulate(Ar_2_0, Br_2_1, Cr_1);
    Cr_2 = subgroupMatrixMultiplyAccumulate(Ar_2_1, Br_2_0, Cr_2);
    Cr_3 = subgroupMatrixMultiplyAccumulate(Ar_2_1, Br_2_1, Cr_3);
    var Ar_3_0: subgroup_matrix_left<f16, 16, 16>;
    var Ar_3_1: subgroup_matrix_left<f16, 16, 16>;
    Ar_3_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&As, u32((at_23)), u32((at_24) - (at_23)));
    Ar_3_1 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&As, u32((at_25)), u32((at_26) - (at_25)));
    var Br_3_0: subgroup_matrix_right<f16, 16, 16>;
    var Br_3_1: subgroup_matrix_right<f16, 16, 16>;
    Br_3_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&Bs, u32((at_27)), u32((at_28) - (at_27)));
    Br_3_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&Bs, u32((at_29)), u32((at_30) - (at_29)));
    Cr_0 = subgroupMatrixMultiplyAccumulate(Ar_3_0, Br_3_0, Cr_0);
    Cr_1 = subgroupMatrixMultiplyAccumulate(Ar_3_0, Br_3_1, Cr_1);
    Cr_2 = subgroupMatrixMultiplyAccumulate(Ar_3_1, Br_3_0, Cr_2);
    Cr_3 = subgroupMatrixMultiplyAccumulate(Ar_3_1, Br_3_1, Cr_3);
    workgroupBarrier();
  }
  let at_31 = (i32(local.z) * 2i + i32(local.y)) * 2i;
  let at_32 = at_31 * 2i;
  let at_33 = at_32 * 16i;
  subgroupMatrixStore<row_major>(&Cs, u32((at_33 * 16i)), Cr_0, u32(((at_33 + 1i) * 16i) - (at_33 * 16i)));
  let at_34 = (at_32 + 1i) * 16i;
  subgroupMatrixStore<row_major>(&Cs, u32((at_34 * 16i)), Cr_1, u32(((at_34 + 1i) * 16i) - (at_34 * 16i)));
  let at_35 = (at_31 + 1i) * 2i;
  let at_36 = at_35 * 16i;
  subgroupMatrixStore<row_major>(&Cs, u32((at_36 * 16i)), Cr_2, u32(((at_36 + 1i) * 16i) - (at_36 * 16i)));
  let at_37 = (at_35 + 1i) * 16i;
  subgroupMatrixStore<row_major>(&Cs, u32((at_37 * 16i)), Cr_3, u32(((at_37 + 1i) * 16i) - (at_37 * 16i)));
  workgroupBarrier();
  let at_39 = block_x * 64i;
  for (var round_3 = 0i; round_3 < 32i; round_3++) {
    let part = round_3 / 16i;
    let rest_2 = round_3 / 4i % 2i;
    let at_38 = round_3 % 2i * 8i + at_8;
    let rest_3 = round_3 / 8i % 2i;
    let rest_4 = round_3 / 2i % 2i;
    C[(at_5 + (part * 32i + (rest_2 * 16i + at_38))) * params.n + (at_39 + (rest_3 * 32i + (rest_4 * 16i + rest)))] = to_f16(Cs[((((part * 2i + rest_3) * 2i + rest_2) * 2i + rest_4) * 16i + at_38) * 16i + rest]);
  }
}
