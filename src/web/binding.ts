/** A plan with its inputs in device memory. */
import type { TypedArray } from '../ir/values/arrays.ts'
import { valueIn } from '../plan/interpret.ts'
import type { Plan, PlanBuffer } from '../plan/schema.ts'
import type { GpuEncoderLike, OwnGpuBuffer } from '../runtime/native-memory.ts'
import {
  type Bound,
  checkArray,
  elementsOf,
  type Inputs,
  isInput,
  isOutput,
  named,
  visibleBuffers,
} from './inputs.ts'
import type { GpuMemory, Memory } from './memory.ts'
import { failWith } from './plan-error.ts'

/** Arrays by buffer name. */
export type Outputs = Record<string, TypedArray>

export interface Binding<I = Inputs, O = Outputs, A = Outputs> {
  /** Sizes and scalars, including those that were inferred. */
  readonly sizes: Readonly<Record<string, number>>
  /** Executes the plan once. @throws PlanError `run/lost-writes`, `run/overflow`, `device/lost` */
  run(): Promise<void>
  /** Copies new values of an input before it returns; the length stays. @throws PlanError `bind/…` */
  set<N extends string & keyof I & keyof A>(name: N, values: A[N]): void
  /** The elements of a buffer, such as an output, or the counts of a format that is built at run time. */
  get<N extends string & keyof A>(name: N): Promise<A[N]>
  /** All outputs, by name. */
  outputs(): Promise<O>
  /** The device memory of a buffer (WebGPU), valid until `free`. */
  buffer(name: string & keyof A): OwnGpuBuffer
  /** Records the plan into your own encoder (WebGPU). Lost writes and overflows are then not checked. */
  record(encoder: GpuEncoderLike): void
  free(): void
}

export function bindingOf(plan: Plan, { sizes, resident }: Bound, memory: Memory): Binding {
  const { kernel, runtimeFormats = [], lostWrites } = plan
  const buffers = visibleBuffers(plan)
  let isFree = false
  const checkLive = (): void => {
    if (isFree) failWith('device/freed-buffer', `the binding of ${kernel} was freed`)
  }
  const bufferOf = (name: string): PlanBuffer => {
    checkLive()
    return named(buffers, name, plan)
  }
  const gpu = (): GpuMemory => {
    checkLive()
    return 'record' in memory
      ? (memory as GpuMemory)
      : failWith('plan/other-device', `${kernel} runs on the CPU`, 'a plan for webgpu')
  }
  const get = async (name: string): Promise<TypedArray> => {
    const buffer = bufferOf(name)
    return memory.read(buffer, elementsOf(buffer, sizes))
  }
  const checkRun = async (): Promise<void> => {
    for (const { tensor, parts } of runtimeFormats)
      for (const { capacity, axis } of parts) {
        if (!capacity) continue
        const { counts, width } = capacity
        const limit = valueIn(capacity.capacity, sizes)!
        const longest = ((await get(counts)) as Int32Array).reduce((a, b) => Math.max(a, b), 0)
        const positions = Math.ceil(longest / width)
        if (positions > limit)
          failWith(
            'run/overflow',
            `${kernel} has ${positions} positions of ${axis} (${tensor})`,
            `at most ${limit}`,
          )
      }
    if (!lostWrites) return
    const status = await get(lostWrites.buffer)
    const lost = lostWrites.targets.filter((_, k) => status[k] !== 0)
    if (lost.length > 0)
      failWith('run/lost-writes', `${kernel} writes elements of ${lost.join(' and ')} that do not exist`)
  }
  return {
    sizes: Object.fromEntries(sizes),
    get,
    async run() {
      checkLive()
      await memory.run()
      await checkRun()
    },
    set(name, values) {
      const buffer = bufferOf(name)
      if (!isInput(buffer)) failWith('bind/not-input', `${name} is not an input`)
      if (resident.has(name)) failWith('run/resident', `${name} is a GPUBuffer: write to it yourself`)
      memory.write(buffer, checkArray(buffer, values, elementsOf(buffer, sizes)))
    },
    async outputs() {
      const out: Outputs = {}
      for (const b of buffers) if (isOutput(b)) out[b.name] = await get(b.name)
      return out
    },
    buffer(name) {
      bufferOf(name)
      return gpu().buffer(name)
    },
    record: (encoder) => gpu().record(encoder as GPUCommandEncoder),
    free() {
      if (!isFree) memory.free()
      isFree = true
    },
  }
}
