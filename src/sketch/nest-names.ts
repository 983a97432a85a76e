/** Names of decisions about loop nests: copies of an iteration over parts with formats of one kind share their decisions. */
import type { Kernel1 } from '../ir/coordinates/stage1.ts'

export interface NestNames {
  /** The iteration as written, before it is copied for each part. */
  readonly stem: string
  /** Prefix of the nest's decision names. */
  readonly prefix: string
}

/** Maps nests to the names of their decisions. */
export function nestNaming(kernel: Kernel1): (nest: string) => NestNames {
  const suffixes = kernel.reformats.flatMap(({ instance }) => {
    const kinds = new Set(instance.parts.map((p) => kindOf(p.instance.text)))
    return instance.parts
      .filter((p) => p.label !== '')
      .map((p): readonly [string, string] => [
        `_${p.label}`,
        kinds.size > 1 ? `_${kindOf(p.instance.text)}` : '',
      ])
  })
  return (nest) => {
    const suffix = suffixes.find(([label]) => nest.endsWith(label))
    const stem = suffix ? nest.slice(0, -suffix[0].length) : nest
    return { stem, prefix: suffix ? `${stem}${suffix[1]}` : nest }
  }
}

/** A format without its arguments. */
const kindOf = (text: string): string => /^\w*/.exec(text)![0]
