/** Options of commands as a table, in the form of help. */
import type { OptionSpec } from './command.ts'

type Inserted = string | number | OptionSpec | readonly OptionSpec[] | readonly string[]

/** Marks the place of inserted options, by number. */
const MARK = '\0'

const isText = (x: Inserted): x is string | number | readonly string[] =>
  typeof x !== 'object' || (Array.isArray(x) && typeof x[0] === 'string')

const ATTRIBUTES: Readonly<Record<string, (words: readonly string[]) => Partial<OptionSpec>>> = {
  repeats: () => ({ repeats: true }),
  read: () => ({ file: 'read' }),
  write: () => ({ file: 'write' }),
  update: () => ({ file: 'update' }),
  with: (names) => ({ with: names }),
  without: (names) => ({ without: names }),
}

/**
 * Options, each on a line, in columns at least two spaces apart: `--out <FILE>  [write, with db]  Write the result`.
 * Lines with more than four spaces continue the text. Options inserted in place of the flags keep their own attributes
 * and text unless the line has others.
 */
export function optionTable(texts: TemplateStringsArray, ...inserted: Inserted[]): readonly OptionSpec[] {
  const table = texts.reduce((before, text, k) => {
    const x = inserted[k - 1]!
    return `${before}${isText(x) ? [x].flat().join(' ') : `${MARK}${k - 1}`}${text}`
  })
  const lines = table.replace(/\n {5,}/g, ' ').split('\n')
  return lines.flatMap((line) => {
    const [, head, attributes, about] = /^ *(\S.*?)(?: {2}\[(.*?)\])?(?: {2,}(.*))?$/.exec(line) ?? []
    if (head === undefined) return []
    const own = (attributes?.split(', ') ?? []).map((text) => {
      const [word = '', ...names] = text.split(' ')
      return ATTRIBUTES[word]!(names)
    })
    const options = head.startsWith(MARK)
      ? [inserted[Number(head.slice(1))] as OptionSpec | readonly OptionSpec[]].flat()
      : [{ flags: head, about: '' }]
    return options.map((o): OptionSpec => Object.assign({ ...o }, about && { about }, ...own))
  })
}
