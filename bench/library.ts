/**
 * A sparse times a dense matrix with ml-sparse-matrix. It has no product with a dense array: both sides are
 * `SparseMatrix` (hash tables of doubles), and so is the result. Only `mmul` is timed, not filling the tables.
 */
import { readFileSync } from 'node:fs'
import { SparseMatrix } from 'ml-sparse-matrix'
import type { Csr } from './peers.ts'
import { median, packageFile } from './support.ts'

/** Repeats only while they are short. */
const ENOUGH_MS = 20_000

export interface LibraryFigure {
  readonly name: 'ml-sparse-matrix'
  readonly version: string
  readonly median: number
  readonly best: number
  readonly repeats: number
}

/** Milliseconds of `mmul`; every element of the result has to equal `expected` (rows × d). */
export function mlSparseMatrix(A: Csr, B: Float32Array, d: number, expected: Float32Array): LibraryFigure {
  const left = new SparseMatrix(A.rows, A.columns, { initialCapacity: 2 * A.values.length })
  for (let i = 0; i < A.rows; i++)
    for (let p = A.indptr[i]!; p < A.indptr[i + 1]!; p++) left.set(i, A.indices[p]!, A.values[p]!)
  const right = new SparseMatrix(A.columns, d, { initialCapacity: 2 * B.length })
  for (let e = 0; e < B.length; e++) if (B[e] !== 0) right.set(Math.floor(e / d), e % d, B[e]!)
  const times: number[] = []
  while (times.length < 5 && times.reduce((a, b) => a + b, 0) < ENOUGH_MS) {
    const start = performance.now()
    const C = left.mmul(right)
    times.push(performance.now() - start)
    if (times.length === 1) check(C, expected, d)
  }
  const { version } = JSON.parse(
    readFileSync(packageFile('node_modules/ml-sparse-matrix/package.json'), 'utf8'),
  ) as { version: string }
  return {
    name: 'ml-sparse-matrix',
    version,
    median: median(times),
    best: Math.min(...times),
    repeats: times.length,
  }
}

function check(C: SparseMatrix, expected: Float32Array, d: number): void {
  for (let e = 0; e < expected.length; e++)
    if (C.get(Math.floor(e / d), e % d) !== expected[e])
      throw new Error(`ml-sparse-matrix: element ${e} is not ${expected[e]}`)
}
