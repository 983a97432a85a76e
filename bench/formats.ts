/**
 * Bringing CSR-ordered coordinates into formats, on the host:
 *
 *     node dist/bench/formats.js [--data FILE.npz …] [--power-law SCALE] [--formats hyb(4,5),…] [--repeats 5]
 *       [--scipy no] [--json PATH]
 *
 * Times are medians in milliseconds after a first run, from coordinates with f32 values to all arrays of the format;
 * `cpu` is the process' own time, which other work on the machine does not lengthen, and ns/nonzero are of it.
 * `--power-law` multiplies nodes and edges of the synthetic graph (`power-law.ts`; 0.064 without `--data`).
 * Padding is the share of value positions that hold no nonzero. Where python3 has scipy, its `tobsr` of the same
 * matrix comes next to blocks of 16, with huge pages, which numpy asks for, and without.
 *
 * Blocks with much padding take what fresh pages take: 395 MB are 96,000 of 4 KB, whatever order they are written in and
 * whatever kind of buffer has them. Node asks for no huge pages, but on Linux the C library does where it is told to:
 * GLIBC_TUNABLES=glibc.malloc.hugetlb=1.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { SptError } from '../src/ast/diagnostics/diagnostic.ts'
import { lexicographic } from '../src/columns/lexicographic-sort.ts'
import { instantiate } from '../src/formats/instance/instantiate.ts'
import type { StoredAxis } from '../src/ir/coordinates/axis.ts'
import { variable } from '../src/ir/expressions/expr.ts'
import { load, readTensor, writeTensor } from '../src/node.ts'
import { convertTensor, occupiedPositions, type StoredParts } from '../src/storage/entries/stored-parts.ts'
import { type CoordTensor, gatherValues } from '../src/storage/tensor.ts'
import { powerLaw, REDDIT_LIKE } from './power-law.ts'
import { count, median, option, packageFile, table, writeJson } from './support.ts'

export interface FormatFigure {
  readonly matrix: string
  readonly format: string
  readonly shape: readonly number[]
  readonly nonzeros: number
  /** Milliseconds, medians. */
  readonly wall: number
  readonly cpu: number
  /** CPU nanoseconds. */
  readonly perNonzero: number
  readonly bytes: number
  readonly paddingShare: number
  /** `null`: not measured. */
  readonly scipy: ScipyFigure | null
}

/** Milliseconds of `tobsr` on the same matrix. */
interface ScipyFigure {
  readonly version: string
  readonly wall: number
  readonly user: number
  readonly bytes: number
  /** Without huge pages. */
  readonly smallPages: { readonly wall: number; readonly user: number }
}

const FORMATS = [
  'csr',
  'hyb(1,5)',
  'hyb(4,5)',
  'bsr(16)',
  'sell(32,1024)',
  'sr_bcrs(8,16)',
  'dense_blocks(16,0.5)',
]
/** Padding of hyb on the graphs that SparseTIR (ASPLOS 2023) reports it for. */
const SPARSETIR = '13 to 29 %'
const OVER: readonly StoredAxis[] = [
  { kind: 'dense_fixed', name: 'i', parent: null, extent: variable('m') },
  { kind: 'sparse_variable', name: 'j', parent: 'i', extent: variable('n'), ordered: true, unique: true },
]

/** Every value after `--name`, up to the next option. */
function options(name: string): readonly string[] {
  const at = process.argv.indexOf(`--${name}`)
  if (at < 0) return []
  const rest = process.argv.slice(at + 1)
  const end = rest.findIndex((a) => a.startsWith('--'))
  return end < 0 ? rest : rest.slice(0, end)
}

interface Matrix {
  readonly name: string
  readonly tensor: CoordTensor
}

function graph(scale: number): Matrix {
  const { nodes, edges } = REDDIT_LIKE
  const made = powerLaw(
    { ...REDDIT_LIKE, nodes: Math.ceil(nodes * scale), edges: Math.ceil(edges * scale) },
    'j',
  )
  const { indptr, indices } = made.arrays.j as { indptr: Int32Array; indices: Int32Array }
  const rows = new Int32Array(indices.length)
  for (let r = 0; r + 1 < indptr.length; r++) rows.fill(r, indptr[r], indptr[r + 1])
  return { name: `power law × ${scale}`, tensor: withValues(made.shape, [rows, indices]) }
}

async function file(path: string): Promise<Matrix> {
  const t = await readTensor(path)
  if (t.kind !== 'coords') throw new Error(`${path} holds no coordinates`)
  const { order, columns } = lexicographic(
    t.coords,
    t.shape.map((n) => Math.max(0, n - 1)),
  )
  const values = t.values && order ? gatherValues({ values: t.values, dtype: t.dtype }, order) : t.values
  const tensor: CoordTensor = { ...t, coords: columns, values }
  return { name: basename(path), tensor: values ? tensor : withValues(t.shape, columns) }
}

function withValues(shape: readonly number[], coords: readonly Int32Array[]): CoordTensor {
  const values = new Float32Array(coords[0]!.length)
  for (let e = 0; e < values.length; e++) values[e] = 1 + (e % 7)
  return { kind: 'coords', shape, coords, values, dtype: 'f32' }
}

const formats = new Map([
  ...(await load(packageFile('kernels/formats.spt'))).formats,
  ...(await load(packageFile('kernels/formats-composed.spt'))).formats,
])

function instanceOf(text: string) {
  const [, name = text, args] = /^(\w+)(?:\((.*)\))?$/.exec(text) ?? []
  const format = formats.get(name)
  if (!format) throw new Error(`no format ${name}`)
  const given = args === undefined ? [] : args.split(',').map(Number)
  return instantiate({ format, args: given }, OVER, (x, label) => (label ? `${x}_${label}` : x))
}

function bytesOf(made: StoredParts): number {
  let bytes = 0
  for (const p of made.parts) {
    bytes += p.values.byteLength
    for (const t of p.tables.values()) bytes += t.byteLength
    for (const l of p.storage.levels.values())
      bytes += (l.indptr?.byteLength ?? 0) + (l.indices?.byteLength ?? 0) + (l.mask?.byteLength ?? 0)
  }
  return bytes
}

function measure({ name, tensor }: Matrix, text: string, repeats: number): FormatFigure {
  const [m, n] = tensor.shape as [number, number]
  const given = {
    sizes: new Map([
      ['m', m],
      ['n', n],
    ]),
    extents: new Map([
      ['i', m],
      ['j', n],
    ]),
    lists: new Map(),
    sets: new Map(),
  }
  const wall: number[] = []
  const cpu: number[] = []
  let made: StoredParts | null = null
  for (let k = 0; k <= repeats; k++) {
    made = null
    const to = instanceOf(text)
    const before = process.cpuUsage()
    const t = performance.now()
    made = convertTensor(tensor, to, given)
    const ms = performance.now() - t
    const used = process.cpuUsage(before)
    if (k === 0 && repeats > 1) continue
    wall.push(ms)
    cpu.push((used.user + used.system) / 1e3)
  }
  const nonzeros = tensor.coords[0]!.length
  const slots = made!.parts.reduce((sum, p) => sum + p.storage.size, 0)
  const held = made!.parts.reduce((sum, p) => sum + occupiedPositions(p)!.length, 0)
  return {
    matrix: name,
    format: text,
    shape: tensor.shape,
    nonzeros,
    wall: median(wall),
    cpu: median(cpu),
    perNonzero: (median(cpu) * 1e6) / Math.max(1, nonzeros),
    bytes: bytesOf(made!),
    paddingShare: slots === 0 ? 0 : 1 - held / slots,
    scipy: null,
  }
}

/** Figures of scipy's own conversion; text: why there are none. */
async function scipy(tensor: CoordTensor, block: number, repeats: number): Promise<ScipyFigure | string> {
  const folder = mkdtempSync(join(tmpdir(), 'sparsetile-formats-'))
  try {
    const path = join(folder, 'matrix.npz')
    await writeTensor(path, tensor)
    const script = packageFile('bench/scipy-formats.py')
    const measured = (hugePages: '0' | '1'): ScipyFigure | string => {
      const env = { ...process.env, NUMPY_MADVISE_HUGEPAGE: hugePages }
      const args = [script, path, String(block), String(repeats)]
      const done = spawnSync('python3', args, { encoding: 'utf8', env })
      if (done.error) return 'there is no python3 here'
      if (done.status !== 0) return done.stderr.trim().split('\n').at(-1) ?? 'it failed'
      return JSON.parse(done.stdout) as ScipyFigure
    }
    const huge = measured('1')
    if (typeof huge === 'string') return huge
    const smallPages = measured('0')
    if (typeof smallPages === 'string') return smallPages
    return { ...huge, smallPages: { wall: smallPages.wall, user: smallPages.user } }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const repeats = count('repeats', 5)
const files = options('data')
const scale = option('power-law') ?? (files.length === 0 ? '0.064' : null)
const wanted = option('formats')?.split(/,(?![^(]*\))/) ?? FORMATS
const figures: FormatFigure[] = []
const matrices = [
  ...files.map((path) => () => file(path)),
  ...(scale ? [async () => graph(Number(scale))] : []),
]
for (const make of matrices) {
  const matrix = await make()
  for (const text of wanted) {
    try {
      let figure = measure(matrix, text, repeats)
      if (text === 'bsr(16)' && option('scipy') !== 'no') {
        const found = await scipy(matrix.tensor, 16, repeats)
        if (typeof found === 'string') console.log(`no figures of scipy: ${found}`)
        else figure = { ...figure, scipy: found }
      }
      figures.push(figure)
      console.error(`${matrix.name} ${text}: ${figure.perNonzero.toFixed(0)} ns/nonzero`)
    } catch (e) {
      // What a format cannot hold of a matrix is said, and the next one is tried.
      if (!(e instanceof SptError)) throw e
      console.log(`${matrix.name} ${text}: ${e.message}`)
    }
  }
}
console.log(
  table(
    ['matrix', 'format', 'nonzeros', 'ms', 'cpu ms', 'ns/nonzero', 'MB', 'padding %', 'against'],
    figures.map((f) => [
      f.matrix,
      f.format,
      String(f.nonzeros),
      f.wall,
      f.cpu,
      f.perNonzero,
      f.bytes / 1e6,
      100 * f.paddingShare,
      f.scipy
        ? `scipy ${f.scipy.version} tobsr: ${f.scipy.wall.toFixed(0)} ms, cpu ${f.scipy.user.toFixed(0)} ms; small pages ${f.scipy.smallPages.wall.toFixed(0)} ms, cpu ${f.scipy.smallPages.user.toFixed(0)} ms`
        : f.format.startsWith('hyb')
          ? `padding in SparseTIR: ${SPARSETIR}`
          : '',
    ]),
  ),
)
writeJson(figures)
