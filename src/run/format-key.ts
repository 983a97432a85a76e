/** Which kernels store their tensors in the same way. */
import type { Compilation } from './compile.ts'

/** What makes arrays what they are: steps on coordinates but for the order of loops. Empty where there are none. */
export function formatKey({ coordSteps }: Pick<Compilation, 'coordSteps'>): string {
  const kept = coordSteps.filter((s) => s.kind !== 'reorder')
  if (kept.length === 0) return ''
  return JSON.stringify(kept, (name, value: unknown) =>
    name === 'span' ? undefined : name === 'format' ? numberOf(value as object) : value,
  )
}

/** Formats of several programs may have one name. */
const numbers = new WeakMap<object, number>()
let formats = 0
function numberOf(format: object): number {
  const known = numbers.get(format)
  if (known !== undefined) return known
  numbers.set(format, formats)
  return formats++
}
