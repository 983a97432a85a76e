/** The default schedule of a kernel, which tuning is compared with. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import { Kernel } from '../../api/kernel.ts'
import { orRefused, SptError } from '../../ast/diagnostic.ts'
import type { Device } from '../../runtime/device.ts'
import type { ScheduleCall } from '../types.ts'

export interface Standard {
  /** Its schedule, as it is called; `null`: none. */
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
    const { kernel: chosen, selection: why } = await kernel.choose(device, inputs)
    if (why.schedule === null) return { kernel: chosen, schedule: null, call: null }
    return { kernel: chosen, schedule: why.text, call: { name: why.schedule, args: why.args } }
  }
  const named = device.kind === 'cpu' ? 'cpu' : 'gpu'
  const own = kernel.schedules.includes(named) ? orRefused(() => kernel.schedule(named)) : null
  const usual = own instanceof Kernel ? await unasked(own, device, inputs) : null
  if (usual) return { kernel: usual, schedule: named, call: { name: named, args: [] } }
  return { kernel: (await unasked(kernel, device, inputs)) ?? kernel, schedule: null, call: null }
}

/** The kernel with the default steps of `compile`; `null` if it is rejected. */
async function unasked(kernel: Kernel, device: Device, inputs: RunInputs): Promise<Kernel | null> {
  try {
    const { kernel: taken, compiled } = await kernel.compileDefault(device)
    compiled.release()
    if (device.kind === 'cpu') return taken
    const params = Object.entries(inputs.params ?? {}).map(([name, x]) => [name, Number(x)] as const)
    return kernel.autoSchedule(device, Object.fromEntries(params), inputs.tensors ?? {})
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return null
  }
}
