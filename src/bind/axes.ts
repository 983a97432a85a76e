/** The caller's view of a kernel: the axes buffers were declared over, before formats replaced them. */
import { invariant } from '../ast/diagnostic.ts'
import { type Axis, chainTo, isStored, parentOf, type StoredAxis } from '../ir/axis.ts'
import type { Buffer1, Kernel1 } from '../ir/stage1.ts'

/** The axes a buffer was declared over. */
export function callerAxesOf(kernel: Kernel1, b: Buffer1): readonly string[] {
  for (const r of kernel.reformats) {
    const was = r.buffers.find((x) => x.name === b.name)
    if (was) return was.axes
  }
  return b.axes
}

/** All axes by name, replaced ones included. */
export function allAxesOf(kernel: Kernel1): ReadonlyMap<string, Axis> {
  return new Map([...kernel.reformats.flatMap((r) => r.from), ...kernel.axes].map((a) => [a.name, a]))
}

export function storedAxis(axes: ReadonlyMap<string, Axis>, name: string): StoredAxis {
  const a = axes.get(name)
  invariant(a && isStored(a), `axis ${name} has no storage`)
  return a
}

/** Whether the axis, or an ancestor of it, is anything but a dense root. */
export const isStructured = (axes: ReadonlyMap<string, Axis>, name: string): boolean =>
  storedAxis(axes, name).kind !== 'dense_fixed'

/** The longest chains among the axes: every stored axis lies on at least one. */
export function leafChains(axes: readonly Axis[]): readonly (readonly string[])[] {
  const stored = axes.filter(isStored)
  const byName = new Map<string, Axis>(stored.map((a) => [a.name, a]))
  const parents = new Set(stored.map(parentOf))
  return stored.filter((a) => !parents.has(a.name)).map((a) => chainTo(byName, a.name))
}
