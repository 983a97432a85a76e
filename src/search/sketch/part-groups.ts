/** Names of decisions about loop nests: copies of an iteration over parts with formats of one kind share their decisions. */
import type { Kernel1 } from '../../ir/stage1.ts'

export interface NestNames {
  /** The iteration as written, that parts have copies of. */
  readonly stem: string
  /** Prefix of the nest's decisions. */
  readonly called: string
}

/** Maps nests to the names of their decisions. */
export function nestNaming(kernel: Kernel1): (nest: string) => NestNames {
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
    const stem = found ? nest.slice(0, -found[0].length) : nest
    return { stem, called: found ? `${stem}${found[1]}` : nest }
  }
}

/** A format without its arguments. */
const kindOf = (text: string): string => /^\w*/.exec(text)![0]
