/** Texts in the languages of targets: what they do is whoever's word that wrote them, and nothing checks it. */
import { type Diagnostic, SptError } from './diagnostic.ts'
import type { Program } from './linked-program.ts'

/**
 * For programs that nobody vouches for: no file of the program has texts of instructions or memories, whether they are
 * used or not. @throws SptError `check/instruction-text`, one for each file
 */
export function refuseInstructionTexts(program: Program): void {
  const problems = [...program.files.values()].flatMap((file): Diagnostic[] => {
    for (const decl of file.decls) {
      if (decl.kind !== 'instr' && decl.kind !== 'memory') continue
      const text = decl.items.find((item) => item.kind === 'text')
      if (text)
        return [
          {
            code: 'check/instruction-text',
            message: `${decl.kind} \`${decl.name.name}\` has a text for ${text.target.name}, which runs as it is written`,
            span: text.span,
            expected: 'a program without texts for targets: that is what was asked for',
            hint: 'schedules without tensorize need none; allow them (instructions: true, no --no-instr) where whoever wrote them can be trusted',
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
