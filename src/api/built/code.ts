/** A kernel compiled for a device under a schedule. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { Work } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import {
  compileOn,
  type Defaulted,
  lanesOf,
  loadOn,
  type Program,
  runOn,
  type Sources,
} from '../../run/compile/compiled-program.ts'
import { isRefusedByDevice } from '../../run/compile/device-limits.ts'
import type { UnorderedSum } from '../../run/verify/unordered-sums.ts'
import type { Device } from '../../runtime/device.ts'
import type { ErrorSources } from '../programs/error-sources.ts'

export class CompiledCode {
  /** Generated code and modules. */
  readonly program: Program
  readonly #compilation: Compilation | null

  /** `compilation`: stages and plan; `null` for a plan that was loaded. */
  constructor(compilation: Compilation | null, program: Program) {
    this.#compilation = compilation
    this.program = program
  }

  /** Throws SptError `plan/no-kernel` for a plan that was loaded. */
  get compilation(): Compilation {
    return (
      this.#compilation ??
      failWith('plan/no-kernel', `the plan of ${this.name} was loaded without its kernel`, {
        expected: 'a kernel that was built from its program',
        hint: `(await load(…)).kernel('${this.name}').build(device)`,
      })
    )
  }

  /** The kernel without steps; of a plan, the kernel in its formats. */
  get source(): Kernel1 {
    return this.#compilation?.source ?? this.program.plan.binding
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
    return this.program.plan.kernel
  }

  get device(): Device {
    return this.program.device
  }

  get sources(): Sources {
    return this.program.sources
  }

  /** Floating-point sums by atomic updates, whose order varies, so that the last bits of results may differ from run to run. */
  get unorderedSums(): readonly UnorderedSum[] {
    return this.program.plan.unorderedSums ?? []
  }

  /** Compiles the same schedule for another device. */
  async compileFor(device: Device): Promise<CompiledCode> {
    return this.#compilation
      ? CompiledCode.of(this.#compilation, device, this.sources)
      : new CompiledCode(null, await loadOn(device, this.program.plan))
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
