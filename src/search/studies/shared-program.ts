/** Serialises a program with its imports, and parses it again without reading files. */
import { readProgram, type SptProgram } from '../../api/programs/program.ts'
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { shippedText } from '../../io/package/program-text.ts'
import { programTrees } from '../../io/package/program-trees.ts'
import type { SharedProgram } from './types.ts'

/** The program's own source, with all sources that it imports. */
export function shareProgram(program: Pick<SptProgram, 'sources'>): SharedProgram {
  const sources = [...program.sources.values()].map(({ name, text }) => ({ name, text }))
  // The first source imports the others.
  return { entry: sources[0]!.name, sources }
}

/** Parses the program again from its sources alone. @throws SptError `studies/incomplete`, `import/…`, `check/…` */
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
      hint: 'publish the study again',
    })
  const host = { files: carried, imports: carried, trees: programTrees(), shipped: shippedText }
  const main = { name: entry, text: await carried(entry) }
  return readProgram(main, host, instructions === undefined ? {} : { instructions })
}
