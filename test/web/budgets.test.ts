/**
 * Sizes of what a page or a program loads first, in bytes after minification and gzip: the entry with its static imports, and, after +,
 * those of modules that it imports on demand. The compiler is loaded by the first program. Rarely loaded:
 * WebGPU devices, verification with the reference, pictures, explanations, programs of the package; with formats, stored arrays.
 * `UPDATE_BUDGETS=1` lowers a budget to the size, and never raises one.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Metafile, type Plugin } from 'esbuild'
import { expect, test } from 'vitest'
import { libraries } from '../../scripts/libraries.mjs'
import sparsetile from '../../src/bundler/plugin.ts'

const TABLE = new URL('budgets.json', import.meta.url)
const budgets = JSON.parse(readFileSync(TABLE, 'utf8')) as Record<string, number>

const ownRuntime: Plugin = {
  name: 'runtime',
  setup: (api) =>
    api.onResolve({ filter: /^sparsetile\/runtime$/ }, () => ({ path: resolve('src/web/runtime.ts') })),
}

type Outputs = Metafile['outputs']

function bundled(entry: string, platform: 'node' | 'browser') {
  const isForNode = platform === 'node'
  return build({
    entryPoints: [entry],
    bundle: true,
    splitting: true,
    plugins: [ownRuntime, sparsetile.esbuild(), ...(isForNode ? [] : [libraries])],
    platform,
    packages: isForNode ? 'external' : 'bundle',
    format: 'esm',
    target: 'es2022',
    minify: true,
    write: false,
    metafile: true,
    outdir: 'out',
    absWorkingDir: process.cwd(),
  })
}

/** The chunks with those that they import statically. */
function chunksOf(outputs: Outputs, paths: readonly string[]): Set<string> {
  const loaded = new Set<string>()
  const add = (path: string): void => {
    if (loaded.has(path)) return
    loaded.add(path)
    for (const i of outputs[path]!.imports) if (i.kind === 'import-statement' && !i.external) add(i.path)
  }
  for (const path of paths) add(path)
  return loaded
}

/** Bytes of an entry and of imports on demand, with the chunks that they import statically. */
async function loadedBytes(budget: string): Promise<number> {
  const modules = budget.split(' + ')
  const platform = /node|search/.test(modules[0]!) ? 'node' : 'browser'
  const { outputFiles, metafile } = await bundled(modules[0]!, platform)
  const { outputs } = metafile
  const paths = modules.map((m) => Object.keys(outputs).find((path) => outputs[path]!.entryPoint === m)!)
  const loaded = [...chunksOf(outputs, paths)]
  const texts = outputFiles.filter((f) => loaded.some((path) => f.path.endsWith(`/${path}`)))
  // Without the hashes of chunks, which every change of any chunk changes.
  const bytes = (text: string): number =>
    gzipSync(text.replace(/-[A-Z0-9]{8}(?=\.js)/g, ''), { level: 9 }).length
  return texts.reduce((n, f) => n + bytes(f.text), 0)
}

test.each(Object.entries(budgets))('%s loads at most %i bytes', async (entry, most) => {
  const size = await loadedBytes(entry)
  expect(size).toBeGreaterThan(1000)
  expect(size).toBeLessThanOrEqual(most)
  if (process.env.UPDATE_BUDGETS === '1') budgets[entry] = Math.min(most, size)
})

test.runIf(process.env.UPDATE_BUDGETS === '1')('the table is renewed', () => {
  writeFileSync(TABLE, `${JSON.stringify(budgets, null, 2)}\n`)
})

test('a runtime without the compiler', async () => {
  const { metafile } = await build({
    entryPoints: ['src/web/runtime.ts'],
    bundle: true,
    format: 'esm',
    write: false,
    metafile: true,
  })
  const [output] = Object.values(metafile.outputs)
  const inputs = Object.entries(output!.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  const folders = inputs.map(([path]) => path.split('/').slice(0, -1).join('/'))
  expect([...new Set(folders)].sort()).toEqual([
    'src/backends',
    'src/ir/expressions',
    'src/ir/values',
    'src/plan',
    'src/web',
  ])
})

test('loadPlan loads no grammar, elaboration of programs, schedule steps or lowering', async () => {
  const { metafile } = await bundled('src/api/plans/loaded-plan.ts', 'browser')
  const { outputs } = metafile
  const [entry] = Object.keys(outputs).filter((path) => outputs[path]!.entryPoint?.includes('loaded-plan'))
  const inputs = [...chunksOf(outputs, [entry!])].flatMap((path) => Object.entries(outputs[path]!.inputs))
  const paths = inputs.flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : []))
  expect(paths.length).toBeGreaterThan(100)
  const compiler =
    /^(grammar|node_modules|src\/(derive|lower|sketch|elaborate\/index|schedule\/loops|ast\/imports))/
  expect(paths.filter((path) => compiler.test(path))).toEqual([])
})
