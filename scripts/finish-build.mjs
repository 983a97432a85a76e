// After tsc: what has lost its source is gone from dist; the build has a name, under which results are kept; the package's
// own programs are parsed; the public entries, threads and the command are bundled. Resolving and opening a thousand modules
// costs more than half of what a short command takes. The package contains the bundles and the declarations that the entries
// mention, but none of the modules.
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'
import { libraries } from './libraries.mjs'
import { mergeChunks } from './merge-chunks.mjs'
import { bundledPackages, notices } from './third-party.mjs'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')
const library = join(dist, 'lib')
/** The public entries by name; the command, the suites of `spt bench`, which the package leaves out, and scripts of threads. */
const entries = {
  ...Object.fromEntries(
    ['index', 'node', 'device', 'search', 'prune', 'notebook'].map((name) => [name, `src/${name}`]),
  ),
  families: 'bench/families',
  runtime: 'src/web/runtime',
  'runtime-formats': 'src/web/formats/formats',
  bundler: 'src/bundler/plugin',
  register: 'src/bundler/register',
}
const programs = {
  spt: 'src/cli/main',
  'module-hooks': 'src/bundler/module-hooks',
  'bench-suites': 'bench/gpu/index',
  'thread-tasks': 'src/search/thread-tasks',
}
rmSync(library, { recursive: true, force: true })

for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  const [, name] = /^(.*?)(?:\.d\.ts|\.js)(?:\.map)?$/.exec(file) ?? []
  if (name !== undefined && !['.ts', '.js', '.d.ts'].some((e) => existsSync(join(root, name + e))))
    rmSync(join(dist, file))
}

const command = join(library, 'spt.js')
const named = join(dist, 'src/cache/build.js')
const hash = createHash('sha256')
for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' }).toSorted()) {
  const path = join(dist, file)
  // What is written here says no more than the rest does.
  if (file.endsWith('.js') && path !== named) hash.update(`${file}\n`).update(readFileSync(path))
}
const BUILD = hash.digest('hex')
writeFileSync(named, `export const BUILD = '${BUILD}'\n`)

const trees = join(dist, 'trees')
rmSync(trees, { recursive: true, force: true })
const { openCache } = await import(pathToFileURL(join(dist, 'src/cache/disk-cache.js')).href)
const { treesIn } = await import(pathToFileURL(join(dist, 'src/io/package/program-trees.js')).href)
const { parse } = await import(pathToFileURL(join(dist, 'src/schedule/steps/language.js')).href)
const shipped = treesIn([openCache(trees, 'tree')], BUILD)
const programFiles = ['kernels', 'data/choices'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.spt'))
    .map((file) => `${folder}/${file}`),
)
for (const file of programFiles) {
  const source = { name: file, text: readFileSync(join(root, file), 'utf8') }
  await shipped.store(source, parse(source))
}

/** The name of the build, instead of none. */
const withName = {
  name: 'name of the build',
  setup: ({ onLoad }) =>
    onLoad({ filter: /src\/cache\/build\.ts$/ }, () => ({ contents: readFileSync(named, 'utf8') })),
}
/** One import for each program of the package, instead of none. */
const withPrograms = {
  name: 'programs of the package',
  setup({ onLoad }) {
    const imports = programFiles.map((file) => `'${file}': () => import('./${file}')`)
    onLoad({ filter: /src\/ast\/imports\/package-modules\.ts$/ }, () => ({
      contents: `export const PROGRAMS = { ${imports.join(', ')} }`,
      resolveDir: root,
    }))
    onLoad({ filter: /\.spt$/ }, ({ path }) => ({ contents: readFileSync(path, 'utf8'), loader: 'text' }))
  },
}

/** The suites are a file of their own (`programs`). */
const suites = {
  name: 'suites of spt bench',
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/bench\/gpu\/index\.ts$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: '../bench-suites.js', external: true } : undefined,
    ),
}
/** Names stay, for traces. */
const shared = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  // Native or optional: where they are is for Node to find.
  external: ['unplugin', 'koffi', 'webgpu', 'libsql', '@resvg/resvg-wasm'],
  minifyWhitespace: true,
  minifySyntax: true,
  // immer reads it, and pages without a bundler have no `process`.
  define: { 'process.env.NODE_ENV': '"production"' },
  plugins: [withName, withPrograms, suites, libraries],
  logLevel: 'warning',
}
/** One file for each entry, and chunks of the modules that several entries import. */
const split = { splitting: true, chunkNames: 'chunks/[name]-[hash]', format: 'esm' }
const { metafile } = await build({
  ...shared,
  ...split,
  metafile: true,
  outdir: library,
  entryPoints: Object.fromEntries(
    Object.entries({ ...entries, ...programs }).map(([name, path]) => [name, join(root, `${path}.ts`)]),
  ),
})
await mergeChunks(library)
// Minifying drops the comments by which webpack, Rspack and Vite leave the import of a plan's module to the browser.
const modules = readdirSync(library, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.js'))
const importing = modules
  .map((f) => join(library, f))
  .filter((f) => readFileSync(f, 'utf8').includes('import(url)'))
if (importing.length !== 1) throw new Error(`import(url) is in ${importing.length} files`)
const code = readFileSync(importing[0], 'utf8')
writeFileSync(
  importing[0],
  code.replace('import(url)', 'import(/* webpackIgnore: true */ /* @vite-ignore */ url)'),
)
writeFileSync(join(library, 'THIRD_PARTY.txt'), notices(root, bundledPackages(metafile)))
/**
 * The declarations of the public entries, bundled like their modules: a file for each entry, and chunks of what several
 * entries declare. A type that two entries mention is thus one type.
 */
const declarations = await rolldown({
  input: Object.fromEntries(
    Object.entries(entries).map(([name, path]) => [`${name}.d`, join(dist, `${path}.d.ts`)]),
  ),
  plugins: [dts({ dtsInput: true })],
  external: [/^[^./]/],
})
await declarations.write({
  dir: join(library, 'types'),
  entryFileNames: '[name].ts',
  chunkFileNames: 'chunks/[name]-[hash].d.ts',
  // The directive of src/runtime/dispose.ts, which bundling drops.
  banner: '/// <reference lib="esnext.disposable" preserve="true" />',
})

if (!readFileSync(command, 'utf8').startsWith('#!/usr/bin/env node\n'))
  throw new Error('dist/lib/spt.js has no shebang')
chmodSync(command, 0o755)
