/** The schedules by hand that the auto-scheduler is judged against. */

import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Device, Kernel } from '../../src/node.ts'
import { type Candidate, fieldOf, widthValues } from '../gpu/candidates.ts'
import type { Timed, Trials } from './trials.ts'

/** Those of the package that need no arguments, its choices, and `most` of what `candidates.json` lists. */
export async function byHand(
  kernel: Kernel,
  device: Device,
  inputs: RunInputs,
  trials: Trials,
  most: number,
  wanted: readonly string[] | undefined,
): Promise<Timed[]> {
  const gpu = device.kind !== 'cpu'
  const out: Timed[] = []
  const attempt = async (name: string, make: () => Kernel): Promise<void> => {
    const timed = await trials.time(name, make)
    if (timed) out.push(timed)
  }
  const isWanted = (name: string): boolean => !wanted || wanted.includes(name)
  const isComplete = (name: string): boolean =>
    isWanted(name) && !kernel.parameters(name).some((p) => p.required)
  for (const name of kernel.schedules)
    if (isComplete(name) && (gpu ? name !== 'cpu' : name === 'cpu'))
      await attempt(name, () => kernel.schedule(name))
  for (const name of gpu ? kernel.dispatches.filter(isComplete) : []) {
    const { kernel: chosen } = await kernel.schedule(name).choose(device, ...flatInputs(inputs))
    await attempt(name, () => chosen)
  }
  for (const c of gpu ? listed(kernel.name, inputs.params ?? {}).slice(0, most) : [])
    if (isWanted(c.schedule)) await attempt(c.text, () => kernel.schedule(c.schedule, ...c.args))
  return out
}

/** What `candidates.json` has for the kernel, by its own schedules. */
function listed(kernel: string, params: NonNullable<RunInputs['params']>): readonly Candidate[] {
  try {
    return fieldOf(kernel, [], widthValues(Number(params.d ?? 32))).candidates.filter(
      (c) => c.kernel === kernel && c.schedule !== 'auto' && c.args.length > 0,
    )
  } catch {
    return []
  }
}
