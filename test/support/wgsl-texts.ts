/** The device suite's kernels in WGSL, written by hand. */
import type { ArgSpec, ModuleText } from '../../src/runtime/device.ts'
import { ARGS, type SuiteTexts } from './device-suite.ts'

const BLOCK = 64

export function wgsl(
  name: string,
  text: string,
  entries: Readonly<Record<string, readonly ArgSpec[]>>,
  block: readonly [number, number, number] = [BLOCK, 1, 1],
): ModuleText {
  return {
    target: 'wgsl',
    name,
    text,
    entries: Object.entries(entries).map(([entry, args]) => ({ name: entry, args, block, sharedBytes: 0 })),
  }
}

const blocksFor = (n: number): [number, number, number] => [Math.max(1, Math.ceil(n / BLOCK)), 1, 1]

const scale = wgsl(
  'scale',
  `struct Scalars { alpha: f32, n: i32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> s: Scalars;
@compute @workgroup_size(${BLOCK})
fn scale(@builtin(global_invocation_id) id: vec3u) {
  let i = i32(id.x);
  if (i < s.n) { y[i] = s.alpha * x[i]; }
}
`,
  { scale: ARGS.scale },
)

const sums = wgsl(
  'sums',
  `struct Scalars { n: i32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> s: Scalars;
var<workgroup> part: array<f32, ${BLOCK}>;
@compute @workgroup_size(${BLOCK})
fn sums(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_id) thread: vec3u) {
  let t = thread.x;
  part[t] = x[block.x * ${BLOCK} + t];
  for (var h = ${BLOCK / 2}u; h > 0u; h = h / 2u) {
    workgroupBarrier();
    if (t < h) { part[t] += part[t + h]; }
  }
  if (t == 0u && i32(block.x) < s.n) { y[block.x] = part[0]; }
}
`,
  { sums: ARGS.sums },
)

const scalars = wgsl(
  'scalars',
  `struct Scalars { a: f32, b: i32, c: u32, d: u32, e: f32 }
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<uniform> s: Scalars;
@compute @workgroup_size(1)
fn scalars() {
  y[0] = s.a; y[1] = f32(s.b); y[2] = f32(s.c); y[3] = f32(s.d); y[4] = s.e;
}
`,
  { scalars: ARGS.scalars },
  [1, 1, 1],
)

const steps = wgsl(
  'steps',
  `struct Scalars { n: i32 }
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<uniform> s: Scalars;
@compute @workgroup_size(${BLOCK})
fn increment(@builtin(global_invocation_id) id: vec3u) {
  if (i32(id.x) < s.n) { y[id.x] += 1.0; }
}
@compute @workgroup_size(${BLOCK})
fn double(@builtin(global_invocation_id) id: vec3u) {
  if (i32(id.x) < s.n) { y[id.x] *= 2.0; }
}
`,
  { increment: ARGS.increment, double: ARGS.double },
)

const blocks = wgsl(
  'blocks',
  `@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1)
fn blocks(@builtin(workgroup_id) b: vec3u, @builtin(num_workgroups) g: vec3u) {
  let k = (b.z * g.y + b.y) * g.x + b.x;
  y[k] = f32(k);
}
`,
  { blocks: ARGS.blocks },
  [1, 1, 1],
)

const broken = wgsl(
  'broken',
  `@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1)
fn blocks() {
  let fine = 1.0;
  y[0] = fine + nowhere;
}
`,
  { blocks: ARGS.blocks },
  [1, 1, 1],
)

export const WGSL_TEXTS: SuiteTexts = {
  scale: { module: scale, grid: blocksFor },
  sums: { module: sums, grid: (n) => [n, 1, 1] },
  scalars: { module: scalars, grid: () => [1, 1, 1] },
  steps: { module: steps, grid: blocksFor },
  blocks: { module: blocks, grid: () => [2, 3, 4] },
  broken: { module: broken, line: 5, token: 'nowhere' },
}
