// After tsc: what has lost its source is gone from dist; the build has a name, under which results are kept; the package's
// own programs are parsed; the command is one file and what it loads at need, and executable. Resolving and opening six
// hundred modules costs more than half of what a short command takes.
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
const hash = createHash('sha256')
for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' }).toSorted()) {
  const path = join(dist, file)
  // What is written here says no more than the rest does.
  if (file.endsWith('.js') && path !== command && path !== named)
    hash.update(`${file}\n`).update(readFileSync(path))
}
const BUILD = hash.digest('hex')
writeFileSync(named, `export const BUILD = '${BUILD}'\n`)

const trees = join(dist, 'trees')
rmSync(trees, { recursive: true, force: true })
const { openCache } = await import(pathToFileURL(join(dist, 'src/cache/disk-cache.js')).href)
const { treesIn } = await import(pathToFileURL(join(dist, 'src/io/program-trees.js')).href)
const { parse } = await import(pathToFileURL(join(dist, 'src/schedule/language.js')).href)
const shipped = treesIn([openCache(trees, 'tree')], BUILD)
for (const file of readdirSync(join(root, 'kernels'), { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.spt')) continue
  const source = { name: file, text: readFileSync(join(root, 'kernels', file), 'utf8') }
  await shipped.store(source, parse(source))
}

/** The name of the build, instead of none. */
const withName = {
  name: 'name of the build',
  setup: ({ onLoad }) =>
    onLoad({ filter: /src\/cache\/build\.ts$/ }, () => ({ contents: readFileSync(named, 'utf8') })),
}

/** The grammar comes ready-made: what reads the texts of grammars is left out. */
const readyMade = {
  name: 'ready-made grammar',
  setup({ onResolve, onLoad }) {
    const src = join(root, 'node_modules/ohm-js/src')
    onResolve({ filter: /^ohm-js$/ }, () => ({ path: 'ohm-js', namespace: 'ready-made' }))
    onLoad({ filter: /./, namespace: 'ready-made' }, () => ({
      contents: "import './semanticsDeferredInit.js'; export { makeRecipe } from './main-kernel.js'",
      resolveDir: src,
    }))
  },
}

await build({
  entryPoints: [join(root, 'src/cli/main.ts')],
  outdir: join(dist, 'src/cli'),
  bundle: true,
  // What a command loads when it needs it lies in files of its own.
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // Native: where they are is for Node to find.
  external: ['koffi', 'webgpu'],
  // Names stay, for traces.
  minifyWhitespace: true,
  minifySyntax: true,
  sourcemap: true,
  sourcesContent: false,
  plugins: [withName, readyMade],
  logLevel: 'warning',
})
if (!readFileSync(command, 'utf8').startsWith('#!/usr/bin/env node\n'))
  throw new Error('dist/src/cli/main.js has no shebang')
chmodSync(command, 0o755)
