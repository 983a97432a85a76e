/**
 * Building structures from coordinates: `node dist/bench/build-csr.js [entries]` after a build (default 10 million).
 * Prints a table; times are the best of three runs, in milliseconds.
 */
import { buildStorage } from '../src/formats/build.ts'
import { scatterValues } from '../src/formats/scatter.ts'
import type { StoredAxis } from '../src/ir/axis.ts'
import { int } from '../src/ir/expr.ts'

const entries = Number(process.argv[2] ?? 10_000_000)
const rows = Math.max(1, Math.round(entries / 10))
const extents = new Map([
  ['i', rows],
  ['j', rows],
])

const i: StoredAxis = { kind: 'dense_fixed', name: 'i', extent: int(rows) }
const sparse = (name: string, parent: string | null): StoredAxis => ({
  kind: 'sparse_variable',
  name,
  parent,
  extent: int(rows),
  ordered: true,
  unique: true,
})
const trees: Record<string, readonly StoredAxis[]> = {
  CSR: [i, sparse('j', 'i')],
  DCSR: [sparse('i', null), sparse('j', 'i')],
  ELL: [
    i,
    {
      kind: 'sparse_fixed',
      name: 'j',
      parent: 'i',
      extent: int(rows),
      width: int(0),
      ordered: true,
      unique: true,
    },
  ],
  COO: [
    { ...sparse('i', null), unique: false } as StoredAxis,
    {
      kind: 'sparse_fixed',
      name: 'j',
      parent: 'i',
      extent: int(rows),
      width: int(1),
      ordered: true,
      unique: true,
    },
  ],
}

let state = 1
const random = (n: number): number => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 4294967296) * n)
}
const shuffled = [0, 1].map(() => Int32Array.from({ length: entries }, () => random(rows)))
const values = Float32Array.from({ length: entries }, (_, e) => e % 7)
const key = Float64Array.from(
  { length: entries },
  (_, e) => shuffled[0]![e]! * rows + shuffled[1]![e]!,
).sort()
const sorted = [Int32Array.from(key, (k) => Math.floor(k / rows)), Int32Array.from(key, (k) => k % rows)]

const best = (f: () => void): number => {
  let least = Number.POSITIVE_INFINITY
  for (let k = 0; k < 3; k++) {
    const t = performance.now()
    f()
    least = Math.min(least, performance.now() - t)
  }
  return Math.round(least)
}

console.log(`${entries} entries, ${rows} x ${rows}`)
console.log('tree  order      structure  values (f32)')
for (const [name, axes] of Object.entries(trees))
  for (const [order, coords] of Object.entries({ shuffled, sorted })) {
    let storage = buildStorage({ axes, extents, coords })
    const structure = best(() => (storage = buildStorage({ axes, extents, coords })))
    const scatter = best(() => scatterValues(storage, { coords, values, dtype: 'f32' }, 'f32', 0))
    console.log(
      `${name.padEnd(6)}${order.padEnd(11)}${String(structure).padStart(6)} ms ${String(scatter).padStart(8)} ms`,
    )
  }
