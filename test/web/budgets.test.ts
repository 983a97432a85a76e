/**
 * Sizes of what a page or a program loads first, in bytes after minification and gzip: the entry with its static imports, and, after +,
 * those of modules that it imports on demand. The compiler is loaded by the first program. Rarely loaded:
 * WebGPU devices, verification with the reference, pictures, explanations, programs of the package; with formats, stored arrays.
 * `UPDATE_BUDGETS=1` lowers a budget to the size, and never raises one.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'esbuild'
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

/** Bytes of an entry and of imports on demand, with the chunks that they import statically. */
async function loadedBytes(budget: string): Promise<number> {
  const [entry = '', ...onDemand] = budget.split(' + ')
  const isForNode = /node|search/.test(entry)
  const { outputFiles, metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    splitting: true,
    plugins: [ownRuntime, sparsetile.esbuild(), ...(isForNode ? [] : [libraries])],
    platform: isForNode ? 'node' : 'browser',
    packages: isForNode ? 'external' : 'bundle',
    format: 'esm',
    target: 'es2022',
    minify: true,
    write: false,
    metafile: true,
    outdir: 'out',
    absWorkingDir: process.cwd(),
  })
  const outputs = metafile.outputs
  const loaded = new Set<string>()
  const add = (path: string): void => {
    if (loaded.has(path)) return
    loaded.add(path)
    for (const i of outputs[path]!.imports) if (i.kind === 'import-statement' && !i.external) add(i.path)
  }
  for (const module of [entry, ...onDemand])
    add(Object.keys(outputs).find((path) => outputs[path]!.entryPoint === module)!)
  const texts = outputFiles.filter((f) => [...loaded].some((path) => f.path.endsWith(`/${path}`)))
  return texts.reduce((n, f) => n + gzipSync(f.contents, { level: 9 }).length, 0)
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
