/** Spaces that list what they have: the schedules of a program, and what is tried besides a space. */
import type { Kernel } from '../../api/kernel.ts'
import { fail } from '../../ast/diagnostic.ts'
import type { KernelSpace, Point } from '../types.ts'

/** Candidates by name; each is made when it is asked for. */
export function listed(
  name: string,
  candidates: Readonly<Record<string, () => Kernel>>,
): KernelSpace<Kernel> {
  const names = Object.keys(candidates)
  return {
    name,
    next: (point: Point) =>
      Object.hasOwn(point, 'schedule') ? null : { name: 'schedule', values: names, ordered: false },
    kernel: ({ schedule }: Point) =>
      (Object.hasOwn(candidates, String(schedule)) ? candidates[String(schedule)]! : unknown(name, names))(),
  }
}

const unknown =
  (name: string, names: readonly string[]): (() => never) =>
  () =>
    fail({
      code: 'space/point',
      message: `the point is none of ${name}`,
      expected: names.join(', '),
    })

/** The schedules that the program has for a kernel, with their usual arguments, and the kernel without one. */
export function schedulesOf(kernel: Kernel): KernelSpace<Kernel> {
  const names = kernel.schedules.filter((s) => kernel.parameters(s).every((p) => !p.required))
  return listed(
    `schedules of ${kernel.name}`,
    Object.fromEntries([
      ['as written', () => kernel],
      ...names.map((s) => [s, () => kernel.schedule(s)] as const),
    ]),
  )
}
