// After tsc: what has lost its source is gone from dist; the build has a name, under which results are kept; the package's
// own programs are parsed; the command is one script, and executable. Resolving and opening six hundred modules costs more
// than half of what a short command takes.
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')

for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  const [, name] = /^(.*?)(?:\.d\.ts|\.js)(?:\.map)?$/.exec(file) ?? []
  if (name !== undefined && !['.ts', '.js', '.d.ts'].some((e) => existsSync(join(root, name + e))))
    rmSync(join(dist, file))
}

const command = join(dist, 'src/cli/main.js')
const named = join(dist, 'src/cache/build.js')
const ranking = 'src/search/ranking/ranking-worker'
const hash = createHash('sha256')
for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' }).toSorted()) {
  const path = join(dist, file)
  // What is written here says no more than the rest does.
  if (file.endsWith('.js') && ![command, named, join(dist, `${ranking}.js`)].includes(path))
    hash.update(`${file}\n`).update(readFileSync(path))
}
const BUILD = hash.digest('hex')
writeFileSync(named, `export const BUILD = '${BUILD}'\n`)

const trees = join(dist, 'trees')
rmSync(trees, { recursive: true, force: true })
const { openCache } = await import(pathToFileURL(join(dist, 'src/cache/disk-cache.js')).href)
const { treesIn } = await import(pathToFileURL(join(dist, 'src/io/package/program-trees.js')).href)
const { parse } = await import(pathToFileURL(join(dist, 'src/schedule/steps/language.js')).href)
const shipped = treesIn([openCache(trees, 'tree')], BUILD)
const { parseTable } = await import(pathToFileURL(join(dist, 'src/ast/parse/parse-table.js')).href)
for (const [folder, ending, parseFile] of [
  ['kernels', '.spt', parse],
  ['data/choices', '.json', parseTable],
])
  for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith(ending)) continue
    const source = { name: file, text: readFileSync(join(root, folder, file), 'utf8') }
    await shipped.store(source, parseFile(source))
  }

/** The name of the build, instead of none. */
const withName = {
  name: 'name of the build',
  setup: ({ onLoad }) =>
    onLoad({ filter: /src\/cache\/build\.ts$/ }, () => ({ contents: readFileSync(named, 'utf8') })),
}

/**
 * Libraries that few commands use are run when they are first called. The grammar comes ready-made: what reads the texts of
 * grammars is left out.
 */
const modules = join(root, 'node_modules')
const deferred = {
  'ohm-js': {
    resolveDir: join(modules, 'ohm-js/src'),
    contents: `export function makeRecipe(...args) {
      require('./semanticsDeferredInit.js')
      return require('./main-kernel.js').makeRecipe(...args)
    }`,
  },
  fflate: {
    resolveDir: modules,
    contents: ['Zip', 'ZipDeflate', 'ZipPassThrough']
      .map(
        (c) =>
          `export function ${c}(...args) { return new (require('./fflate/esm/index.mjs').${c})(...args) }`,
      )
      .join('\n'),
  },
}
const libraries = {
  name: 'deferred libraries',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:ohm-js|fflate)$/ }, ({ path }) => ({ path, namespace: 'deferred' }))
    onLoad({ filter: /./, namespace: 'deferred' }, ({ path }) => deferred[path])
  },
}

/** What both scripts of the command are built with. Names stay, for traces. */
const shared = {
  outdir: join(dist, 'src/cli'),
  bundle: true,
  platform: 'node',
  target: 'node20',
  // Native or optional: where they are is for Node to find.
  external: ['koffi', 'webgpu', 'libsql', 'bullmq', 'ioredis'],
  minifyWhitespace: true,
  minifySyntax: true,
  sourcemap: true,
  sourcesContent: false,
  plugins: [withName, libraries],
  logLevel: 'warning',
}
// What starts: a few files, small enough to be compiled each time.
await build({
  ...shared,
  entryPoints: [join(root, 'src/cli/main.ts')],
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  format: 'esm',
})
// All commands: one script, of which V8 keeps what it compiled (`src/cli/script.ts`). Each runs the files that it needs.
await build({
  ...shared,
  entryPoints: { commands: join(root, 'src/cli/index.ts') },
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  charset: 'ascii',
  // Scripts cannot import; what is native is required.
  supported: { 'dynamic-import': false },
  define: { 'import.meta.url': 'fileUrl' },
  banner: { js: "const fileUrl=require('node:url').pathToFileURL(__filename).href;" },
})
// A thread that lives for a second: it opens one file, not hundreds.
await build({
  ...shared,
  outdir: dist,
  entryPoints: { [ranking]: join(root, `${ranking}.ts`) },
  format: 'esm',
})
if (!readFileSync(command, 'utf8').startsWith('#!/usr/bin/env node\n'))
  throw new Error('dist/src/cli/main.js has no shebang')
chmodSync(command, 0o755)
