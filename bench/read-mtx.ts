/**
 * Reading a 100 MB Matrix Market file: `npm run build && node dist/bench/read-mtx.js [megabytes]`. Each file is
 * written to the temporary folder, read in a process of its own (so that its peak memory is its own), and removed.
 */
import { spawnSync } from 'node:child_process'
import { rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readTensor, writeFile } from '../src/io/index.ts'

const MB = 1e6
const SIZE = 1 << 20
const REPEATS = 3

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

/** The child: reads the file and reports the best time, the arrays' bytes and how far memory rose above them. */
async function read(path: string): Promise<void> {
  const before = process.resourceUsage().maxRSS * 1024
  let best = Number.POSITIVE_INFINITY
  let first = 0
  let peak = 0
  let arrays = 0
  for (let k = 0; k < REPEATS; k++) {
    const start = performance.now()
    const tensor = await readTensor(path)
    const ms = performance.now() - start
    best = Math.min(best, ms)
    if (k > 0 || tensor.kind !== 'coords') continue
    first = ms
    peak = process.resourceUsage().maxRSS * 1024 - before
    arrays = tensor.coords.reduce((sum, c) => sum + c.byteLength, tensor.values?.byteLength ?? 0)
  }
  process.stdout.write(JSON.stringify({ first, best, peak, arrays }))
}

async function main(megabytes: number): Promise<void> {
  console.log('field            |  file MB | first MB/s | best MB/s | arrays MB | peak / arrays')
  console.log('-----------------|----------|------------|-----------|-----------|--------------')
  for (const field of Object.keys(FIELDS)) {
    const path = join(tmpdir(), `sparsetile-bench-${process.pid}.mtx`)
    try {
      const perLine = [...text(field, 10000)].reduce((sum, c) => sum + c.length, 0) / 10000
      await writeFile(path, text(field, Math.round((megabytes * MB) / perLine)))
      const bytes = statSync(path).size
      const child = spawnSync(process.execPath, [fileURLToPath(import.meta.url), '--read', path], {
        encoding: 'utf8',
      })
      if (child.status !== 0) throw new Error(child.stderr)
      const { first, best, peak, arrays } = JSON.parse(child.stdout) as Record<string, number>
      const rate = (ms: number): string => (bytes / MB / (ms / 1000)).toFixed(0)
      console.log(
        [
          field.padEnd(16),
          (bytes / MB).toFixed(1).padStart(8),
          rate(first!).padStart(10),
          rate(best!).padStart(9),
          (arrays! / MB).toFixed(1).padStart(9),
          (peak! / arrays!).toFixed(2).padStart(13),
        ].join(' | '),
      )
    } finally {
      rmSync(path, { force: true })
    }
  }
}

const [option, path] = process.argv.slice(2)
if (option === '--read') await read(path!)
else await main(Number(option ?? 100))
