/**
 * Zero-fill as a dispatch. `clearBuffer` is a copy command, which ends the compute pass and synchronises before and after. A small
 * kernel stays in the pass.
 */
import { getOrAdd } from '../../ir/memoize.ts'
import type { GpuBuffer } from './buffer.ts'
import type { Session } from './session.ts'

const THREADS = 256
/** Buffer sizes are multiples of the 16 bytes of an element. */
const TEXT = `@group(0) @binding(0) var<storage, read_write> out: array<vec4<u32>>;
@compute @workgroup_size(${THREADS})
fn clear(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var k = at.x; k < arrayLength(&out); k += groups.x * ${THREADS}u) {
    out[k] = vec4<u32>();
  }
}`

interface ClearLaunch {
  readonly pipeline: GPUComputePipeline
  readonly group: GPUBindGroup
  readonly grid: readonly [number, number, number]
}

/** Dispatches that fill buffers with zeros. */
export class Clears {
  #pipeline: GPUComputePipeline | undefined
  readonly #groups = new Map<GpuBuffer, GPUBindGroup>()

  constructor(private readonly session: Session) {}

  /** The dispatch for a buffer; `undefined` for a buffer that is too large to be bound. */
  launchFor(buffer: GpuBuffer): ClearLaunch | undefined {
    const { limits } = this.session.device
    if (buffer.size > limits.maxStorageBufferBindingSize) return undefined
    const pipeline = this.#compile()
    const groups = Math.ceil(buffer.size / (16 * THREADS))
    return {
      pipeline,
      group: this.#bindGroup(buffer, pipeline),
      grid: [Math.min(groups, limits.maxComputeWorkgroupsPerDimension), 1, 1],
    }
  }

  #compile(): GPUComputePipeline {
    const { device } = this.session
    this.#pipeline ??= device.createComputePipeline({
      label: 'clear',
      layout: 'auto',
      compute: { module: device.createShaderModule({ label: 'clear', code: TEXT }), entryPoint: 'clear' },
    })
    return this.#pipeline
  }

  #bindGroup(buffer: GpuBuffer, pipeline: GPUComputePipeline): GPUBindGroup {
    return getOrAdd(this.#groups, buffer, () => {
      buffer.onFree.add(() => this.#groups.delete(buffer))
      return this.session.device.createBindGroup({
        label: 'clear',
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: buffer.binding }],
      })
    })
  }
}
