/** Identity of what a dispatch table was found for. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import { printStep } from '../../ast/print/print.ts'
import type { Schedule } from '../../elaborate/index.ts'
import { hashOf, kernelHash } from '../records/identity.ts'

/**
 * Hash of a kernel before any step and of the schedules that a table calls, with the schedules that these use; of the
 * kernel alone if a search found schedules that are not declared yet.
 */
export function tableHash(kernel: Kernel, called: readonly string[]): string {
  const names = [...new Set(called)].sort()
  const declared = names.flatMap((name) => kernel.declaredSchedules.get(name) ?? [])
  const unknown = names.length - declared.length
  const dispatches = names.filter((name) => kernel.declaredDispatches.has(name)).length
  if (unknown > dispatches) return kernelHash(kernel)
  const used = new Set<Schedule>()
  const visit = (s: Schedule): void => {
    if (used.has(s)) return
    used.add(s)
    s.uses.forEach(visit)
  }
  declared.forEach(visit)
  return hashOf(kernelHash(kernel), ...[...used].map(scheduleIdentity))
}

const scheduleIdentity = ({ name, params, steps }: Schedule): string =>
  JSON.stringify([name, params, steps.map(printStep)], (key, x: unknown) => (key === 'span' ? undefined : x))
