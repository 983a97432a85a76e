/** A program as data, and again: nothing else is read. */
import { readProgram, type SptProgram } from '../../api/program.ts'
import { fail } from '../../ast/diagnostic.ts'
import { shippedText } from '../../io/program-text.ts'
import { programTrees } from '../../io/program-trees.ts'
import type { SharedProgram } from './types.ts'

/** A program's own text, with all that it imports. */
export function shareProgram(program: Pick<SptProgram, 'sources'>): SharedProgram {
  const sources = [...program.sources.values()].map(({ name, text }) => ({ name, text }))
  // The first is the one that imports the others.
  return { entry: sources[0]!.name, sources }
}

/** The program again, of which nothing else is read. @throws SptError `studies/incomplete`, `import/…`, `check/…` */
export async function carriedProgram(
  { entry, sources }: SharedProgram,
  instructions?: boolean | undefined,
): Promise<SptProgram> {
  const texts = new Map(sources.map((s) => [s.name, s.text]))
  const carried = async (path: string): Promise<string> =>
    texts.get(path) ??
    fail({
      code: 'studies/incomplete',
      message: `the study does not carry the text of '${path}'`,
      hint: 'publish it again',
    })
  const host = { files: carried, imports: carried, trees: programTrees(), shipped: shippedText }
  const first = { name: entry, text: await carried(entry) }
  return readProgram(first, host, instructions === undefined ? {} : { instructions })
}
