/** Compiled kernels: under one schedule, or with a schedule selected for each binding (`dispatch/compiled-dispatch.ts`). */
import type { Bound } from '../../run/bind/index.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { type Defaulted, runOn, type Sources } from '../../run/compile/compiled-program.ts'
import { isRefusedByDevice } from '../../run/compile/device-limits.ts'
import { compileOn, lanesOf, type Program } from '../../run/execution/execute.ts'
import { type UnorderedSum, unorderedSums } from '../../run/verify/verify.ts'
import type { Device } from '../../runtime/device.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { CompiledCode } from '../dispatch/branches.ts'
import type { SelectionInputs } from '../dispatch/device-facts.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import { isBound, type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import { ErrorSources } from '../programs/error-sources.ts'
import { bindWithin, fittingBytes } from './check-prepared.ts'
import { type PreparedKernel, preparedUnder } from './prepared.ts'

export type { RunInputs } from '../inputs/bound-inputs.ts'
export { PreparedKernel } from './prepared.ts'

/** A kernel compiled under the schedule that was selected for some inputs. */
export interface CompiledVariant {
  readonly kernel: CompiledSchedule
  /** The reason of a dispatch; `null` if no dispatch selected the schedule. */
  readonly selection: Selection | null
}

/**
 * A kernel compiled for a device. Code, stages and sums are those of its schedule.
 * @throws SptError `choose/open` from these members if a dispatch selects the schedule for each binding
 */
export abstract class CompiledKernel extends ErrorSources implements CompiledCode {
  /** Stages and plan. */
  abstract get compilation(): Compilation
  /** Generated code and modules. */
  abstract get program(): Program
  abstract get device(): Device
  /** Floating-point sums by atomic updates, whose order varies, so that the last bits of results may differ from run to run. */
  abstract get unorderedSums(): readonly UnorderedSum[]
  /** True if equal inputs give bitwise equal outputs in every run on this device. */
  get deterministic(): boolean {
    return this.unorderedSums.length === 0
  }
  /** Compiles the same schedule for another device. */
  abstract compileFor(device: Device): Promise<CompiledSchedule>
  /**
   * Bytes of all buffers, computed from sizes; no data are created.
   * @throws SptError `bind/…`, `plan/too-large`, `device/buffer-too-large`
   */
  abstract estimateBytes(inputs: RunInputs): number
  /** The compiled schedule that runs on these data, for `convertForKernel` and `prepareResident`, or for inspection. */
  abstract choose(inputs: SelectionInputs): Promise<CompiledVariant>
  /** The host's part of `prepare`: validates data and builds formats. @throws SptError `bind/…`, `format/…` */
  abstract bind(inputs: RunInputs): Bound
  /** Binds data and uploads them. @throws SptError `bind/…`, `format/…`, `device/…` */
  abstract prepare(inputs: RunInputs | Bound): Promise<PreparedKernel>
  abstract release(): void

  [DISPOSE](): void {
    this.release()
  }

  /** Prepares, runs, reads all outputs by name, and frees. */
  async run(inputs: RunInputs): Promise<Record<string, Tensor>> {
    const prepared = await this.prepare(inputs)
    try {
      await prepared.run()
      return await prepared.outputs()
    } finally {
      prepared.free()
    }
  }
}

/** A kernel under one schedule. */
export class CompiledSchedule extends CompiledKernel {
  readonly compilation: Compilation
  readonly program: Program

  constructor(compilation: Compilation, program: Program) {
    super()
    this.compilation = compilation
    this.program = program
  }

  static async of(compilation: Compilation, device: Device, sources: Sources): Promise<CompiledSchedule> {
    const program = await compileOn(device, compilation.planFor(lanesOf(device)), sources)
    return new CompiledSchedule(compilation, program)
  }

  get device(): Device {
    return this.program.device
  }

  get sources(): Sources {
    return this.program.sources
  }

  async compileFor(device: Device): Promise<CompiledSchedule> {
    return CompiledSchedule.of(this.compilation, device, this.sources)
  }

  override get unorderedSums(): readonly UnorderedSum[] {
    const { compilation, device } = this
    return unorderedSums(compilation.loops, compilation.planFor(lanesOf(device)), device.kind)
  }

  bind(inputs: RunInputs): Bound {
    return bindWithin(this.program, this.compilation.kernel, inputs)
  }

  estimateBytes(inputs: RunInputs): number {
    const { kernel } = this.compilation
    return fittingBytes(this.program, kernel, valuesIn(kernel, inputs))
  }

  async choose(_inputs: SelectionInputs): Promise<CompiledVariant> {
    return { kernel: this, selection: null }
  }

  async prepare(inputs: RunInputs | Bound): Promise<PreparedKernel> {
    return preparedUnder(this, isBound(inputs) ? inputs : this.bind(inputs))
  }

  release(): void {
    this.program.release()
  }
}

/** Compiles a kernel with its steps and default thread bindings; without these bindings if the device rejects them. */
export async function compileSchedule<
  K extends Pick<ErrorSources, 'sources'> & Defaulted<K> & { readonly compilation: Compilation },
>(kernel: K, device: Device): Promise<CompiledSchedule> {
  const { sources } = kernel
  const onThreads = runOn<K>(kernel, device.kind)
  try {
    return await CompiledSchedule.of(onThreads.compilation, device, sources)
  } catch (why) {
    if (onThreads === kernel || !isRefusedByDevice(why)) throw why
    return CompiledSchedule.of(kernel.compilation, device, sources)
  }
}
