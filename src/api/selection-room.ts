/** Choices beside schedules whose lists were found to have no room (`live in place capacity E`): of those all counts as covered. */
import { orRefused, SptError } from '../ast/diagnostic.ts'
import { overflow } from '../run/overflow-error.ts'
import type { Branch, Selectable } from './selection-branch.ts'

/** Whether there is room for what the schedule found last. */
export async function hasRoom({ executable }: Branch): Promise<boolean> {
  const { program, bound } = executable
  return !(await overflow(program.plan, (counts) => executable.values(counts), bound.params))
}

/** Whether a run cannot be repeated: what it updates has been updated. */
export const updates = ({ executable }: Branch): boolean =>
  executable.program.plan.buffers.some((b) => b.role === 'inout')

/**
 * What is chosen by these shares, and which schedule was passed over since it has no room. Where there is nothing else to choose, it
 * stays.
 */
export function chosenWithRoom<V>(
  of: Selectable<V>,
  found: ReadonlyMap<string, number>,
  fullOf: (text: string) => Branch | undefined,
): { readonly variant: V; readonly overflowed: string | null } {
  const first = of.choose(found)
  const shares = new Map(found)
  const passed = new Set<string>()
  let variant = first
  for (;;) {
    const { text } = of.chosen(variant)
    const full = fullOf(text)
    if (!full) return { variant, overflowed: [...passed][0] ?? null }
    if (passed.has(text)) break
    passed.add(text)
    for (const { statistic } of full.findings) shares.set(statistic, 1)
    const next = orRefused(() => of.choose(shares))
    if (next instanceof SptError) break
    variant = next
  }
  return { variant: first, overflowed: null }
}
