import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { escapeLine } from '../../ast/diagnostics/render.ts'
import { print } from '../../ast/print/print.ts'
import { writeFile } from '../../io/node-files.ts'
import { readProgramText } from '../../io/package/program-text.ts'
import { parse } from '../../schedule/steps/language.ts'
import type { CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { EXIT, showDiagnostics } from '../output/failure.ts'

export const fmt: CommandSpec = {
  name: 'fmt',
  args: 'FILE…',
  count: [1, Number.POSITIVE_INFINITY],
  summary: 'Write programs in the canonical layout',
  options: optionTable`
    --check  List the files in another layout without a change, and exit 1 if there is one
  `,
  notes: [
    'Files are rewritten in place; `-` reads standard input and writes standard output. Comments are kept.',
  ],
  examples: ['spt fmt kernel.spt', 'spt fmt --check kernels/*.spt', 'spt fmt - < kernel.spt'],
  async run(call) {
    const { args, io } = call
    let code: number = EXIT.ok
    for (const path of args) {
      try {
        const stdin = path === '-'
        const before = stdin ? await io.stdin() : await readProgramText(path)
        const after = format(stdin ? '<stdin>' : path, before)
        if (call.flag('check')) {
          if (after === before) continue
          code = EXIT.failed
          io.out(`${stdin ? '<stdin>' : escapeLine(path)}\n`)
        } else if (stdin) io.out(after)
        else if (after !== before) await writeFile(path, after)
      } catch (error) {
        if (!(error instanceof SptError)) throw error
        showDiagnostics(error, io)
        code = EXIT.failed
      }
    }
    return code
  },
}

function format(name: string, text: string): string {
  try {
    return print(parse({ name, text }))
  } catch (error) {
    if (error instanceof SptError) error.sources ??= new Map([[name, { name, text }]])
    throw error
  }
}
