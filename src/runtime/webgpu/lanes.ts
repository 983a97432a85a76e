/**
 * Measures which threads of a block can exchange registers. WebGPU guarantees a minimum subgroup size, but not which threads
 * form a subgroup, so the device runs test exchanges in blocks of several shapes.
 */

/** Largest group of consecutive threads that is tested for register exchange. */
const MAX_LANES = 32
const SHAPES = [
  [64, 1, 1],
  [8, 8, 1],
  [16, 4, 1],
  [4, 2, 8],
  [32, 2, 1],
] as const
const THREADS = 64
const STEPS = Math.log2(MAX_LANES)

/**
 * Number of consecutive aligned threads that can exchange registers in every kernel: a power of two, at most the smallest
 * subgroup size; 1 without subgroups or if threads are numbered in another order.
 */
export async function lanesOf(device: GPUDevice, smallest: number | undefined): Promise<number> {
  if (!device.features.has('subgroups') || smallest === undefined) return 1
  const bytes = SHAPES.length * THREADS * STEPS * 4
  const output = device.createBuffer({ size: bytes, usage: GPU_STORAGE | GPU_COPY_SRC })
  const staging = device.createBuffer({ size: bytes, usage: GPU_MAP_READ | GPU_COPY_DST })
  device.pushErrorScope('validation')
  try {
    const encoder = device.createCommandEncoder()
    for (const [k, shape] of SHAPES.entries()) {
      const module = device.createShaderModule({ code: shaderSource(shape, k) })
      const pipeline = device.createComputePipeline({
        layout: 'auto',
        compute: { module, entryPoint: 'ask' },
      })
      const group = device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: { buffer: output } }],
      })
      const pass = encoder.beginComputePass()
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, group)
      pass.dispatchWorkgroups(1)
      pass.end()
    }
    encoder.copyBufferToBuffer(output, 0, staging, 0, bytes)
    device.queue.submit([encoder.finish()])
    const error = device.popErrorScope()
    await staging.mapAsync(GPU_READ)
    if (await error) return 1
    return lanesFromExchanges(new Uint32Array(staging.getMappedRange().slice(0)), smallest)
  } catch {
    // If the test fails, kernels on this device do not exchange registers.
    return 1
  } finally {
    output.destroy()
    staging.destroy()
  }
}

const [GPU_MAP_READ, GPU_COPY_SRC, GPU_COPY_DST, GPU_STORAGE] = [1, 4, 8, 128]
const GPU_READ = 1

/** Shader that stores, for each thread and step, the index of the thread that it exchanges with. */
const shaderSource = ([x, y, z]: (typeof SHAPES)[number], shapeIndex: number): string => `enable subgroups;
@group(0) @binding(0) var<storage, read_write> seen: array<u32>;
@compute @workgroup_size(${x}, ${y}, ${z})
fn ask(@builtin(local_invocation_index) own: u32) {
${Array.from({ length: STEPS }, (_, k) => `  seen[${shapeIndex * THREADS * STEPS + k}u + own * ${STEPS}u] = subgroupShuffleXor(own, ${2 ** k}u);`).join('\n')}
}`

/** Number of lanes from the partners that were measured. @param partners - By shape, thread and step */
export function lanesFromExchanges(partners: Uint32Array, smallest: number): number {
  let lanes = 1
  for (let k = 0; 2 * lanes <= Math.min(MAX_LANES, smallest); k++) {
    for (let thread = 0; thread < SHAPES.length * THREADS; thread++)
      if (partners[thread * STEPS + k] !== ((thread % THREADS) ^ lanes)) return lanes
    lanes *= 2
  }
  return lanes
}
