/** Compilation of kernels for a device. */
import { Work } from '../../ast/work.ts'
import { type CheckedPlan, checkedPlan } from '../../plan/launch-plan.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { compileOn } from '../../run/compile/compiled-program.ts'
import { isRefusedByDevice } from '../../run/compile/device-limits.ts'
import { lanesOf } from '../../run/compile/lowering-options.ts'
import { type Defaulted, runOn, type Sources } from '../../run/compile/program.ts'
import type { Device } from '../../runtime/device.ts'
import type { ErrorSources } from '../programs/error-sources.ts'
import { CompiledCode } from './code.ts'

/** Lowers and compiles a kernel with exactly its steps. Throws SptError as lowering and `compileOn`. */
export async function compileCode(
  compilation: Compilation,
  device: Device,
  sources: Sources,
  work: Work = new Work(),
): Promise<CompiledCode> {
  work.begin('lower', compilation.source.name)
  await work.run(compilation.planningSteps(lanesOf(device)))
  work.begin('compile', compilation.source.name)
  const program = await work.wait(compileOn(device, compilation, sources), (late) => late.release())
  return new CompiledCode(compilation, program, (other) => compileCode(compilation, other, sources))
}

/** Compiles a kernel with the applied steps and default thread bindings, which are left out if the device rejects the result. */
export async function compileSteps<
  K extends Pick<ErrorSources, 'sources'> & Defaulted<K> & { readonly compilation: Compilation },
>(kernel: K, device: Device, work?: Work): Promise<CompiledCode> {
  const { sources } = kernel
  const onThreads = runOn<K>(kernel, device.kind)
  try {
    return await compileCode(onThreads.compilation, device, sources, work)
  } catch (why) {
    if (onThreads === kernel || !isRefusedByDevice(why)) throw why
    return compileCode(kernel.compilation, device, sources, work)
  }
}

/** The plan by which sizes of a kernel are checked. Throws SptError as lowering. */
export const checkedPlanOf = <K extends Defaulted<K> & { readonly compilation: Compilation }>(
  kernel: K,
  device: Device,
): CheckedPlan => checkedPlan(runOn<K>(kernel, device.kind).compilation.planOn(device))
