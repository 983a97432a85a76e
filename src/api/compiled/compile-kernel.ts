/** Compilation of a kernel whose schedule is fixed: its own steps, or those of the auto-scheduler. */
import { SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { type Defaulted, runOn } from '../../run/compile/compiled-program.ts'
import { isRefusedByDevice } from '../../run/compile/device-limits.ts'
import { compileOn, lanesOf } from '../../run/execution/execute.ts'
import type { Device } from '../../runtime/device.ts'
import { type AutoSchedulableKernel, CompiledAutoSchedule } from '../auto-schedule/compiled-auto-schedule.ts'
import { isUnscheduled, scheduleCandidates } from '../auto-schedule/schedule-candidates.ts'
import type { ErrorSources } from '../programs/error-sources.ts'
import { CompiledSchedule } from './compiled.ts'

/** Compiles a kernel with its steps and default thread bindings; without these bindings if the device rejects them. */
export async function compileSchedule<
  K extends Pick<ErrorSources, 'sources'> & Defaulted<K> & { readonly compilation: Compilation },
>(kernel: K, device: Device): Promise<CompiledSchedule> {
  const compiled = async ({ compilation }: K): Promise<CompiledSchedule> =>
    new CompiledSchedule(
      compilation,
      await compileOn(device, compilation.planFor(lanesOf(device)), kernel.sources),
    )
  const onThreads = runOn<K>(kernel, device.kind)
  if (onThreads === kernel) return compiled(kernel)
  try {
    return await compiled(onThreads)
  } catch (why) {
    if (!isRefusedByDevice(why)) throw why
    return compiled(kernel)
  }
}

/** Compiles a kernel; if it has no schedule, as far as possible without data. */
export async function compileDefault<K extends AutoSchedulableKernel<K>>(
  kernel: K,
  device: Device,
): Promise<{ readonly kernel: K; readonly compiled: CompiledSchedule }> {
  if (!isUnscheduled(kernel.compilation)) return { kernel, compiled: await kernel.compileSchedule(device) }
  const { kernel: early, compiled } = await withoutData(kernel, device)
  return { kernel: early, compiled: new CompiledAutoSchedule<K>(kernel, compiled) }
}

/**
 * Compiles the default without data: on the CPU the first candidate of the auto-scheduler. On GPUs, candidates are compiled once sizes are
 * known, because code for unknown sizes has a version per remainder.
 */
async function withoutData<K extends AutoSchedulableKernel<K>>(
  kernel: K,
  device: Device,
): Promise<{ readonly kernel: K; readonly compiled: CompiledSchedule }> {
  const of = async (k: K) => ({ kernel: k, compiled: await k.compileSchedule(device) })
  const guess = device.kind === 'cpu' ? scheduleCandidates(kernel, 'cpu', undefined, 1)[0] : undefined
  if (!guess) return of(kernel)
  // Lowering may reject the candidate, but accept the unscheduled kernel.
  const made = await valueOrError(() => of(guess.kernel))
  return made instanceof SptError ? of(kernel) : made
}
