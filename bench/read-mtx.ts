/**
 * Reading a 100 MB Matrix Market file: `npm run build && node dist/bench/read-mtx.js [--megabytes 100] [--json PATH]`.
 * Each file is written to the temporary folder, read in a process of its own (so that its peak memory is its own), and removed.
 */
import { rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readTensor, writeFile } from '../src/io/index.ts'
import { child, count, median, option, table, writeJson } from './support.ts'

const MB = 1e6
const SIZE = 1 << 20
const REPEATS = 5

/** A fixed sequence of numbers in [0, 1) (a 32-bit linear congruential generator). */
function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 4294967296
  }
}

/** What the third column holds, from the easiest to the hardest to read. */
const FIELDS: Readonly<Record<string, (r: () => number) => string>> = {
  pattern: () => '',
  integer: (r) => ` ${Math.floor(r() * 1000)}`,
  'real, 7 digits': (r) => ` ${r().toPrecision(7)}`,
  'real, 17 digits': (r) => ` ${(r() + r() * 2 ** -30).toPrecision(17)}`,
}

function* text(field: string, entries: number): Generator<Uint8Array> {
  const value = FIELDS[field]!
  const r = random(1)
  const encode = new TextEncoder()
  yield encode.encode(
    `%%MatrixMarket matrix coordinate ${field.split(',')[0]} general\n${SIZE} ${SIZE} ${entries}\n`,
  )
  for (let e = 0; e < entries; ) {
    let lines = ''
    for (const end = Math.min(entries, e + 10000); e < end; e++)
      lines += `${1 + Math.floor(r() * SIZE)} ${1 + Math.floor(r() * SIZE)}${value(r)}\n`
    yield encode.encode(lines)
  }
}

interface Times {
  readonly first: number
  readonly typical: number
  readonly peak: number
  readonly arrays: number
}

/** The child: reads the file and reports times, the arrays' bytes and how far memory rose above what was there. */
async function read(path: string): Promise<void> {
  const before = process.resourceUsage().maxRSS * 1024
  const times: number[] = []
  let peak = 0
  let arrays = 0
  for (let k = 0; k < REPEATS; k++) {
    const start = performance.now()
    const tensor = await readTensor(path)
    times.push(performance.now() - start)
    if (k > 0 || tensor.kind !== 'coords') continue
    peak = process.resourceUsage().maxRSS * 1024 - before
    arrays = tensor.coords.reduce((sum, c) => sum + c.byteLength, tensor.values?.byteLength ?? 0)
  }
  const report: Times = { first: times[0]!, typical: median(times), peak, arrays }
  process.stdout.write(JSON.stringify(report))
}

export interface ReadFigure {
  readonly field: string
  readonly megabytes: number
  /** MB/s of the first read of a process, and of the median of all. */
  readonly first: number
  readonly median: number
  readonly arraysMegabytes: number
  /** How far memory rose in the first read, over the bytes of the arrays. */
  readonly peakOverArrays: number
}

async function measure(field: string, megabytes: number): Promise<ReadFigure> {
  const path = join(tmpdir(), `sparsetile-bench-${process.pid}.mtx`)
  try {
    const perLine = [...text(field, 10000)].reduce((sum, c) => sum + c.length, 0) / 10000
    await writeFile(path, text(field, Math.round((megabytes * MB) / perLine)))
    const bytes = statSync(path).size
    const { first, typical, peak, arrays } = child<Times>(['--read', path], import.meta.url)
    const rate = (ms: number): number => bytes / MB / (ms / 1000)
    return {
      field,
      megabytes: bytes / MB,
      first: rate(first),
      median: rate(typical),
      arraysMegabytes: arrays / MB,
      peakOverArrays: peak / arrays,
    }
  } finally {
    rmSync(path, { force: true })
  }
}

const path = option('read')
if (path) await read(path)
else {
  const figures: ReadFigure[] = []
  for (const field of Object.keys(FIELDS)) figures.push(await measure(field, count('megabytes', 100)))
  console.log(
    table(
      ['field', 'file MB', 'first MB/s', 'median MB/s', 'arrays MB', 'peak / arrays'],
      figures.map((f) => [f.field, f.megabytes, f.first, f.median, f.arraysMegabytes, f.peakOverArrays]),
    ),
  )
  writeJson(figures)
}
