/**
 * Building structures from coordinates: `npm run build && node dist/bench/build-csr.js [--entries 10000000]
 * [--trees CSR,DCSR,ELL,COO] [--json PATH]`. Prints a table; times are medians of three runs after a first one, in
 * milliseconds.
 */

import type { StoredAxis } from '../src/ir/coordinates/axis.ts'
import { int } from '../src/ir/expressions/expr.ts'
import { buildStorage } from '../src/storage/build-storage.ts'
import { scatterValues } from '../src/storage/entries/locate.ts'
import { count, median, option, table, writeJson } from './support.ts'

export interface BuildFigure {
  readonly tree: string
  readonly order: 'shuffled' | 'sorted'
  readonly entries: number
  /** Milliseconds: the structure, and then the values (f32). */
  readonly structure: number
  readonly values: number
}

const entries = count('entries', 10_000_000)
const wanted = option('trees')?.split(',')
const rows = Math.max(1, Math.round(entries / 10))
const extents = new Map([
  ['i', rows],
  ['j', rows],
])

const i: StoredAxis = { kind: 'dense_fixed', parent: null, name: 'i', extent: int(rows) }
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

const typical = (f: () => void): number => {
  f()
  const times: number[] = []
  for (let k = 0; k < 3; k++) {
    const t = performance.now()
    f()
    times.push(performance.now() - t)
  }
  return median(times)
}

const figures: BuildFigure[] = []
for (const [tree, axes] of Object.entries(trees))
  for (const [order, coords] of Object.entries({ shuffled, sorted }) as [
    'shuffled' | 'sorted',
    Int32Array[],
  ][]) {
    if (wanted && !wanted.includes(tree)) continue
    let storage = buildStorage({ axes, extents, coords })
    const structure = typical(() => (storage = buildStorage({ axes, extents, coords })))
    const scatter = typical(() =>
      scatterValues(storage, { coords, values, dtype: 'f32' }, 'f32', 0, storage.entries),
    )
    figures.push({ tree, order, entries, structure, values: scatter })
  }
console.log(`${entries} entries, ${rows} x ${rows}; milliseconds\n`)
console.log(
  table(
    ['tree', 'order', 'structure', 'values (f32)', 'together'],
    figures.map((f) => [f.tree, f.order, f.structure, f.values, f.structure + f.values]),
  ),
)
writeJson(figures)
