/**
 * Pruning the twelve layers of a BERT-base encoder, 72 matrices with 85 million normal weights:
 * `npm run build && node dist/bench/prune.js [--layers 12] [--json PATH]`. The model is written to the temporary folder, and
 * `spt prune` runs on it in a process for each pattern, so that its peak memory is its own: reading, masks, report, and
 * writing all of its files. With `--build` instead: how long the host takes to bring a layer of [768, 3072] that is pruned to 75 %
 * into tiles for kernels, `[--rounds 20]`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type SafetensorsPart, safetensorsChunks, writeFile } from '../src/io/index.ts'
import { coords, load } from '../src/node.ts'
import { layersFromValues, prune as pruned, tileWise } from '../src/prune.ts'
import { child, count, isMain, median, option, packageFile, table, writeJson } from './support.ts'

const PATTERNS = [
  'tw --granularity 128',
  'tew --granularity 128 --delta 0.01',
  'tvw --granularity 128',
  'bw --rows 32 --cols 32',
  'ew',
]
const SPARSITY = '0.75'
/** Bytes of an element. */
const TYPES: Readonly<Record<string, number>> = { F32: 4, BF16: 2 }

const HIDDEN = 768
const INNER = 3072
const MATRICES: readonly (readonly [string, number, number])[] = [
  ['attention.query', HIDDEN, HIDDEN],
  ['attention.key', HIDDEN, HIDDEN],
  ['attention.value', HIDDEN, HIDDEN],
  ['attention.output', HIDDEN, HIDDEN],
  ['intermediate', INNER, HIDDEN],
  ['output', HIDDEN, INNER],
]

/** Normal numbers with a deviation of 0.02, as networks begin; every layer its own. */
function normal(n: number, seed: number): Float32Array {
  let state = seed
  const uniform = (): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return ((state >>> 0) + 1) / 4294967297
  }
  const out = new Float32Array(n)
  for (let i = 0; i < n; i += 2) {
    const radius = 0.02 * Math.sqrt(-2 * Math.log(uniform()))
    const angle = 2 * Math.PI * uniform()
    out[i] = radius * Math.cos(angle)
    out[i + 1] = radius * Math.sin(angle)
  }
  return out
}

/** Of `BF16` the upper halves. */
function bytesOf(values: Float32Array, type: string): Uint8Array {
  if (type === 'F32') return new Uint8Array(values.buffer)
  const halves = new Uint16Array(values.buffer)
  return new Uint8Array(halves.filter((_, i) => i % 2 === 1).buffer)
}

const model = (layers: number, type: string): SafetensorsPart[] =>
  Array.from({ length: layers }, (_, l) =>
    MATRICES.map(([name, rows, cols], k) => ({
      name: `encoder.layer.${l}.${name}.weight`,
      type,
      shape: [rows, cols],
      chunks: () => [bytesOf(normal(rows * cols, 1 + 7919 * (MATRICES.length * l + k)), type)],
    })),
  ).flat()

interface Pruned {
  readonly seconds: number
  /** Bytes of the whole process. */
  readonly peak: number
  readonly sparsity: number
  readonly retainedNorm: number
}

/** The child: runs the built command in this process, and prints the figures when the command ends. */
async function prune(path: string, pattern: string, out: string): Promise<void> {
  let printed = ''
  const start = performance.now()
  const { write } = process.stdout
  process.stdout.write = (text: string | Uint8Array, ...rest: unknown[]): boolean => {
    printed += text
    for (const done of rest) if (typeof done === 'function') done()
    return true
  }
  process.once('exit', (code) => {
    if (code !== 0) return
    const seconds = (performance.now() - start) / 1000
    const { sparsity, retainedNorm } = JSON.parse(printed)
    const report: Pruned = { seconds, peak: process.resourceUsage().maxRSS * 1024, sparsity, retainedNorm }
    write.call(process.stdout, JSON.stringify(report))
  })
  const options = ['--pattern', ...pattern.split(' '), '--sparsity', SPARSITY, '--out', out, '--json']
  process.argv.splice(2, process.argv.length, 'prune', path, ...options)
  await import(pathToFileURL(packageFile('dist/lib/spt.js')).href)
}

export interface PruneFigure extends Pruned {
  readonly pattern: string
  readonly type: string
  readonly weights: number
  /** Over the bytes of the weights. */
  readonly peakOverWeights: number
}

async function measure(layers: number): Promise<PruneFigure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sparsetile-bench-'))
  try {
    const figures: PruneFigure[] = []
    for (const [type, width] of Object.entries(TYPES)) {
      const path = join(folder, `${type}.safetensors`)
      const parts = model(layers, type)
      await writeFile(path, safetensorsChunks(parts))
      const weights = parts.reduce((sum, p) => sum + p.shape[0]! * p.shape[1]!, 0)
      for (const pattern of PATTERNS) {
        const out = join(folder, 'out')
        const pruned = child<Pruned>(['--prune', path, '--pattern', pattern, '--out', out], import.meta.url)
        figures.push({ pattern, type, weights, ...pruned, peakOverWeights: pruned.peak / (weights * width) })
        rmSync(out, { recursive: true })
      }
      rmSync(path)
    }
    return figures
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Milliseconds of each conversion, the first of the process included. */
async function build(rounds: number): Promise<number[]> {
  const [rows, cols] = [HIDDEN, INNER]
  const weights = normal(rows * cols, 1)
  const layers = layersFromValues([{ name: 'w', rows, cols, weights }])
  const { masks } = await pruned(layers, {
    pattern: tileWise({ granularity: 128 }),
    sparsity: Number(SPARSITY),
  })
  const at = Int32Array.from([...masks[0]!.keys()].filter((e) => masks[0]![e] === 1))
  const places = [at.map((e) => Math.floor(e / cols)), at.map((e) => e % cols)]
  const values = Float32Array.from(at, (e) => weights[e]!)
  const format = (await load('import "sparsetile/kernels/tile-wise.spt"')).format('tile_wise(128, 64)')
  return Array.from({ length: rounds }, () => {
    // Nothing is known of a tensor that is new.
    const W = coords([rows, cols], places, values)
    const start = performance.now()
    format.convert(W)
    return performance.now() - start
  })
}

if (isMain(import.meta.url) && process.argv.includes('--build')) {
  const [first, ...others] = await build(count('rounds', 20))
  const figures = { first: first!, median: median(others), least: Math.min(...others) }
  console.log(table(['first ms', 'median ms', 'least ms'], [Object.values(figures)]))
  writeJson(figures)
} else if (isMain(import.meta.url)) {
  const path = option('prune')
  if (path) await prune(path, option('pattern')!, option('out')!)
  else {
    const figures = await measure(count('layers', 12))
    console.log(
      table(
        ['pattern', 'weights', 'M', 'seconds', 'peak MB', 'peak / weights', 'sparsity', 'norm kept'],
        figures.map((f) => [
          f.pattern,
          f.type,
          f.weights / 1e6,
          f.seconds,
          f.peak / 1e6,
          f.peakOverWeights,
          `${(100 * f.sparsity).toFixed(3)} %`,
          f.retainedNorm.toFixed(3),
        ]),
      ),
    )
    writeJson(figures)
  }
}
