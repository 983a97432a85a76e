/** Sparse matrices in the layouts of files, and their conversion to tensors. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import type { CoordTensor, ValueArray } from '../storage/tensor.ts'
import { allocate } from './byte-source.ts'
import { valueArray } from './element-arrays.ts'

interface Compressed {
  readonly shape: readonly [number, number]
  readonly indptr: Int32Array
  readonly indices: Int32Array
  /** `null` for a pattern. */
  readonly values: ValueArray | null
  readonly dtype: Dtype
}

/** Rows (csr) or columns (csc) compressed: segment s holds `indices[indptr[s] … indptr[s+1]-1]`. */
export interface CompressedMatrix extends Compressed {
  readonly kind: 'csr' | 'csc'
}

/** Compressed block rows; `values` holds the row-major blocks one after the other. */
export interface BlockMatrix extends Compressed {
  readonly kind: 'bsr'
  readonly block: readonly [number, number]
}

export type SparseMatrix = CompressedMatrix | BlockMatrix | CoordTensor

/** The number of segments, and the extent of their indices. */
function extents(m: CompressedMatrix | BlockMatrix): readonly [number, number] {
  if (m.kind === 'bsr') return [m.shape[0] / m.block[0], m.shape[1] / m.block[1]]
  return m.kind === 'csr' ? m.shape : [m.shape[1], m.shape[0]]
}

/** Checks an indptr for `count` indices. @throws SptError `io/indptr`, naming the first invalid element */
export function checkIndptr(
  indptr: ArrayLike<number>,
  segments: number,
  count: number,
  segmentNoun: string,
  name: string,
): void {
  const reject = (message: string, expected: string): never =>
    failWith('io/indptr', `${name}: ${message}`, { expected })
  if (indptr.length !== segments + 1)
    reject(
      `indptr has ${indptr.length} elements, ${segments} ${segmentNoun}s need ${segments + 1}`,
      `${segments + 1} elements: where each ${segmentNoun} begins, and where the last ends`,
    )
  if (indptr[0] !== 0) reject(`indptr starts with ${indptr[0]}, not 0`, '0 as its first element')
  for (let s = 0; s < segments; s++)
    if (indptr[s + 1]! < indptr[s]!)
      reject(`indptr falls from ${indptr[s]} to ${indptr[s + 1]} at ${s + 1}`, 'elements that never fall')
  if (indptr[segments] !== count)
    reject(
      `indptr ends with ${indptr[segments]}, but there are ${count} indices`,
      `${count} as its last element`,
    )
}

/** Checks indices from 0 to below `extent`; `of` names the array. @throws SptError `io/index-range` */
export function checkRange(indices: ArrayLike<number>, extent: number, name: string, of = ''): void {
  for (let e = 0; e < indices.length; e++)
    if (indices[e]! < 0 || indices[e]! >= extent)
      failWith('io/index-range', `${name}: the index ${indices[e]} (element ${e}${of}) is out of range`, {
        expected: `0 to ${extent - 1}`,
      })
}

/** Checks a matrix and returns it. @throws SptError `io/indptr`, `io/index-range`, naming the first invalid element */
export function checkCompressed<M extends CompressedMatrix | BlockMatrix>(m: M, name: string): M {
  const [segments, extent] = extents(m)
  const { indptr, indices } = m
  checkIndptr(indptr, segments, indices.length, m.kind === 'csc' ? 'column' : 'row', name)
  checkRange(indices, extent, name, ' of indices')
  const elementCount = indices.length * (m.kind === 'bsr' ? m.block[0] * m.block[1] : 1)
  if (m.values !== null && m.values.length !== elementCount)
    failWith('io/data-length', `${name}: ${m.values.length} values for ${elementCount} stored elements`, {
      expected: `${elementCount} values`,
    })
  return m
}

function segmentOf(indptr: Int32Array, count: number, name: string): Int32Array {
  const out = allocate(Int32Array, count, name, 'row indices')
  for (let s = 0; s + 1 < indptr.length; s++) out.fill(s, indptr[s]!, indptr[s + 1]!)
  return out
}

/** The non-zero elements of blocks: zeros in stored blocks are padding. */
function blockCoords(m: BlockMatrix, name: string): CoordTensor {
  const [r, c] = m.block
  const { values } = m
  const size = m.indices.length * r * c
  // -0 was stored explicitly and counts as an element; this holds for the bits of f16 and bf16 too.
  const isElement = (e: number): boolean => values === null || !Object.is(values[e], 0)
  let count = 0
  for (let e = 0; e < size; e++) if (isElement(e)) count++
  const rows = allocate(Int32Array, count, name, 'row indices')
  const cols = allocate(Int32Array, count, name, 'column indices')
  const elementValues = count === size ? values : valueArray(m.dtype, count, name)
  let e = 0
  let index = 0
  for (let s = 0; s + 1 < m.indptr.length; s++)
    for (let b = m.indptr[s]!; b < m.indptr[s + 1]!; b++)
      for (let i = 0; i < r; i++)
        for (let j = 0; j < c; j++, e++) {
          if (!isElement(e)) continue
          rows[index] = s * r + i
          cols[index] = m.indices[b]! * c + j
          if (elementValues !== values) elementValues![index] = values![e]!
          index++
        }
  const padding = count === size ? {} : { padding: size - count }
  return {
    kind: 'coords',
    shape: m.shape,
    coords: [rows, cols],
    values: elementValues,
    dtype: m.dtype,
    ...padding,
  }
}

/**
 * Every stored element with its coordinates, in storage order, without zeros of blocks; values are shared if none is
 * omitted.
 */
export function toCoords(m: SparseMatrix, name = 'matrix'): CoordTensor {
  if (m.kind === 'coords') return m
  if (m.kind === 'bsr') return blockCoords(m, name)
  const segments = segmentOf(m.indptr, m.indices.length, name)
  const coords = m.kind === 'csr' ? [segments, m.indices] : [m.indices, segments]
  return { kind: 'coords', shape: m.shape, coords, values: m.values, dtype: m.dtype }
}
