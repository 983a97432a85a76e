/**
 * Names of arrays that formats keep in addition to axes: orders of sorts, lists, masks. They are bound together with
 * the lists and sets of the data, whose names the user chooses without knowing the format's declaration.
 */
import { unusedNumber } from '../../ir/bound-names.ts'
import type { Format } from '../../ir/format.ts'
import { labelled, tablesOf } from '../../ir/format-tables.ts'

export interface NamesBeside {
  /** The declared name, or another one if the data has an array of that name. */
  readonly told: (name: string) => string
  /** The name in the kernel, distinct from all names of the data except `holds`, the list that the array is. */
  readonly inKernel: (name: string, holds?: string) => string
}

/** The names for one part; `data`: names of lists and sets. `rename`: as in `instantiate`. */
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
