/**
 * Sparse tensors in `.npz` files of SciPy and pydata/sparse (`npz-layouts.ts`), and groups of arrays with a common
 * prefix (`feature_indptr`, `feature_indices`, `feature_data`, `feature_shape`).
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { CoordTensor, ValueArray } from '../../storage/tensor.ts'
import { checkCompressed, checkRange, type SparseMatrix, toCoords } from '../sparse-matrix.ts'
import { type Npz, rejectRank, vector } from './npz.ts'
import { checkArrays, fillOf, gcxsCoordinates, layoutOf } from './npz-layouts.ts'

export interface MatrixOptions {
  /** Element type of the values; for a pattern, the type it is given (default f32). */
  readonly dtype?: Dtype | undefined
  /**
   * The layout to read, ignoring other arrays; default: the layout stated in the file, where other arrays are rejected.
   */
  readonly layout?: string | undefined
}

const COMPRESSED = ['csr', 'csc', 'bsr'] as const

/** True if the arrays with the given prefix form a sparse matrix. */
export function hasMatrix(npz: Npz, prefix = ''): boolean {
  const has = (...names: string[]): boolean => names.every((n) => npz.has(prefix + n))
  return has('shape') && (has('indptr', 'indices') || has('row', 'col') || has('coords') || has('format'))
}

/** The prefixes (without underscore) of the groups that form a sparse matrix. */
export function matrixGroups(npz: Npz): string[] {
  return npz.names
    .filter((n) => n.endsWith('_shape') && hasMatrix(npz, n.slice(0, -'shape'.length)))
    .map((n) => n.slice(0, -'_shape'.length))
}

async function shapeOf(npz: Npz, prefix: string): Promise<number[]> {
  const shape = [...(await npz.integers(`${prefix}shape`))]
  if (shape.some((n) => n < 0))
    failWith('io/shape', `${npz.name}#${prefix}shape has a negative size: ${shape.join(', ')}`, {
      expected: 'sizes from 0 on',
    })
  return shape
}

async function coordinates(npz: Npz, prefix: string, rank: number): Promise<Int32Array[]> {
  if (!npz.has(`${prefix}coords`))
    return Promise.all(['row', 'col'].map((name) => npz.integers(prefix + name)))
  const { shape, values } = await npz.integerRows(`${prefix}coords`)
  if (shape[0] !== rank)
    failWith('io/shape', `${npz.name}#${prefix}coords has ${shape[0]} rows for ${rank} dimensions`, {
      expected: `${rank} rows, a row for each dimension`,
    })
  const n = shape[1]!
  return Array.from({ length: rank }, (_, k) => (values as Int32Array).subarray(k * n, (k + 1) * n))
}

/** Checks lengths and ranges of coordinates. @throws SptError `io/index-range`, `io/data-length` */
export function checkCoords(tensor: CoordTensor, labels: readonly string[]): CoordTensor {
  const { coords, shape, values } = tensor
  coords.forEach((c, k) => {
    if (c.length !== coords[0]!.length)
      failWith(
        'io/data-length',
        `${labels[k]} has ${c.length} elements, ${labels[0]} has ${coords[0]!.length}`,
        { expected: 'as many elements in each, an element for each entry' },
      )
    checkRange(c, shape[k]!, labels[k]!)
  })
  if (values !== null && values.length !== (coords[0]?.length ?? 0))
    failWith('io/data-length', `${labels[0]}: ${values.length} values for ${coords[0]?.length} elements`, {
      expected: `${coords[0]?.length ?? 0} values`,
    })
  return tensor
}

/**
 * The matrix of the arrays with the given prefix, in its storage layout. `format` may be missing (csr, coo or gcxs is
 * inferred), and so may `data` (a pattern). @throws SptError `io/…` for missing, unknown or inconsistent arrays
 */
export async function readMatrix(npz: Npz, prefix = '', options: MatrixOptions = {}): Promise<SparseMatrix> {
  const layout = options.layout ?? (await layoutOf(npz, prefix))
  const matrix = await readLayout(layout, npz, prefix, options)
  if (options.layout === undefined) checkArrays(npz, prefix, layout, matrixGroups(npz))
  return matrix
}

async function readLayout(
  format: string,
  npz: Npz,
  prefix: string,
  options: MatrixOptions,
): Promise<SparseMatrix> {
  const shape = await shapeOf(npz, prefix)
  const label = prefix === '' ? npz.name : `${npz.name}#${prefix.replace(/_$/, '')}`
  const kind = COMPRESSED.find((k) => k === format)
  // A one-dimensional csr array is one row.
  const isRow = format === 'csr' && shape.length === 1
  if (!kind && format !== 'coo' && format !== 'gcxs')
    return failWith('io/unsupported', `${label}: the sparse format '${format}' is not supported`, {
      expected: 'csr, csc, bsr, coo or gcxs',
      hint: 'In Python: save_npz(file, matrix.tocsr()).',
    })
  let values: ValueArray | null = null
  let dtype: Dtype = options.dtype ?? 'f32'
  const data = `${prefix}data`
  if (kind === 'bsr') {
    const dense = await npz.dense(data, options.dtype)
    if (dense.shape.length !== 3) rejectRank(`${npz.name}#${data}`, dense.shape, 3)
    const [r, c] = [dense.shape[1]!, dense.shape[2]!]
    const [m, n] = matrixShape(shape, label)
    if (r === 0 || c === 0 || m % r !== 0 || n % c !== 0)
      failWith('io/shape', `${label}: blocks of ${r} × ${c} do not tile ${m} × ${n}`, {
        expected: `blocks whose sizes divide ${m} and ${n}`,
      })
    const [indptr, indices] = await readStructure(npz, prefix)
    const { values, dtype } = dense
    return checkCompressed({ kind, shape: [m, n], block: [r, c], indptr, indices, values, dtype }, label)
  }
  if (npz.has(data)) ({ values, dtype } = await vector(npz, data, options.dtype))
  if (kind && !isRow) {
    const [indptr, indices] = await readStructure(npz, prefix)
    return checkCompressed({ kind, shape: matrixShape(shape, label), indptr, indices, values, dtype }, label)
  }
  const coords =
    format === 'gcxs' || isRow
      ? await gcxsCoordinates(npz, prefix, shape, label)
      : await coordinates(npz, prefix, shape.length)
  if (coords.length !== shape.length) rejectRank(label, shape, coords.length)
  return checkCoords(
    { kind: 'coords', shape, coords, values, dtype },
    coords.map((_, k) => `${label}, dimension ${k}`),
  )
}

/** As `readMatrix`, as coordinates, with the value of absent elements. */
export async function readCoords(npz: Npz, prefix: string, options: MatrixOptions): Promise<CoordTensor> {
  const matrix = await readMatrix(npz, prefix, options)
  const fill = await fillOf(npz, prefix)
  if (fill === undefined) return toCoords(matrix, npz.name)
  if (matrix.kind === 'bsr')
    failWith('io/unsupported', `${npz.name}: blocks with the fill value ${fill}`, {
      expected: 'the fill value 0, or coordinates',
    })
  return { ...toCoords(matrix, npz.name), fill }
}

async function readStructure(npz: Npz, prefix: string): Promise<[Int32Array, Int32Array]> {
  return [await npz.integers(`${prefix}indptr`), await npz.integers(`${prefix}indices`)]
}

function matrixShape(shape: readonly number[], label: string): [number, number] {
  if (shape.length !== 2) rejectRank(label, shape, 2)
  return [shape[0]!, shape[1]!]
}
