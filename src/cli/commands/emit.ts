import { mkdir, stat, writeFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { SptError } from '../../ast/diagnostic.ts'
import type { ArgSpec, Entry, ModuleText } from '../../backends/module.ts'
import { fileDiagnostic } from '../../io/node.ts'
import type { CommandSpec } from '../command.ts'
import { EXIT } from '../failure.ts'
import { chosenKernel, loadFile, scheduleCall, scheduled, within } from '../program.ts'
import { misused } from '../usage.ts'

const TARGETS = { wgsl: '.wgsl', cuda: '.cu', js: '.js' } as const

export const emit: CommandSpec = {
  name: 'emit',
  args: 'FILE',
  count: [1, 1],
  summary: 'Print the code of a kernel for a target',
  options: [
    { flags: '--target <T>', about: 'wgsl, cuda or js' },
    { flags: '--kernel <K>', about: 'Which kernel (default: the only one, or the one called like its file)' },
    {
      flags: '--schedule <S>',
      about: 'Its name, or gpu(8, 32) with arguments (default: cpu for js, gpu for the others, if there)',
    },
    {
      flags: '--out <PATH>',
      about: 'Write a file (a name with an ending) or a folder with one file a module',
    },
  ],
  notes: ['On wgsl and cuda, a kernel whose schedule binds no threads gets its outer loops bound.'],
  examples: [
    'spt emit kernel.spt --target cuda --out kernel.cu',
    'spt emit kernel.spt --target wgsl --out shaders/',
  ],
  async run(call) {
    const target = call.choice('target', ['wgsl', 'cuda', 'js'] as const)
    if (target === undefined)
      return misused({ command: 'emit', message: '--target is missing', expected: 'wgsl, cuda or js' })
    const asked = scheduleCall(call)
    const program = await loadFile(call.args[0]!)
    const modules = await within(program, () => {
      const { kernel } = scheduled(chosenKernel(program, call), asked, target === 'js' ? 'cpu' : 'gpu')
      return (target === 'js' ? kernel : kernel.parallel()).emit(target)
    })
    const out = call.one('out')
    if (out === undefined) {
      call.io.out(together(modules))
      return EXIT.ok
    }
    const written = await write(out, modules, TARGETS[target]).catch((error: unknown) => {
      throw new SptError(fileDiagnostic(error, out, 'write'))
    })
    for (const path of written) call.io.err(`wrote ${path}\n`)
    return EXIT.ok
  },
}

async function write(out: string, modules: readonly ModuleText[], ending: string): Promise<string[]> {
  const isFolder =
    /[/\\]$/.test(out) || extname(out) === '' || (await stat(out).catch(() => null))?.isDirectory()
  if (!isFolder) {
    await writeFile(out, together(modules))
    return [out]
  }
  await mkdir(out, { recursive: true })
  const paths: string[] = []
  for (const m of modules) {
    const path = join(out, `${m.name}${ending}`)
    await writeFile(path, `${signatures(m)}${m.text}`)
    paths.push(path)
  }
  return paths
}

/** One text; several modules each under a line of their own. */
function together(modules: readonly ModuleText[]): string {
  return modules
    .map((m, k) => {
      const head = modules.length > 1 ? `// ==== module ${k + 1} of ${modules.length}: ${m.name} ====\n` : ''
      return `${head}${signatures(m)}${m.text}`
    })
    .join('\n')
}

/** What whoever launches the text has to know, as comments. */
const signatures = (m: ModuleText): string => m.entries.map((e) => signature(m, e)).join('')

function signature(m: ModuleText, e: Entry): string {
  const argument = (a: ArgSpec): string =>
    a.kind === 'buffer'
      ? `${a.name}: ${a.dtype}[]${a.access === 'read' ? '' : ' (written)'}`
      : `${a.name}: ${a.dtype}`
  const block = m.target === 'js' ? '' : `, blocks of ${e.block.join(' × ')} threads`
  return `// ${e.name}(${e.args.map(argument).join(', ')})${block}\n`
}
