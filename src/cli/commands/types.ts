/** Declarations of imported plans for TypeScript. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { failWith, resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { escapeLine } from '../../ast/diagnostics/render.ts'
import { inPackage } from '../../ast/imports/resolve-path.ts'
import { type PlanImport, planDeclarations } from '../../bundler/declarations.ts'
import { compilePlan, isPlanImport, planRequest, resolvedImport } from '../../bundler/plan-request.ts'
import { withFileErrors, writeFile } from '../../io/node-files.ts'
import type { CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { EXIT, showDiagnostics } from '../output/failure.ts'
import { progressOn } from '../output/io.ts'

const SOURCES = /\.([mc]?[jt]sx?|vue|svelte|astro)$/
const NOT_OURS = /^(node_modules|dist|\..*)$/

export const types: CommandSpec = {
  name: 'types',
  args: '[PATH…]',
  count: [0, Number.POSITIVE_INFINITY],
  summary: 'Write TypeScript declarations of imported plans',
  options: optionTable`
    --out <FILE>  [write]  The declaration file (default: plans.d.ts in the first folder)
    --check  Write nothing, and exit 1 if the file is not up to date
  `,
  notes: [
    "Finds imports such as './kernel.spt?plan&schedule=gpu(8,32)' in the source files of each PATH (default: src if it exists, otherwise\nthe current folder), compiles them, and declares a module for each: tsc then rejects wrong names of inputs and outputs, wrong\ntypes of arrays, and imports whose kernel or schedule does not exist. The compilation must include the declaration file.",
  ],
  examples: ['spt types', 'spt types src --out src/plans.d.ts', 'spt types --check'],
  async run(call) {
    const { io } = call
    const isFolder = async (path: string): Promise<boolean> =>
      (await withFileErrors(path, 'read', () => stat(path))).isDirectory()
    const usual = (await stat('src').catch(() => undefined))?.isDirectory() ? 'src' : '.'
    const paths = call.args.length > 0 ? call.args : [usual]
    const first = (await isFolder(paths[0]!)) ? paths[0]! : dirname(paths[0]!)
    const out = call.one('out') ?? join(first, 'plans.d.ts')
    const found = new Map<string, Found>()
    const failures: SptError[] = []
    const keep = <T>(made: T | SptError, use: (made: T) => unknown): void => {
      if (made instanceof SptError) failures.push(made)
      else use(made)
    }
    for (const path of paths)
      for (const file of (await isFolder(path)) ? await sourceFiles(path) : [path])
        for (const specifier of importsIn(await withFileErrors(file, 'read', () => readFile(file, 'utf8'))))
          keep(
            resultOrError(() => foundAt(specifier, file, found)),
            (added) => found.set(added.pattern, added),
          )
    const imports: PlanImport[] = []
    const onProgress = progressOn(io)
    for (const { pattern, id } of found.values()) {
      const compiled = valueOrError(async () => {
        const request = planRequest(id)
        return { pattern, request, ...(await compilePlan(request, { onProgress })) }
      })
      keep(await compiled, (made) => imports.push(made))
    }
    io.progress?.('')
    for (const error of failures) showDiagnostics(error, io)
    // If two patterns match an import, TypeScript takes the first.
    imports.sort((a, b) => b.pattern.length - a.pattern.length || (a.pattern < b.pattern ? -1 : 1))
    const made = planDeclarations(imports, basename(out), (path) =>
      relative(dirname(resolve(out)), path).replaceAll('\\', '/'),
    )
    if (call.flag('check')) {
      const before = await readFile(out, 'utf8').catch(() => '')
      if (before !== made.text) io.out(`${escapeLine(out)} is not up to date: spt types\n`)
      return before === made.text && failures.length === 0 ? EXIT.ok : EXIT.failed
    }
    await writeFile(out, made.text)
    await writeFile(`${out}.map`, made.map)
    io.out(`${escapeLine(out)}: ${imports.length} ${imports.length === 1 ? 'import' : 'imports'}\n`)
    return failures.length === 0 ? EXIT.ok : EXIT.failed
  },
}

interface Found {
  readonly pattern: string
  /** The absolute path of the program, with the query. */
  readonly id: string
  readonly specifier: string
  readonly file: string
}

/** Source files below a folder, without packages, outputs and hidden folders. */
async function sourceFiles(folder: string): Promise<string[]> {
  const entries = await withFileErrors(folder, 'read', () => readdir(folder, { withFileTypes: true }))
  const files = await Promise.all(
    entries.map(async (e) => {
      const path = join(folder, e.name)
      if (e.isDirectory()) return NOT_OURS.test(e.name) ? [] : sourceFiles(path)
      return SOURCES.test(e.name) && !e.name.endsWith('.d.ts') ? [path] : []
    }),
  )
  return files.flat().toSorted()
}

/** Texts in quotation marks that have the form of an import of a plan. */
const importsIn = (text: string): readonly string[] =>
  [...text.matchAll(/(['"`])((?:(?!\1)[^\\\n$])*)\1/g)].map((m) => m[2]!).filter(isPlanImport)

/** An import in a file. Throws SptError `import/plan`, also if an import with the same text in `others` is another program. */
function foundAt(specifier: string, file: string, others: ReadonlyMap<string, Found>): Found {
  const [path = ''] = specifier.split('?')
  const id = resolvedImport(specifier, dirname(file))
  if (inPackage(path)) return { pattern: specifier, id, specifier, file }
  if (!/^\.{0,2}\//.test(path))
    failWith('import/plan', `the path of the import '${specifier}' in ${file} is not relative`, {
      expected: "a path that begins with './', '../' or 'sparsetile/'",
    })
  const pattern = `*${specifier.replace(/^\.{0,2}(\/\.\.)*(?=\/)/, '')}`
  const other = others.get(pattern)
  if (other && other.id !== id) failAmbiguous(other, { specifier, file })
  return { pattern, id, specifier, file }
}

type Occurrence = Pick<Found, 'specifier' | 'file'>

const failAmbiguous = (a: Occurrence, b: Occurrence): never =>
  failWith(
    'import/plan',
    `'${a.specifier}' in ${a.file} and '${b.specifier}' in ${b.file} are two programs`,
    {
      expected:
        'imports that differ in more than leading dots, because TypeScript declares modules by the text of the import',
      hint: `rename one of the programs, or import one by a path with its folder: ../FOLDER/${basename(b.specifier)}`,
    },
  )
