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
var<workgroup> As: array<f16, 4096>;
var<workgroup> Bs: array<f16, 4096>;

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
  var block_x = i32(group.x);
  var block_y = i32(group.y);
  if (i32(groups.x) != ((params.n + 63i) / 64i) || i32(groups.y) != ((params.m + 63i) / 64i) || i32(groups.z) != 1i) {
    let linear = i32(group.x + group.y * groups.x);
    if (linear >= ((params.n + 63i) / 64i) * ((params.m + 63i) / 64i)) {
      return;
    }
    block_x = linear % ((params.n + 63i) / 64i);
    block_y = linear / ((params.n + 63i) / 64i);
  }
  let part = params.k / 32i;
  let at = i32(local.z) * 8i + (i32(local.y) * 4i + i32(local.x) / 8i);
  let at_3 = i32(local.x) % 8i * 4i;
  let at_5 = block_y * 64i;
  let at_7 = i32(local.z) * 4i + (i32(local.y) * 2i + i32(local.x) / 16i);
  let rest = i32(local.x) % 16i;
  let at_9 = rest * 4i;
  let at_11 = block_x * 64i + at_9;
  let at_13 = (at_5 + at) * params.k;
  let at_20 = 16i + at;
  let at_21 = (at_5 + at_20) * params.k;
  let at_26 = 32i + at;
  let at_27 = (at_5 + at_26) * params.k;
  let at_32 = 48i + at;
  let at_33 = (at_5 + at_32) * params.k;
  let at_42 = 8i + at_7;
  let at_47 = 16i + at_7;
  let at_52 = 24i + at_7;
  let at_57 = i32(local.z) * 32i;
  let at_64 = i32(local.y) * 32i;
  var Cr_0: subgroup_matrix_result<f32, 16, 16>;
  var Cr_1: subgroup_matrix_result<f32, 16, 16>;
  var Cr_2: subgroup_matrix_result<f32, 16, 16>;
  var Cr_3: subgroup_matrix_result<f32, 16, 16>;
  Cr_0 = subgroup_matrix_result<f32, 16, 16>(0.0f);
  Cr_1 = subgroup_matrix_result<f32, 16, 16>(0.0f);
  Cr_2 = subgroup_matrix_result<f32, 16, 16>(0.0f);
  Cr_3 = subgroup_matrix_result<f32, 16, 16>(0.0f);
  if (0i < part) {
    for (var round_4 = 0i; round_4 < 4i; round_4++) {
      let at_2 = round_4 * 16i + at;
      let at_4 = at_2 * 32i + at_3;
      let at_6 = (at_5 + at_2) * params.k + at_3;
      let A_vector = A[(at_6) >> 2u];
      let A_0 = f32(A_vector.x);
      let A_1 = f32(A_vector.y);
      let A_2 = f32(A_vector.z);
      let A_3 = f32(A_vector.w);
      As[at_4] = f16(A_0);
      As[at_4 + 1i] = f16(A_1);
      As[at_4 + 2i] = f16(A_2);
      As[at_4 + 3i] = f16(A_3);
    }
    for (var round_2_2 = 0i; round_2_2 < 4i; round_2_2++) {
      let at_8 = round_2_2 * 8i + at_7;
      let at_10 = at_8 * 64i + at_9;
      let at_12 = at_8 * params.n + at_11;
      let B_vector = B[(at_12) >> 2u];
      let B_4 = f32(B_vector.x);
      let B_5 = f32(B_vector.y);
      let B_6 = f32(B_vector.z);
      let B_7 = f32(B_vector.w);
      Bs[at_10] = f16(B_4);
      Bs[at_10 + 1i] = f16(B_5);
      Bs[at_10 + 2i] = f16(B_6);
      Bs[at_10 + 3i] = f16(B_7);
    }
  }
  workgroupBarrier();
  for (var po = 0i; po < part; po++) {
    let test = po + 1i < part;
    let at_14 = (po + 1i) * 32i;
    let at_15 = at_14 + at_3;
    let at_16 = at_13 + at_15;
    let at_17 = at_16 + 1i;
    let at_18 = at_16 + 2i;
    let at_19 = at_16 + 3i;
    let at_22 = at_21 + at_15;
    let at_23 = at_22 + 1i;
    let at_24 = at_22 + 2i;
    let at_25 = at_22 + 3i;
    let at_28 = at_27 + at_15;
    let at_29 = at_28 + 1i;
    let at_30 = at_28 + 2i;
    let at_31 = at_28 + 3i;
    let at_34 = at_33 + at_15;
    let at_35 = at_34 + 1i;
    let at_36 = at_34 + 2i;
    let at_37 = at_34 + 3i;
    let at_38 = (at_14 + at_7) * params.n + at_11;
    let at_39 = at_38 + 1i;
    let at_40 = at_38 + 2i;
    let at_41 = at_38 + 3i;
    let at_43 = (at_14 + at_42) * params.n + at_11;
    let at_44 = at_43 + 1i;
    let at_45 = at_43 + 2i;
    let at_46 = at_43 + 3i;
    let at_48 = (at_14 + at_47) * params.n + at_11;
    let at_49 = at_48 + 1i;
    let at_50 = at_48 + 2i;
    let at_51 = at_48 + 3i;
    let at_53 = (at_14 + at_52) * params.n + at_11;
    let at_54 = at_53 + 1i;
    let at_55 = at_53 + 2i;
    let at_56 = at_53 + 3i;
    let rest_2 = po % 2i;
    let at_58 = rest_2 * 64i + at_57;
    let at_59 = at_58 * 32i;
    let at_60 = (at_58 + 1i) * 32i;
    let at_61 = (at_58 + 16i) * 32i;
    let at_62 = (at_58 + 17i) * 32i;
    let at_63 = rest_2 * 32i;
    let at_65 = at_63 * 64i + at_64;
    let at_66 = (at_63 + 1i) * 64i + at_64;
    let at_67 = (at_63 + 16i) * 64i + at_64;
    let at_68 = (at_63 + 17i) * 64i + at_64;
    let rest_3 = (po + 1i) % 2i;
    let at_69 = rest_3 * 64i;
    let at_70 = (at_69 + at) * 32i + at_3;
    let at_71 = at_70 + 1i;
    let at_72 = at_70 + 2i;
    let at_73 = at_70 + 3i;
    let at_74 = (at_69 + at_20) * 32i + at_3;
    let at_75 = at_74 + 1i;
    let at_76 = at_74 + 2i;
    let at_77 = at_74 + 3i;
    let at_78 = (at_69 + at_26) * 32i + at_3;
    let at_79 = at_78 + 1i;
    let at_80 = at_78 + 2i;
    let at_81 = at_78 + 3i;
    let at_82 = (at_69 + at_32) * 32i + at_3;
    let at_83 = at_82 + 1i;
    let at_84 = at_82 + 2i;
    let at_85 = at_82 + 3i;
    let at_86 = rest_3 * 32i;
    let at_87 = (at_86 + at_7) * 64i + at_9;
    let at_88 = at_87 + 1i;
    let at_89 = at_87 + 2i;
    let at_90 = at_87 + 3i;
    let at_91 = (at_86 + at_42) * 64i + at_9;
    let at_92 = at_91 + 1i;
    let at_93 = at_91 + 2i;
    let at_94 = at_91 + 3i;
    let at_95 = (at_86 + at_47) * 64i + at_9;
    let at_96 = at_95 + 1i;
    let at_97 = at_95 + 2i;
    let at_98 = at_95 + 3i;
    let at_99 = (at_86 + at_52) * 64i + at_9;
    let at_100 = at_99 + 1i;
    let at_101 = at_99 + 2i;
    let at_102 = at_99 + 3i;
    var As_ahead_0: f32;
    var As_ahead_1: f32;
    var As_ahead_2: f32;
    var As_ahead_3: f32;
    var As_ahead_4: f32;
    var As_ahead_5: f32;
    var As_ahead_6: f32;
    var As_ahead_7: f32;
    var As_ahead_8: f32;
    var As_ahead_9: f32;
    var As_ahead_10: f32;
    var As_ahead_11: f32;
    var As_ahead_12: f32;
    var As_ahead_13: f32;
    var As_ahead_14: f32;
    var As_ahead_15: f32;
    var Bs_ahead_0: f32;
    var Bs_ahead_1: f32;
    var Bs_ahead_2: f32;
    var Bs_ahead_3: f32;
    var Bs_ahead_4: f32;
    var Bs_ahead_5: f32;
    var Bs_ahead_6: f32;
    var Bs_ahead_7: f32;
    var Bs_ahead_8: f32;
    var Bs_ahead_9: f32;
    var Bs_ahead_10: f32;
    var Bs_ahead_11: f32;
    var Bs_ahead_12: f32;
    var Bs_ahead_13: f32;
    var Bs_ahead_14: f32;
    var Bs_ahead_15: f32;
    if (test) {
      let A_vector_1 = A[(at_16) >> 2u];
      let A_8 = f32(A_vector_1.x);
      let A_9 = f32(A_vector_1.y);
      let A_10 = f32(A_vector_1.z);
      let A_11 = f32(A_vector_1.w);
      As_ahead_0 = A_8;
      As_ahead_1 = A_9;
      As_ahead_2 = A_10;
      As_ahead_3 = A_11;
      let A_vector_2 = A[(at_22) >> 2u];
      let A_12 = f32(A_vector_2.x);
      let A_13 = f32(A_vector_2.y);
      let A_14 = f32(A_vector_2.z);
      let A_15 = f32(A_vector_2.w);
      As_ahead_4 = A_12;
      As_ahead_5 = A_13;
      As_ahead_6 = A_14;
      As_ahead_7 = A_15;
      let A_vector_3 = A[(at_28) >> 2u];
      let A_16 = f32(A_vector_3.x);
      let A_17 = f32(A_vector_3.y);
      let A_18 = f32(A_vector_3.z);
      let A_19 = f32(A_vector_3.w);
      As_ahead_8 = A_16;
      As_ahead_9 = A_17;
      As_ahead_10 = A_18;
      As_ahead_11 = A_19;
      let A_vector_4 = A[(at_34) >> 2u];
      let A_20 = f32(A_vector_4.x);
      let A_21 = f32(A_vector_4.y);
      let A_22 = f32(A_vector_4.z);
      let A_23 = f32(A_vector_4.w);
      As_ahead_12 = A_20;
      As_ahead_13 = A_21;
      As_ahead_14 = A_22;
      As_ahead_15 = A_23;
      let B_vector_1 = B[(at_38) >> 2u];
      let B_24 = f32(B_vector_1.x);
      let B_25 = f32(B_vector_1.y);
      let B_26 = f32(B_vector_1.z);
      let B_27 = f32(B_vector_1.w);
      Bs_ahead_0 = B_24;
      Bs_ahead_1 = B_25;
      Bs_ahead_2 = B_26;
      Bs_ahead_3 = B_27;
      let B_vector_2 = B[(at_43) >> 2u];
      let B_28 = f32(B_vector_2.x);
      let B_29 = f32(B_vector_2.y);
      let B_30 = f32(B_vector_2.z);
      let B_31 = f32(B_vector_2.w);
      Bs_ahead_4 = B_28;
      Bs_ahead_5 = B_29;
      Bs_ahead_6 = B_30;
      Bs_ahead_7 = B_31;
      let B_vector_3 = B[(at_48) >> 2u];
      let B_32 = f32(B_vector_3.x);
      let B_33 = f32(B_vector_3.y);
      let B_34 = f32(B_vector_3.z);
      let B_35 = f32(B_vector_3.w);
      Bs_ahead_8 = B_32;
      Bs_ahead_9 = B_33;
      Bs_ahead_10 = B_34;
      Bs_ahead_11 = B_35;
      let B_vector_4 = B[(at_53) >> 2u];
      let B_36 = f32(B_vector_4.x);
      let B_37 = f32(B_vector_4.y);
      let B_38 = f32(B_vector_4.z);
      let B_39 = f32(B_vector_4.w);
      Bs_ahead_12 = B_36;
      Bs_ahead_13 = B_37;
      Bs_ahead_14 = B_38;
      Bs_ahead_15 = B_39;
    }
    var Ar_2_0: subgroup_matrix_left<f16, 16, 16>;
    var Ar_2_1: subgroup_matrix_left<f16, 16, 16>;
    Ar_2_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&As, u32((at_59)), u32((at_60) - (at_59)));
    Ar_2_1 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&As, u32((at_61)), u32((at_62) - (at_61)));
    var Br_2_0: subgroup_matrix_right<f16, 16, 16>;
    var Br_2_1: subgroup_matrix_right<f16, 16, 16>;
    Br_2_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&Bs, u32((at_65)), u32((at_66) - (at_65)));
    Br_2_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&Bs, u32((at_65 + 16i)), u32((at_66 + 16i) - (at_65 + 16i)));
    Cr_0 = subgroupMatrixMultiplyAccumulate(Ar_2_0, Br_2_0, Cr_0);
    Cr_1 = subgroupMatrixMultiplyAccumulate(Ar_2_0, Br_2_1, Cr_1);
    Cr_2 = subgroupMatrixMultiplyAccumulate(Ar_2_1, Br_2_0, Cr_2);
    Cr_3 = subgroupMatrixMultiplyAccumulate(Ar_2_1, Br_2_1, Cr_3);
    var Ar_3_0: subgroup_matrix_left<f16, 16, 16>;
    var Ar_3_1: subgroup_matrix_left<f16, 16, 16>;
    Ar_3_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&As, u32((at_59 + 16i)), u32((at_60 + 16i) - (at_59 + 16i)));
    Ar_3_1 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&As, u32((at_61 + 16i)), u32((at_62 + 16i) - (at_61 + 16i)));
    var Br_3_0: subgroup_matrix_right<f16, 16, 16>;
    var Br_3_1: subgroup_matrix_right<f16, 16, 16>;
    Br_3_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&Bs, u32((at_67)), u32((at_68) - (at_67)));
    Br_3_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&Bs, u32((at_67 + 16i)), u32((at_68 + 16i) - (at_67 + 16i)));
    Cr_0 = subgroupMatrixMultiplyAccumulate(Ar_3_0, Br_3_0, Cr_0);
    Cr_1 = subgroupMatrixMultiplyAccumulate(Ar_3_0, Br_3_1, Cr_1);
    Cr_2 = subgroupMatrixMultiplyAccumulate(Ar_3_1, Br_3_0, Cr_2);
    Cr_3 = subgroupMatrixMultiplyAccumulate(Ar_3_1, Br_3_1, Cr_3);
    if (test) {
      As[at_70] = f16(As_ahead_0);
      As[at_71] = f16(As_ahead_1);
      As[at_72] = f16(As_ahead_2);
      As[at_73] = f16(As_ahead_3);
      As[at_74] = f16(As_ahead_4);
      As[at_75] = f16(As_ahead_5);
      As[at_76] = f16(As_ahead_6);
      As[at_77] = f16(As_ahead_7);
      As[at_78] = f16(As_ahead_8);
      As[at_79] = f16(As_ahead_9);
      As[at_80] = f16(As_ahead_10);
      As[at_81] = f16(As_ahead_11);
      As[at_82] = f16(As_ahead_12);
      As[at_83] = f16(As_ahead_13);
      As[at_84] = f16(As_ahead_14);
      As[at_85] = f16(As_ahead_15);
      Bs[at_87] = f16(Bs_ahead_0);
      Bs[at_88] = f16(Bs_ahead_1);
      Bs[at_89] = f16(Bs_ahead_2);
      Bs[at_90] = f16(Bs_ahead_3);
      Bs[at_91] = f16(Bs_ahead_4);
      Bs[at_92] = f16(Bs_ahead_5);
      Bs[at_93] = f16(Bs_ahead_6);
      Bs[at_94] = f16(Bs_ahead_7);
      Bs[at_95] = f16(Bs_ahead_8);
      Bs[at_96] = f16(Bs_ahead_9);
      Bs[at_97] = f16(Bs_ahead_10);
      Bs[at_98] = f16(Bs_ahead_11);
      Bs[at_99] = f16(Bs_ahead_12);
      Bs[at_100] = f16(Bs_ahead_13);
      Bs[at_101] = f16(Bs_ahead_14);
      Bs[at_102] = f16(Bs_ahead_15);
    }
    workgroupBarrier();
  }
  let at_103 = (i32(local.z) * 2i + i32(local.y)) * 2i;
  let at_104 = at_103 * 2i;
  let at_105 = at_104 * 16i;
  subgroupMatrixStore<row_major>(&Cs, u32((at_105 * 16i)), Cr_0, u32(((at_105 + 1i) * 16i) - (at_105 * 16i)));
  let at_106 = (at_104 + 1i) * 16i;
  subgroupMatrixStore<row_major>(&Cs, u32((at_106 * 16i)), Cr_1, u32(((at_106 + 1i) * 16i) - (at_106 * 16i)));
  let at_107 = (at_103 + 1i) * 2i;
  let at_108 = at_107 * 16i;
  subgroupMatrixStore<row_major>(&Cs, u32((at_108 * 16i)), Cr_2, u32(((at_108 + 1i) * 16i) - (at_108 * 16i)));
  let at_109 = (at_107 + 1i) * 16i;
  subgroupMatrixStore<row_major>(&Cs, u32((at_109 * 16i)), Cr_3, u32(((at_109 + 1i) * 16i) - (at_109 * 16i)));
  workgroupBarrier();
  let at_111 = block_x * 64i;
  for (var round_3 = 0i; round_3 < 32i; round_3++) {
    let part_2 = round_3 / 16i;
    let rest_4 = round_3 / 4i % 2i;
    let at_110 = round_3 % 2i * 8i + at_7;
    let rest_5 = round_3 / 8i % 2i;
    let rest_6 = round_3 / 2i % 2i;
    C[(at_5 + (part_2 * 32i + (rest_4 * 16i + at_110))) * params.n + (at_111 + (rest_5 * 32i + (rest_6 * 16i + rest)))] = to_f16(Cs[((((part_2 * 2i + rest_5) * 2i + rest_4) * 2i + rest_6) * 16i + at_110) * 16i + rest]);
  }
}
