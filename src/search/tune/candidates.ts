/** The space of a kernel that has none: its schedules. */
import type { Kernel } from '../../api/kernel.ts'
import { space } from '../function-space.ts'
import type { KernelSpace } from '../types.ts'

/** The schedules that the program has for a kernel, with their usual arguments, and the kernel without one. */
export function schedulesOf(kernel: Kernel): KernelSpace<Kernel> {
  const names = kernel.schedules.filter((s) => kernel.parameters(s).every((p) => !p.required))
  const candidates = Object.fromEntries([
    ['as written', (k: Kernel) => k],
    ...names.map((s) => [s, (k: Kernel) => k.schedule(s)] as const),
  ])
  const picked = space(`schedules of ${kernel.name}`, kernel, (p) => p.pick('schedule', candidates))
  return {
    ...picked,
    call: ({ schedule }) => (names.includes(String(schedule)) ? { name: String(schedule), args: [] } : null),
  }
}
