/** What decisions of a nest are called: copies of an iteration over parts of like formats decide together. */
import type { Kernel1 } from '../../ir/stage1.ts'

/** From the name of a nest to the one that its decisions begin with. */
export function decisionNames(kernel: Kernel1): (nest: string) => string {
  const endings = kernel.reformats.flatMap(({ instance }) => {
    const kinds = new Set(instance.parts.map((p) => kindOf(p.instance.text)))
    return instance.parts
      .filter((p) => p.label !== '')
      .map((p): readonly [string, string] => [
        `_${p.label}`,
        kinds.size > 1 ? `_${kindOf(p.instance.text)}` : '',
      ])
  })
  return (nest) => {
    const found = endings.find(([ending]) => nest.endsWith(ending))
    return found ? `${nest.slice(0, -found[0].length)}${found[1]}` : nest
  }
}

/** A format without its arguments. */
const kindOf = (text: string): string => /^\w*/.exec(text)![0]
