/** Execution on WebGPU, on a `GPUDevice` of the caller or a new one. */
import { physicalGrid } from '../backends/grid-folding.ts'
import { arrayClass, type TypedArray } from '../ir/values/arrays.ts'
import { fromWords, type NarrowDtype, toWords, WORD } from '../ir/values/words.ts'
import { blocksOf } from '../plan/interpret.ts'
import type { PackedArray, Plan, PlanBuffer, PlanLaunch } from '../plan/schema.ts'
import { elementsOf, visibleBuffers } from './inputs.ts'
import type { Executor, GpuMemory } from './memory.ts'
import { failWith } from './plan-error.ts'

/** Values of `GPUBufferUsage` and `GPUMapMode`, which are not globals outside browsers. */
const MAP_READ = 1
const COPY_SRC = 4
const COPY_DST = 8
const UNIFORM = 64
const STORAGE = 128
const INDIRECT = 256

/** A device with the features and limits of a plan. @throws PlanError `device/absent`, `plan/missing-feature` */
export async function requestDevice({ needs, kernel }: Plan): Promise<GPUDevice> {
  const adapter = await (globalThis as { navigator?: Navigator }).navigator?.gpu?.requestAdapter()
  if (!adapter) return failWith('device/absent', `no WebGPU for ${kernel}`, 'a GPUDevice, or a plan for cpu')
  const requiredLimits: Record<string, number> = {}
  for (const name in adapter.limits)
    if (/Buffer|Compute/.test(name)) requiredLimits[name] = adapter.limits[name as 'maxBufferSize']
  const requiredFeatures = needs.features.filter((f) => adapter.features.has(f)) as GPUFeatureName[]
  return adapter.requestDevice({ requiredFeatures, requiredLimits })
}

/** @throws PlanError `api/argument`, `plan/missing-feature`, `plan/limit` */
function checkDevice({ needs }: Plan, { features, limits }: GPUDevice): void {
  if (!features) failWith('api/argument', 'the device has no features', 'a GPUDevice')
  const missing = needs.features.find((f) => !features.has(f.replaceAll('_', '-')))
  if (missing)
    failWith('plan/missing-feature', `the device lacks ${missing}`, `requiredFeatures: ['${missing}']`)
  for (const [limit, least] of [
    ['maxStorageBuffersPerShaderStage', needs.buffersPerLaunch],
    ['maxComputeInvocationsPerWorkgroup', needs.threadsPerBlock],
    ['maxComputeWorkgroupStorageSize', needs.sharedBytes],
  ] as const)
    if (limits[limit] < least)
      failWith('plan/limit', `${limit} of the device is ${limits[limit]}`, `at least ${least}`)
}

/** Bytes of an element in device memory. */
const unitOf = ({ dtype, storage }: PlanBuffer): number =>
  storage === 'word' ? 4 : arrayClass(dtype).BYTES_PER_ELEMENT
const roundUp = (n: number, to: number): number => Math.ceil(n / to) * to

export async function gpuExecutor(plan: Plan, device: GPUDevice): Promise<Executor> {
  checkDevice(plan, device)
  const { queue, limits } = device
  let lost = ''
  void device.lost.then(({ message }) => {
    lost = message || 'the device was lost'
  })
  /** Awaits, and rejects if the device is lost. */
  const alive = async <T>(promise: Promise<T>): Promise<T> => {
    try {
      return await promise
    } finally {
      if (lost) failWith('device/lost', lost, 'a new device')
    }
  }
  const scoped = async <T>(what: string, work: () => T, code = 'device/validation'): Promise<T> => {
    device.pushErrorScope('out-of-memory')
    device.pushErrorScope('validation')
    let value: T
    let errors: Promise<(GPUError | null)[]>
    try {
      value = work()
    } finally {
      errors = Promise.all([device.popErrorScope(), device.popErrorScope()])
    }
    const [invalid, full] = await alive(errors)
    if (full) failWith('device/out-of-memory', `no device memory for ${what}`)
    if (invalid) failWith(code, `${what}: ${invalid.message}`)
    return value
  }
  const submit = (record: (encoder: GPUCommandEncoder) => void): void => {
    const encoder = device.createCommandEncoder()
    record(encoder)
    queue.submit([encoder.finish()])
  }
  const compile = (): GPUShaderModule[] =>
    plan.modules.map(({ text: code }) => device.createShaderModule({ code }))
  const shaders = await scoped(plan.kernel, compile, 'device/compile')
  /** Compiled launches by entry name. */
  const pipelines = new Map<string, GPUComputePipeline>()
  await Promise.all(
    plan.steps.map(async (step) => {
      if ('clear' in step) return
      // A text uses each of its bindings, so that the layout of the pipeline contains all of them.
      const creation = device.createComputePipelineAsync({
        layout: 'auto',
        compute: { module: shaders[step.module]!, entryPoint: step.launch },
      })
      const failed = (e: Error): never => failWith('device/compile', `${step.launch}: ${e.message}`)
      pipelines.set(step.launch, await alive(creation.catch(failed)))
    }),
  )

  return async ({ sizes, arrays, resident }): Promise<GpuMemory> => {
    const memory = new Map<string, GPUBuffer>()
    const own: GPUBuffer[] = []
    const create = (size: number, usage: number, label: string): GPUBuffer => {
      const buffer = device.createBuffer({ size: Math.max(16, roundUp(size, 16)), usage, label })
      own.push(buffer)
      return buffer
    }
    const free = (): void => {
      for (const b of own) b.destroy()
    }
    const addressOf = (b: PlanBuffer | PackedArray) =>
      'in' in b
        ? { gpu: memory.get(b.in)!, at: sizes.get(b.base)! * unitOf(b) }
        : { gpu: memory.get(b.name)!, at: 0 }
    const write = (b: PlanBuffer, values: TypedArray): void => {
      const data = b.storage === 'word' ? toWords(b.dtype as NarrowDtype, values) : values
      const { gpu, at } = addressOf(b)
      let bytes = new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength)
      if (bytes.length % 4) {
        // Copies move whole words. Arrays are padded to words, so that these bytes belong to no other array.
        const padded = new Uint8Array(roundUp(bytes.length, 4))
        padded.set(bytes)
        bytes = padded
      }
      queue.writeBuffer(gpu, at, bytes)
    }
    try {
      const commands = await scoped(plan.kernel, () => {
        for (const b of plan.buffers) {
          const bytes = elementsOf(b, sizes) * unitOf(b)
          const most = Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize)
          if (bytes > most)
            failWith('device/buffer-too-large', `${b.name} has ${bytes} bytes`, `at most ${most}`)
          const given = resident.get(b.name)
          if (given && given.size < bytes)
            failWith('bind/values-length', `${b.name} has ${given.size} bytes`, `${bytes} bytes`)
          memory.set(b.name, given ?? create(bytes, STORAGE | INDIRECT | COPY_SRC | COPY_DST, b.name))
        }
        for (const b of visibleBuffers(plan)) {
          const values = arrays.get(b.name)
          if (values && values.length > 0) write(b, values)
        }
        return plan.steps.map((step) => ('clear' in step ? memory.get(step.clear)! : launchOf(step)))
      })
      return {
        write,
        free,
        buffer: (name) => memory.get(name)!,
        record: (encoder) => encode(encoder, commands),
        async run() {
          await scoped(plan.kernel, () => submit((encoder) => encode(encoder, commands)))
          await alive(queue.onSubmittedWorkDone())
        },
        async read(b, length) {
          const { gpu, at } = addressOf(b)
          const bytes = roundUp(length * unitOf(b), 4)
          if (bytes === 0) return new (arrayClass(b.dtype))(0)
          const staging = await scoped(b.name, () => {
            const buffer = device.createBuffer({ size: bytes, usage: MAP_READ | COPY_DST })
            submit((encoder) => encoder.copyBufferToBuffer(gpu, at, buffer, 0, bytes))
            return buffer
          })
          await alive(staging.mapAsync(1))
          const copy = staging.getMappedRange().slice(0)
          staging.destroy()
          return b.storage === 'word'
            ? fromWords(b.dtype as NarrowDtype, copy, length)
            : new (arrayClass(b.dtype))(copy, 0, length)
        },
      }
    } catch (e) {
      free()
      throw e
    }

    function launchOf(step: PlanLaunch): Launch | undefined {
      const logical = blocksOf(step, sizes)
      if (!logical) return undefined
      const most = limits.maxComputeWorkgroupsPerDimension
      const grid =
        physicalGrid(logical, [most, most, most]) ??
        failWith(
          'plan/grid-too-large',
          `${step.launch} needs ${logical.join(' × ')} blocks`,
          `at most ${most} × ${most}`,
        )
      const pipeline = pipelines.get(step.launch)!
      const layout = pipeline.getBindGroupLayout(0)
      const arrays = step.args.flatMap((a) => ('buffer' in a ? memory.get(a.buffer)! : []))
      const buffers = [...arrays, ...uniformOf(step)]
      const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }))
      const { choice = '', grids } = step.when ?? {}
      return {
        pipeline,
        group: device.createBindGroup({ layout, entries }),
        grid,
        ...(grids && { indirect: [memory.get(choice)!, 4 * grids] as const }),
      }
    }

    function uniformOf(step: PlanLaunch): GPUBuffer[] {
      const scalars = step.args.filter((a) => 'scalar' in a)
      if (scalars.length === 0) return []
      const words = new Int32Array(roundUp(scalars.length, 4))
      const floats = new Float32Array(words.buffer)
      scalars.forEach(({ scalar, dtype }, k) => {
        const into = WORD[dtype as NarrowDtype] === 'f32' ? floats : words
        into[k] = sizes.get(scalar)!
      })
      const buffer = create(words.byteLength, UNIFORM | COPY_DST, step.launch)
      queue.writeBuffer(buffer, 0, words)
      return [buffer]
    }
  }
}

interface Launch {
  readonly pipeline: GPUComputePipeline
  readonly group: GPUBindGroup
  readonly grid: readonly [number, number, number]
  readonly indirect?: readonly [GPUBuffer, number]
}

/** Encodes clears and launches; undefined: an empty launch. */
function encode(encoder: GPUCommandEncoder, commands: readonly (GPUBuffer | Launch | undefined)[]): void {
  let pass: GPUComputePassEncoder | undefined
  for (const c of commands) {
    if (!c) continue
    if ('pipeline' in c) {
      pass ??= encoder.beginComputePass()
      pass.setPipeline(c.pipeline)
      pass.setBindGroup(0, c.group)
      if (c.indirect) pass.dispatchWorkgroupsIndirect(...c.indirect)
      else pass.dispatchWorkgroups(...c.grid)
    } else {
      pass?.end()
      pass = undefined
      encoder.clearBuffer(c)
    }
  }
  pass?.end()
}
