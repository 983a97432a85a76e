/**
 * Names of the arrays that formats store in addition to axes: orders of sorts, lists, masks. They are bound
 * together with the lists and sets of the data, whose names the user chooses independently of the format's
 * declaration.
 */
import { unusedNumber } from '../../ir/expressions/bound-names.ts'
import type { Format } from '../../ir/formats/format.ts'
import { labelled, tablesOf } from '../../ir/formats/format-tables.ts'

export interface ArrayNames {
  /**
   * The name by which users bind the array: the declared name, or another one if the data has an array of
   * that name.
   */
  readonly bindingName: (name: string) => string
  /**
   * The name in the kernel, distinct from all names of the data except `holdsList`, the list that the array
   * holds.
   */
  readonly kernelName: (name: string, holdsList?: string) => string
}

/** The names for one part; `data`: names of lists and sets. `rename`: as in `instantiate`. */
export function makeArrayNames(
  format: Format,
  label: string,
  data: ReadonlySet<string>,
  rename: (name: string, label: string) => string,
): ArrayNames {
  const reserved = new Set([...format.params.map((p) => p.name), ...format.order, ...tablesOf(format)])
  const isTaken = (name: string): boolean => reserved.has(name) || data.has(labelled(name, label))
  const bindingName = (name: string): string =>
    data.has(labelled(name, label)) ? `${name}_${unusedNumber(name, isTaken)}` : name
  const kernelName = (name: string, holdsList?: string): string => {
    let out = rename(name, label)
    for (let k = 2; data.has(out) && out !== holdsList; k++) out = rename(`${name}_${k}`, label)
    return out
  }
  return { bindingName, kernelName }
}
