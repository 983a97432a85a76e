/** Texts in the languages of targets: what they do is whoever's word that wrote them, and nothing checks it. */
import { type Diagnostic, SptError } from './diagnostic.ts'
import type { Program } from './linked-program.ts'
import { inPackage } from './resolve-path.ts'

/** The text of a file of the package as it was shipped, by the path that imports it; `null`: there is none. */
export type Shipped = (path: string) => string | null

/**
 * For programs that nobody vouches for: no file of the program but those of the package has texts of instructions or
 * memories, whether they are used or not. @throws SptError `check/instruction-text`, one for each file
 */
export function refuseInstructionTexts(program: Program, shipped: Shipped = () => null): void {
  // A text that is called like a file of the package can change what the others are made of: all are what was shipped, or none.
  const packaged = [...program.sources.values()].filter((s) => inPackage(s.name))
  const isShipped = packaged.every((s) => shipped(s.name) === s.text)
  const problems = [...program.files].flatMap(([path, file]): Diagnostic[] => {
    if (isShipped && inPackage(path)) return []
    for (const decl of file.decls) {
      if (decl.kind !== 'instr' && decl.kind !== 'memory') continue
      const text = decl.items.find((item) => item.kind === 'text')
      if (text)
        return [
          {
            code: 'check/instruction-text',
            message: `${decl.kind} \`${decl.name.name}\` has a text for ${text.target.name}, which runs as it is written`,
            span: text.span,
            expected: 'texts for targets in files of the package alone: that is what was asked for',
            hint: inPackage(path)
              ? 'files of the package that came with the program are not known to be those that were shipped: load it where the package is installed, in the same version'
              : 'schedules without tensorize need none; allow them (instructions: true, no --no-instr) where whoever wrote them can be trusted',
          },
        ]
    }
    return []
  })
  if (problems.length === 0) return
  const error = new SptError(problems)
  error.sources = program.sources
  throw error
}
