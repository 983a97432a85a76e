// `npm run playground`: the page into playground/dist, static files for any path of any server. Equal sources give equal bytes.
//   npm run playground -- --serve   serves the page on localhost afterwards

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { libraries } from '../scripts/libraries.mjs'
import { examples, start } from './examples.mjs'

const here = import.meta.dirname
const root = resolve(here, '..')
const SHARED = { bundle: true, format: 'esm', logLevel: 'warning', absWorkingDir: root }

/** Files of the package that a page can import or bind. */
const packageFiles = () =>
  [
    ...['kernels', 'data/choices'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((f) => f.endsWith('.spt'))
        .map((f) => `${folder}/${f.replaceAll('\\', '/')}`),
    ),
    'data/cora.mtx',
  ].sort()

/** The compiler's parser and the words of the language, from its sources. */
let loaded
const language = () => (loaded ??= bundleLanguage())

async function bundleLanguage() {
  const { outputFiles } = await build({
    ...SHARED,
    platform: 'node',
    write: false,
    stdin: {
      resolveDir: root,
      contents: `
        export { parse, STEP_SYNTAX } from './src/schedule/steps/language.ts'
        export { formText } from './src/ast/nodes/step-syntax.ts'
        export { encodeTree } from './src/io/package/tree-encoding.ts'
        export { DTYPES } from './src/ir/values/dtype.ts'
        export { AXIS_KINDS } from './src/ast/parse/axisdef.ts'`,
    },
  })
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)
}

/** Words for highlighting and completion, from the grammar and the tables of the compiler. */
function wordsOf({ STEP_SYNTAX, formText, DTYPES, AXIS_KINDS }) {
  const quoted = readFileSync(join(root, 'grammar/spt.ohm'), 'utf8').matchAll(/"([a-z][a-z_]+)"/g)
  const steps = Object.fromEntries(
    Object.values(STEP_SYNTAX).map((s) => [s.word, s.forms.map((f) => formText(s.word, f))]),
  )
  const types = [...DTYPES, ...AXIS_KINDS, 'size', 'real']
  // Words of steps that are written as they are: `at`, `register`.
  const literal = Object.values(steps).flatMap((forms) => forms.join(' ').match(/\b[a-z][a-z_]+\b/g) ?? [])
  const all = [...[...quoted].map(([, w]) => w), ...literal, 'register', 'shared']
  const keywords = [...new Set(all)].filter((w) => !types.includes(w) && !(w in steps))
  return { keywords: keywords.sort(), steps, types: types.sort() }
}

/** Modules that are computed: `playground:words`. */
const computed = (modules) => ({
  name: 'computed modules',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^playground:/ }, ({ path }) => ({ path, namespace: 'computed' }))
    onLoad({ filter: /./, namespace: 'computed' }, ({ path }) => ({
      contents: `export default ${JSON.stringify(modules[path])}`,
      loader: 'js',
    }))
  },
})

/** Builds the page into a folder. `trees`: files whose parse trees are made; the page parses the others when it needs them. */
export async function buildPlayground(out = join(here, 'dist'), trees = packageFiles()) {
  const compiler = await language()
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const { metafile } = await build({
    ...SHARED,
    platform: 'browser',
    target: 'es2022',
    minify: true,
    metafile: true,
    outdir: out,
    entryPoints: {
      page: join(here, 'page/main.ts'),
      compiler: join(here, 'worker/worker.ts'),
      style: join(here, 'style/index.css'),
    },
    plugins: [
      libraries,
      computed({ 'playground:words': wordsOf(compiler), 'playground:examples': examples() }),
    ],
  })
  cpSync(join(here, 'index.html'), join(out, 'index.html'))
  const writeText = (file, text, hasTree) => {
    const to = join(out, 'package', file)
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, text)
    if (!hasTree) return
    writeFileSync(`${to}.tree`, compiler.encodeTree(compiler.parse({ name: `sparsetile/${file}`, text })))
  }
  writeText('start.spt', start(), true)
  for (const file of packageFiles())
    writeText(file, readFileSync(join(root, file), 'utf8'), file.endsWith('.spt') && trees.includes(file))
  return metafile
}

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }

/** A server of the page, as any static host. `base`: path of the page; `policy`: Content-Security-Policy of all files. */
export async function servePlayground(out = join(here, 'dist'), { base = '/', port = 0, policy } = {}) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost')
    const file = resolve(out, `./${pathname.slice(base.length)}` || '.')
    const path = file === resolve(out) ? join(out, 'index.html') : file
    try {
      if (!pathname.startsWith(base) || !file.startsWith(resolve(out))) throw new Error('outside')
      const body = readFileSync(path)
      response
        .writeHead(200, {
          'content-type': TYPES[extname(path)] ?? 'application/octet-stream',
          ...(policy === undefined ? {} : { 'content-security-policy': policy }),
        })
        .end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise((done) => server.listen(port, '127.0.0.1', done))
  return server
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildPlayground()
  if (process.argv.includes('--serve')) {
    const server = await servePlayground()
    console.log(`http://127.0.0.1:${server.address().port}/`)
  }
}
