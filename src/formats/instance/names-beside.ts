/**
 * Names of what formats keep beside axes: orders of sorts, lists, masks. They are bound among the data, where the lists and sets
 * that formats take are too; of these whoever uses a format chooses the names, without knowing its text.
 */
import { unusedNumber } from '../../ir/bound-names.ts'
import type { Format } from '../../ir/format.ts'
import { labelled, tablesOf } from '../../ir/format-tables.ts'

export interface NamesBeside {
  /** What the text calls it, or another name where it is called as something among the data is. */
  readonly told: (name: string) => string
  /** Its name in the kernel, which nothing among the data has but what `holds`: the list of that name that it is. */
  readonly inKernel: (name: string, holds?: string) => string
}

/** Of one part; `data`: names of lists and sets. `rename`: as `instantiate` is given it. */
export function namesBeside(
  format: Format,
  label: string,
  data: ReadonlySet<string>,
  rename: (name: string, label: string) => string,
): NamesBeside {
  const own = new Set([...format.params.map((p) => p.name), ...format.order, ...tablesOf(format)])
  const isTaken = (name: string): boolean => own.has(name) || data.has(labelled(name, label))
  const told = (name: string): string =>
    data.has(labelled(name, label)) ? `${name}_${unusedNumber(name, isTaken)}` : name
  const inKernel = (name: string, holds?: string): string => {
    let out = rename(name, label)
    for (let k = 2; data.has(out) && out !== holds; k++) out = rename(`${name}_${k}`, label)
    return out
  }
  return { told, inKernel }
}
