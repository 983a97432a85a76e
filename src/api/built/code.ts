/** A kernel compiled for a device under a schedule. */
import { type Coroutine, runSync, Work } from '../../ast/work.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import {
  compileOn,
  type Defaulted,
  lanesOf,
  type Program,
  runOn,
  type Sources,
} from '../../run/compile/compiled-program.ts'
import { isRefusedByDevice } from '../../run/compile/device-limits.ts'
import { type UnorderedSum, unorderedSums } from '../../run/verify/verify.ts'
import type { Device } from '../../runtime/device.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import { type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import type { ErrorSources } from '../programs/error-sources.ts'
import { bindWithin, fittingBytes } from './check-binding.ts'

/** The code that was selected for some inputs. */
export interface SelectedCode {
  readonly code: CompiledCode
  /** The reason of a dispatch; `null` if no dispatch selected the schedule. */
  readonly selection: Selection | null
}

export class CompiledCode {
  /** Stages and plan. */
  readonly compilation: Compilation
  /** Generated code and modules. */
  readonly program: Program

  constructor(compilation: Compilation, program: Program) {
    this.compilation = compilation
    this.program = program
  }

  static async of(
    compilation: Compilation,
    device: Device,
    sources: Sources,
    work: Work = new Work(),
  ): Promise<CompiledCode> {
    work.begin('lower', compilation.source.name)
    await work.run(compilation.planningSteps(lanesOf(device)))
    work.begin('compile', compilation.source.name)
    const program = await work.wait(compileOn(device, compilation, sources), (late) => late.release())
    return new CompiledCode(compilation, program)
  }

  get name(): string {
    return this.compilation.source.name
  }

  get device(): Device {
    return this.program.device
  }

  get sources(): Sources {
    return this.program.sources
  }

  /** Floating-point sums by atomic updates, whose order varies, so that the last bits of results may differ from run to run. */
  get unorderedSums(): readonly UnorderedSum[] {
    const { compilation, device } = this
    return unorderedSums(compilation.loops, compilation.planFor(lanesOf(device)), device.kind)
  }

  /** Compiles the same schedule for another device. */
  compileFor(device: Device): Promise<CompiledCode> {
    return CompiledCode.of(this.compilation, device, this.sources)
  }

  estimateBytes(inputs: RunInputs): number {
    const { kernel } = this.program.plan
    return fittingBytes(this.program, kernel, valuesIn(kernel, inputs))
  }

  bindOnHost(inputs: RunInputs): Bound {
    return runSync(this.bindingSteps(inputs))
  }

  bindingSteps(inputs: RunInputs): Coroutine<Bound> {
    return bindWithin(this.program, this.program.plan.kernel, inputs)
  }

  release(): void {
    this.program.release()
  }
}

/** Compiles a kernel with the applied steps and default thread bindings, which are left out if the device rejects the result. */
export async function compileSteps<
  K extends Pick<ErrorSources, 'sources'> & Defaulted<K> & { readonly compilation: Compilation },
>(kernel: K, device: Device, work?: Work): Promise<CompiledCode> {
  const { sources } = kernel
  const onThreads = runOn<K>(kernel, device.kind)
  try {
    return await CompiledCode.of(onThreads.compilation, device, sources, work)
  } catch (why) {
    if (onThreads === kernel || !isRefusedByDevice(why)) throw why
    return CompiledCode.of(kernel.compilation, device, sources, work)
  }
}
