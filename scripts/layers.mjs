// Imports run one way, between rooms and between files: each room may import only from those listed for it, and
// no files import each other in a ring, types included. Run by CI and by test/layers.test.ts.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const src = resolve(dirname(fileURLToPath(import.meta.url)), '../src')

/** Nodes of the program in its stages, and reasoning about them. */
const IR = ['ast', 'ir', 'analysis']
/** Kernels from text to devices. */
const COMPILER = [
  ...IR,
  'derive',
  'elaborate',
  'columns',
  'levels',
  'formats',
  'storage',
  'schedule',
  'lower',
  'backends',
  'runtime',
  'plan',
  'run',
  'run/bind',
]

/**
 * Rooms in the order data flows; a room may import from itself and from what is named. A folder inside of a room that
 * is listed here is a room of its own.
 */
export const ROOMS = {
  cache: [],
  ast: [],
  ir: ['ast'],
  analysis: ['ast', 'ir'],
  reference: ['ast', 'ir'],
  derive: IR,
  elaborate: [...IR, 'derive', 'backends'],
  verifiers: IR,
  interpret: IR,
  columns: IR,
  levels: [...IR, 'columns'],
  formats: [...IR, 'columns'],
  storage: [...IR, 'columns', 'levels', 'formats'],
  pictures: [...IR, 'columns', 'levels', 'formats', 'storage'],
  prune: ['ast', 'storage', 'pictures'],
  schedule: [...IR, 'elaborate', 'formats'],
  lower: [...IR, 'levels'],
  backends: IR,
  runtime: [...IR, 'cache', 'backends'],
  plan: [...IR, 'formats', 'lower', 'backends', 'runtime'],
  'storage/engines/device': [
    ...IR,
    'columns',
    'levels',
    'formats',
    'storage',
    'lower',
    'backends',
    'runtime',
  ],
  'run/bind': [...IR, 'columns', 'levels', 'formats', 'storage', 'reference'],
  run: [
    ...IR,
    'columns',
    'formats',
    'storage',
    'reference',
    'schedule',
    'lower',
    'backends',
    'runtime',
    'plan',
    'run/bind',
  ],
  // Without diagnostics and everything else that a page with one plan does not need.
  web: ['ir', 'backends', 'runtime', 'plan'],
  'web/formats': [...IR, 'levels', 'storage', 'run/bind', 'plan', 'web', 'api'],
  sketch: [...IR, 'schedule'],
  io: [...IR, 'cache', 'storage'],
  'cost-model': COMPILER,
  api: [
    ...COMPILER,
    'verifiers',
    'interpret',
    'reference',
    'storage/engines/device',
    'pictures',
    'sketch',
    'cost-model',
  ],
  bundler: ['ast', 'ir', 'io', 'plan', 'run', 'run/bind', 'runtime', 'api', 'search', 'web', '.'],
  'instruction-tests': [...COMPILER, 'interpret', 'reference', 'api'],
  search: [...COMPILER, 'pictures', 'cache', 'io', 'api', 'sketch', 'cost-model'],
  notebook: ['ast', 'ir', 'pictures', 'api', 'search'],
  cli: [
    ...IR,
    'cache',
    'formats',
    'storage',
    'pictures',
    'schedule',
    'lower',
    'backends',
    'runtime',
    'plan',
    'run',
    'run/bind',
    'io',
    'api',
    'search',
    'instruction-tests',
    'bundler',
    'notebook',
    'prune',
    '.',
  ],
  // Files directly in src: what users import, and the part of it that is loaded with the first program.
  '.': [
    'analysis',
    'elaborate',
    'sketch',
    'storage/engines/device',
    'reference',
    'schedule',
    'ast',
    'ir',
    'formats',
    'storage',
    'pictures',
    'backends',
    'runtime',
    'plan',
    'plan',
    'run',
    'run/bind',
    'io',
    'api',
    'search',
    'instruction-tests',
    'cost-model',
    'notebook',
    'prune',
  ],
}

const files = (dir) =>
  readdirSync(dir, { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? files(join(dir, e.name)) : e.name.endsWith('.ts') ? [join(dir, e.name)] : [],
  )

/** The room with the longest name that the file lies in. */
const roomOf = (file) => {
  const folders = relative(src, dirname(file)).split('/')
  for (let n = folders.length; n > 0; n--) {
    const room = folders.slice(0, n).join('/')
    if (ROOMS[room]) return room
  }
  return folders[0] === '' ? '.' : folders[0]
}

/** For each file of src, the files of src that it imports, with the text of the import. */
function imports() {
  const out = new Map()
  for (const file of files(src)) {
    const of = []
    for (const [, from, dynamic, bare] of readFileSync(file, 'utf8').matchAll(
      /\bfrom\s+'(\.[^']*)'|\bimport\('(\.[^']*)'\)|^import '(\.[^']*)'/gm,
    )) {
      const specifier = from ?? dynamic ?? bare
      const target = resolve(dirname(file), specifier)
      if (target.startsWith(`${src}/`)) of.push({ specifier, target })
    }
    out.set(file, of)
  }
  return out
}

/** Every import that runs the wrong way, as `file: import`, and every ring of files. */
export function violations() {
  const graph = imports()
  const out = []
  for (const [file, of] of graph) {
    const room = roomOf(file)
    const allowed = ROOMS[room]
    if (!allowed) {
      out.push(`${relative(src, file)}: room ${room} is not in scripts/layers.mjs`)
      continue
    }
    for (const { specifier, target } of of) {
      const other = roomOf(target)
      if (other !== room && !allowed.includes(other)) out.push(`${relative(src, file)}: ${specifier}`)
    }
  }
  // The command runs suites of `bench/`, which import the library, and not the command.
  for (const file of files(resolve(src, '../bench')))
    if (/from '(?:\.\.\/)+src\/cli\//.test(readFileSync(file, 'utf8')))
      out.push(`${relative(src, file)}: cli`)
  return [...out, ...rings(graph).map((ring) => `ring: ${ring.map((f) => relative(src, f)).join(', ')}`)]
}

/** Files that reach each other: the strongly connected components of more than one (Tarjan 1972). */
function rings(graph) {
  const index = new Map()
  const low = new Map()
  const stack = []
  const out = []
  const visit = (v) => {
    index.set(v, index.size)
    low.set(v, index.get(v))
    stack.push(v)
    for (const { target } of graph.get(v) ?? []) {
      if (!graph.has(target)) continue
      if (!index.has(target)) visit(target)
      if (stack.includes(target)) low.set(v, Math.min(low.get(v), low.get(target)))
    }
    if (low.get(v) !== index.get(v)) return
    const ring = stack.splice(stack.indexOf(v))
    if (ring.length > 1) out.push(ring.sort())
  }
  for (const v of graph.keys()) if (!index.has(v)) visit(v)
  return out
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wrong = violations()
  for (const w of wrong) console.error(w)
  console.log(
    wrong.length === 0
      ? 'layers: imports run one way, in no ring'
      : `layers: ${wrong.length} imports or rings run the wrong way`,
  )
  process.exit(wrong.length === 0 ? 0 : 1)
}
