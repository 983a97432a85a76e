import { SptError } from '../../ast/diagnostic.ts'
import type { CommandSpec } from '../command.ts'
import { EXIT, showDiagnostics } from '../failure.ts'
import type { Io } from '../io.ts'
import { loadFile, within } from '../program.ts'

export const check: CommandSpec = {
  name: 'check',
  args: 'FILE…',
  count: [1, Number.POSITIVE_INFINITY],
  summary: 'Find the errors in programs',
  options: [],
  notes: [
    'Names, types and shapes are checked, and every schedule whose parameters all have defaults is\napplied and lowered, so that a step that is not legal is found without data or a device.',
  ],
  examples: ['spt check kernel.spt', 'spt check kernels/*.spt'],
  async run({ args, io }) {
    let ok = true
    for (const path of args) ok = (await checkFile(path, io)) && ok
    return ok ? EXIT.ok : EXIT.failed
  },
}

async function checkFile(path: string, io: Io): Promise<boolean> {
  try {
    const program = await loadFile(path)
    const found: string[] = []
    let errors = 0
    for (const name of program.kernels) {
      const kernel = program.kernel(name)
      await within(program, () => kernel.compilation.plan)
      for (const schedule of kernel.schedules.filter((s) => !kernel.parameters(s).some((p) => p.required)))
        await within(program, () => kernel.schedule(schedule).compilation.plan).catch((error: unknown) => {
          if (!(error instanceof SptError)) throw error
          if (errors++ > 0) io.err('\n')
          showDiagnostics(error, io)
        })
      const list = [...kernel.schedules, ...kernel.choices]
      found.push(`kernel ${name}${list.length > 0 ? ` (schedules ${list.join(', ')})` : ''}`)
    }
    for (const name of program.formats.keys()) found.push(`format ${name}`)
    const { memories, instructions } = program.families
    for (const [name, { params }] of memories) found.push(`memory ${name}${listed(params)}`)
    for (const [name, { params }] of instructions) found.push(`instr ${name}${listed(params)}`)
    if (errors === 0)
      io.out(`${path}: ok${found.length > 0 ? `, ${found.join(', ')}` : ', nothing declared'}\n`)
    return errors === 0
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    showDiagnostics(error, io)
    return false
  }
}

const listed = (params: readonly { readonly name: string }[]): string =>
  params.length > 0 ? `(${params.map((p) => p.name).join(', ')})` : ''
