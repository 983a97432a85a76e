/**
 * Measures which threads of a block can exchange registers. WebGPU guarantees a minimum subgroup size, but not which threads
 * form a subgroup, so the device runs test exchanges in blocks of several shapes.
 */

/** Maximum number of neighbours tested. */
const MOST = 32
const SHAPES = [
  [64, 1, 1],
  [8, 8, 1],
  [16, 4, 1],
  [4, 2, 8],
  [32, 2, 1],
] as const
const THREADS = 64
const STEPS = Math.log2(MOST)

/**
 * Number of consecutive aligned threads that can exchange registers in every kernel: a power of two, at most the smallest
 * subgroup size; 1 without subgroups or if threads are numbered in another order.
 */
export async function lanesOf(device: GPUDevice, smallest: number | undefined): Promise<number> {
  if (!device.features.has('subgroups') || smallest === undefined) return 1
  const bytes = SHAPES.length * THREADS * STEPS * 4
  const out = device.createBuffer({ size: bytes, usage: GPU_STORAGE | GPU_COPY_SRC })
  const back = device.createBuffer({ size: bytes, usage: GPU_MAP_READ | GPU_COPY_DST })
  device.pushErrorScope('validation')
  try {
    const encoder = device.createCommandEncoder()
    for (const [k, shape] of SHAPES.entries()) {
      const module = device.createShaderModule({ code: text(shape, k) })
      const pipeline = device.createComputePipeline({
        layout: 'auto',
        compute: { module, entryPoint: 'ask' },
      })
      const group = device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: { buffer: out } }],
      })
      const pass = encoder.beginComputePass()
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, group)
      pass.dispatchWorkgroups(1)
      pass.end()
    }
    encoder.copyBufferToBuffer(out, 0, back, 0, bytes)
    device.queue.submit([encoder.finish()])
    const failed = device.popErrorScope()
    await back.mapAsync(GPU_READ)
    if (await failed) return 1
    return fromAnswers(new Uint32Array(back.getMappedRange().slice(0)), smallest)
  } catch {
    // A device that cannot answer is asked for no exchange.
    return 1
  } finally {
    out.destroy()
    back.destroy()
  }
}

const [GPU_MAP_READ, GPU_COPY_SRC, GPU_COPY_DST, GPU_STORAGE] = [1, 4, 8, 128]
const GPU_READ = 1

/** For each thread, the number of the thread that each step exchanges with. */
const text = ([x, y, z]: (typeof SHAPES)[number], at: number): string => `enable subgroups;
@group(0) @binding(0) var<storage, read_write> seen: array<u32>;
@compute @workgroup_size(${x}, ${y}, ${z})
fn ask(@builtin(local_invocation_index) own: u32) {
${Array.from({ length: STEPS }, (_, k) => `  seen[${at * THREADS * STEPS + k}u + own * ${STEPS}u] = subgroupShuffleXor(own, ${2 ** k}u);`).join('\n')}
}`

/** From the threads met, by shape, thread and step. */
export function fromAnswers(seen: Uint32Array, smallest: number): number {
  let lanes = 1
  for (let k = 0; 2 * lanes <= Math.min(MOST, smallest); k++) {
    for (let at = 0; at < SHAPES.length * THREADS; at++)
      if (seen[at * STEPS + k] !== ((at % THREADS) ^ lanes)) return lanes
    lanes *= 2
  }
  return lanes
}
