/** Code in the languages of targets, which the compiler inserts unchecked. */
import { type Diagnostic, SptError } from '../diagnostics/diagnostic.ts'
import type { Program } from './linked-program.ts'
import { inPackage } from './resolve-path.ts'

/** Returns the shipped content of a package file by its import path; `null` if there is none. */
export type Shipped = (path: string) => string | null

/**
 * For untrusted programs: rejects texts of instructions and memories, used or not, outside the package's own files.
 * @throws SptError `check/instruction-text`, one for each file
 */
export function rejectInstructionTexts(program: Program, shipped: Shipped = () => null): void {
  // A source that is named like a package file could change the meaning of the others: either all of them equal the
  // shipped files, or none is trusted.
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
            message: `${decl.kind} \`${decl.name.name}\` has a text for ${text.target.name}, which runs unchecked`,
            span: text.span,
            expected: 'no device code outside the files of the package',
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
