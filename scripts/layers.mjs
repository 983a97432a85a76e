// Imports run one way: each room may import only from the rooms listed for it. Run by CI and by test/layers.test.ts.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const src = resolve(dirname(fileURLToPath(import.meta.url)), '../src')

/** What brings a program to a device, and its results back. */
const COMPILER = [
  'ast',
  'ir',
  'formats',
  'schedule',
  'lower',
  'backends',
  'runtime',
  'bind',
  'convert',
  'explain',
]

/** Rooms in the order data flows; a room may import from itself and from what is named. */
export const ROOMS = {
  ast: [],
  ir: ['ast'],
  formats: ['ast', 'ir'],
  schedule: ['ast', 'ir', 'formats'],
  lower: ['ast', 'ir'],
  backends: ['ast', 'ir'],
  runtime: ['ast', 'ir', 'backends'],
  bind: ['ast', 'ir', 'formats'],
  convert: ['ast', 'ir', 'formats', 'lower', 'backends', 'runtime'],
  io: ['ast', 'ir', 'formats'],
  explain: ['ast', 'ir', 'backends', 'runtime', 'bind', '.'],
  // Files directly in src: the driver and what runs its results.
  '.': [...COMPILER, 'io', 'api'],
  api: [...COMPILER, '.'],
  cli: [...COMPILER, 'io', 'api', '.'],
}

const files = (dir) =>
  readdirSync(dir, { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? files(join(dir, e.name)) : e.name.endsWith('.ts') ? [join(dir, e.name)] : [],
  )

const roomOf = (file) => {
  const parts = relative(src, file).split('/')
  return parts.length === 1 ? '.' : parts[0]
}

/** Every import that runs the wrong way, as `file: import`. */
export function violations() {
  const out = []
  for (const file of files(src)) {
    const room = roomOf(file)
    const allowed = ROOMS[room]
    if (!allowed) {
      out.push(`${relative(src, file)}: room ${room} is not in scripts/layers.mjs`)
      continue
    }
    for (const [, specifier] of readFileSync(file, 'utf8').matchAll(
      /\bfrom\s+'(\.[^']*)'|\bimport\('(\.[^']*)'\)/g,
    )) {
      if (!specifier) continue
      const target = resolve(dirname(file), specifier)
      if (!target.startsWith(`${src}/`)) continue
      const other = roomOf(target)
      if (other !== room && !allowed.includes(other)) out.push(`${relative(src, file)}: ${specifier}`)
    }
  }
  return out
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wrong = violations()
  for (const w of wrong) console.error(w)
  console.log(
    wrong.length === 0 ? 'layers: imports run one way' : `layers: ${wrong.length} imports run the wrong way`,
  )
  process.exit(wrong.length === 0 ? 0 : 1)
}
