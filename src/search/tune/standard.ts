/** The default schedule of a kernel, which tuning is compared with. */
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import { Kernel } from '../../api/kernels/kernel.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Device } from '../../runtime/device.ts'
import type { ScheduleCall } from '../types.ts'

export interface Standard {
  /** The schedule's name and arguments as source; `null` for the default steps. */
  readonly schedule: string | null
  /** The same as data. */
  readonly call: ScheduleCall | null
  readonly kernel: Kernel
}

/**
 * The kernel's own choice if it has one, otherwise the schedule named like the device if it is legal, otherwise none: as `spt
 * run` does.
 * @throws SptError as `Kernel.choose`
 */
export async function standardOf(kernel: Kernel, device: Device, inputs: RunInputs): Promise<Standard> {
  if (kernel.dispatch !== null) {
    const { kernel: selected, selection: choice } = await kernel.choose(device, inputs)
    if (choice.schedule === null) return { kernel: selected, schedule: null, call: null }
    return { kernel: selected, schedule: choice.text, call: { name: choice.schedule, args: choice.args } }
  }
  const name = device.kind === 'cpu' ? 'cpu' : 'gpu'
  const scheduled = kernel.schedules.includes(name) ? resultOrError(() => kernel.schedule(name)) : null
  const kernelWithDefaults =
    scheduled instanceof Kernel ? await withDefaultSteps(scheduled, device, inputs) : null
  if (kernelWithDefaults)
    return { kernel: kernelWithDefaults, schedule: name, call: { name: name, args: [] } }
  return { kernel: (await withDefaultSteps(kernel, device, inputs)) ?? kernel, schedule: null, call: null }
}

/** The kernel with the default steps of `compile`; `null` if it is rejected. */
async function withDefaultSteps(kernel: Kernel, device: Device, inputs: RunInputs): Promise<Kernel | null> {
  try {
    const { kernel: stepped, compiled } = await kernel.compileDefault(device)
    compiled.release()
    if (device.kind === 'cpu') return stepped
    const params = Object.entries(inputs.params ?? {}).map(([name, x]) => [name, Number(x)] as const)
    return kernel.autoSchedule(device, Object.fromEntries(params), inputs.tensors ?? {})
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return null
  }
}
