/**
 * Layouts of sparse tensors in `.npz`: csr, csc, bsr and coo of `scipy.sparse.save_npz`, COO and GCXS (compressed axes)
 * of `sparse.save_npz` (pydata/sparse), and their arrays. Additional arrays are rejected, because they may change the
 * meaning.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { CoordTensor } from '../../storage/tensor.ts'
import { allocate } from '../byte-source.ts'
import { checkIndptr, checkRange } from '../sparse-matrix.ts'
import { type Npz, rejectRank } from './npz.ts'

const COMPRESSED = ['indptr', 'indices']
const COORDINATES = ['row', 'col', 'coords']
const COMMON = ['format', 'shape', 'data', '_is_array', 'fill_value']
const LAYOUTS: Readonly<Record<string, readonly string[]>> = {
  csr: COMPRESSED,
  csc: COMPRESSED,
  bsr: COMPRESSED,
  coo: COORDINATES,
  gcxs: [...COMPRESSED, 'compressed_axes'],
}

/** The layout of the arrays with the given prefix, stated in the file or inferred from the arrays. */
export async function layoutOf(npz: Npz, prefix: string): Promise<string> {
  if (npz.has(`${prefix}format`)) return npz.text(`${prefix}format`)
  if (npz.has(`${prefix}compressed_axes`)) return 'gcxs'
  return npz.has(`${prefix}indptr`) ? 'csr' : 'coo'
}

/** True if `address` names the layout of the file's own arrays: `file.npz#csr` reads only these. */
export async function isLayoutName(npz: Npz, address: string): Promise<boolean> {
  if (npz.has('format')) return (await npz.text('format')) === address
  const layoutArrays = Object.hasOwn(LAYOUTS, address) ? LAYOUTS[address]! : []
  return layoutArrays.some((name) => npz.has(name)) && npz.has('compressed_axes') === (address === 'gcxs')
}

/**
 * Rejects arrays that belong neither to the layout nor to another of the `groups`. @throws SptError `io/unknown-array`
 */
export function checkArrays(npz: Npz, prefix: string, layout: string, groups: readonly string[]): void {
  const layoutArrays = LAYOUTS[layout]
  if (!layoutArrays) return
  const otherPrefixes = groups.map((g) => `${g}_`).filter((g) => g !== prefix && g.startsWith(prefix))
  const unknownArrays = npz.names.filter(
    (n) =>
      n.startsWith(prefix) &&
      ![...COMMON, ...layoutArrays].includes(n.slice(prefix.length)) &&
      !otherPrefixes.some((g) => n.startsWith(g)),
  )
  if (unknownArrays.length > 0)
    failWith(
      'io/unknown-array',
      `${npz.name} has the array '${unknownArrays[0]}' next to the arrays of a ${layout} matrix`,
      {
        expected: [...layoutArrays, ...COMMON].map((n) => prefix + n).join(', '),
        hint:
          prefix === ''
            ? `the array may change the meaning of the matrix; if not, ${npz.name}#${layout} reads the matrix alone`
            : 'the array may change the meaning of the matrix: rename or omit the array',
      },
    )
}

/** The value of absent elements, if it is not 0. @throws SptError `io/rank`, `io/unsupported` */
export async function fillOf(npz: Npz, prefix: string): Promise<number | undefined> {
  const name = `${prefix}fill_value`
  if (!npz.has(name)) return undefined
  const { values, shape } = await npz.dense(name, 'f64')
  if (values.length !== 1) rejectRank(`${npz.name}#${name}`, shape, 0)
  return values[0] === 0 ? undefined : values[0]
}

/** Coordinates of a GCXS tensor, in storage order. @throws SptError `io/shape`, `io/indptr`, `io/index-range` */
export async function gcxsCoordinates(
  npz: Npz,
  prefix: string,
  shape: readonly number[],
  label: string,
): Promise<CoordTensor['coords']> {
  // A tensor of one dimension is not compressed and has no further arrays.
  if (shape.length === 1) return [await npz.integers(`${prefix}indices`)]
  const compressed = [...(await npz.integers(`${prefix}compressed_axes`))]
  const isAxis = (k: number, position: number): boolean =>
    k >= 0 && k < shape.length && compressed.indexOf(k) === position
  if (!compressed.every(isAxis) || compressed.length === 0 || compressed.length >= shape.length)
    failWith(
      'io/shape',
      `${label}: compressed_axes is ${compressed.join(', ') || 'empty'}, of ${shape.length} dimensions`,
      { expected: `some of 0 to ${shape.length - 1}, each once, and not all` },
    )
  const otherAxes = shape.map((_, k) => k).filter((k) => !compressed.includes(k))
  const size = (axes: readonly number[]): number => axes.reduce((n, k) => n * shape[k]!, 1)
  const [indptr, indices] = [
    await npz.integers(`${prefix}indptr`),
    await npz.wideIntegers(`${prefix}indices`),
  ]
  const [segments, extent] = [size(compressed), size(otherAxes)]
  checkIndptr(indptr, segments, indices.length, 'segment', label)
  checkRange(indices, extent, label, ' of indices')
  const coords = shape.map(() => allocate(Int32Array, indices.length, label, 'coordinates'))
  // The last axis varies fastest.
  const delinearize = (axes: readonly number[], e: number, linear: number): void => {
    let remainder = linear
    for (let k = axes.length - 1; k >= 0; k--) {
      const n = shape[axes[k]!]!
      coords[axes[k]!]![e] = remainder % n
      remainder = Math.floor(remainder / n)
    }
  }
  for (let s = 0; s < segments; s++)
    for (let e = indptr[s]!; e < indptr[s + 1]!; e++) {
      delinearize(compressed, e, s)
      delinearize(otherAxes, e, indices[e]!)
    }
  return coords
}
