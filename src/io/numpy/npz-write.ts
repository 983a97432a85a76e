/** Writes `.npz`: named arrays, and tensors in the layout of scipy's `save_npz` if it has one. */
import { Zip, ZipDeflate, ZipPassThrough } from 'fflate'
import { type Diagnostic, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import { arrayName } from '../../ir/coordinates/axis.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { CoordTensor, StoredTensor, Tensor, ValueArray } from '../../storage/tensor.ts'
import { namedArrays } from '../../storage/tensor.ts'
import { convertValues, encoder, valueArray } from '../element-arrays.ts'
import { DESCRIPTORS, littleEndian } from './npy-elements.ts'

// Writes `.npy`, version 1, C order, little-endian.

/** Alignment of the data in bytes, so that the file can be memory-mapped. */
const ALIGN = 64

function header(descriptor: string, shape: readonly number[]): Uint8Array {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ')
  const text = `{'descr': '${descriptor}', 'fortran_order': False, 'shape': (${sizes}), }`
  const length = Math.ceil((10 + text.length + 1) / ALIGN) * ALIGN - 10
  const out = new Uint8Array(10 + length).fill(32)
  out.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, length & 255, length >> 8])
  out.set(new TextEncoder().encode(text), 10)
  out[out.length - 1] = 10
  return out
}

/** The file in two chunks: header and elements. `values` in row-major order; bf16 is written as f32. */
export function npyChunks(values: ValueArray, shape: readonly number[], dtype: Dtype): Uint8Array[] {
  const stored = dtype === 'bf16' ? convertValues(values, 'bf16', 'f32', 'array') : values
  return [header(DESCRIPTORS[dtype], shape), littleEndian(stored)]
}

/** A zero-dimensional array of ASCII bytes, as scipy names its formats. */
function npyBytesChunks(text: string): Uint8Array[] {
  return [header(`|S${text.length}`, []), new TextEncoder().encode(text)]
}

/** An array to be written; text becomes a zero-dimensional array of bytes. */
export type NamedArray =
  | { readonly values: ValueArray; readonly shape: readonly number[]; readonly dtype: Dtype }
  | { readonly text: string }

const CHUNK_SIZE = 1 << 20
/** Largest archive: fflate does not write zip64. */
const MAX_BYTES = 0xffffffff
/** A constant date, so that equal tensors give equal files. */
const NO_DATE = new Date(1980, 0, 1)

/** The archive in chunks. @throws SptError `io/too-large` from 4 GiB on */
export function* npzChunks(
  arrays: Readonly<Record<string, NamedArray>>,
  compress = true,
): Generator<Uint8Array> {
  const pendingChunks: Uint8Array[] = []
  let total = 0
  const zip = new Zip((error, chunk) => {
    if (error) throw error
    pendingChunks.push(chunk)
  })
  for (const [name, array] of Object.entries(arrays)) {
    const entry = compress ? new ZipDeflate(`${name}.npy`) : new ZipPassThrough(`${name}.npy`)
    entry.mtime = NO_DATE
    zip.add(entry)
    const chunks =
      'text' in array ? npyBytesChunks(array.text) : npyChunks(array.values, array.shape, array.dtype)
    for (const chunk of chunks) {
      total += chunk.length
      if (total > MAX_BYTES)
        failWith('io/too-large', 'a .npz of 4 GiB or more cannot be written', { hint: 'Write .npy or .mtx.' })
      for (let offset = 0; offset < chunk.length; offset += CHUNK_SIZE) {
        entry.push(chunk.subarray(offset, offset + CHUNK_SIZE))
        yield* pendingChunks.splice(0)
      }
    }
    entry.push(new Uint8Array(0), true)
  }
  zip.end()
  yield* pendingChunks
}

const intArray = (values: Int32Array, shape: readonly number[] = [values.length]): NamedArray => ({
  values,
  shape,
  dtype: 'i32',
})
const shapeArray = (shape: readonly number[]): NamedArray => intArray(Int32Array.from(shape))

/** Values of a tensor; scipy's files always have some, so a pattern gets ones. */
function dataOf(tensor: CoordTensor | StoredTensor, count: number): NamedArray {
  const { dtype } = tensor
  const values = tensor.values ?? valueArray(dtype, count, 'data').fill(encoder(dtype, () => 'data')(1, 0))
  return { values, shape: [values.length], dtype }
}

function coordArrays(tensor: CoordTensor): Record<string, NamedArray> {
  const { coords, shape, fill } = tensor
  const count = coords[0]?.length ?? 0
  const common = { format: { text: 'coo' }, shape: shapeArray(shape), data: dataOf(tensor, count) }
  if (coords.length === 2 && fill === undefined)
    return { row: intArray(coords[0]!), col: intArray(coords[1]!), ...common }
  const flatCoords = new Int32Array(coords.length * count)
  coords.forEach((c, k) => {
    flatCoords.set(c, k * count)
  })
  if (fill !== undefined) {
    // The layout of pydata/sparse; scipy would ignore the fill value.
    const { shape, data } = common
    return {
      data,
      shape,
      fill_value: { values: Float64Array.of(fill), shape: [], dtype: 'f64' },
      coords: intArray(flatCoords, [coords.length, count]),
    }
  }
  // scipy supports other than two dimensions in its arrays only, not in its matrices.
  const isArray: NamedArray = { values: Uint8Array.of(1), shape: [], dtype: 'bool' }
  return { coords: intArray(flatCoords, [coords.length, count]), ...common, _is_array: isArray }
}

function storedArrays(tensor: StoredTensor): Record<string, NamedArray> {
  const axes = namedArrays(tensor)
  const { shape } = tensor
  const [first] = axes
  const { indptr, indices } = first?.[1] ?? {}
  const isContiguous = indices && indices.length === indptr?.at(-1)
  if (axes.length === 1 && shape.length === 2 && indptr && isContiguous && indptr.length === shape[0]! + 1)
    return {
      indices: intArray(indices),
      indptr: intArray(indptr),
      format: { text: 'csr' },
      shape: shapeArray(shape),
      data: dataOf(tensor, indices.length),
    }
  const result: Record<string, NamedArray> = {}
  for (const [axis, arrays] of axes)
    for (const array of LEVEL_ARRAYS) {
      const values = arrays[array]
      if (values) result[arrayName(axis, array)] = intArray(values)
    }
  const { values, dtype } = tensor
  if (values) result.data = { values, shape: [values.length], dtype }
  result.shape = shapeArray(shape)
  return result
}

/**
 * The arrays that represent a tensor: `arr_0` for a dense one (numpy's name), scipy's coo for coordinates
 * (pydata/sparse's COO with a fill value), scipy's csr for one compressed axis below a dense one, otherwise each axis'
 * arrays by name, `data` and `shape`.
 */
export function npzArrays(tensor: Tensor): Record<string, NamedArray> {
  switch (tensor.kind) {
    case 'dense':
      return { arr_0: { values: tensor.values, shape: tensor.shape, dtype: tensor.dtype } }
    case 'coords':
      return coordArrays(tensor)
    case 'stored':
      return storedArrays(tensor)
  }
}

/** A warning if SciPy cannot load a tensor written to `name`; otherwise `null`. */
export function scipyWarning(name: string, tensor: Tensor): Diagnostic | null {
  // scipy's csr supports half precision, its coo does not.
  if (tensor.kind !== 'coords' || tensor.dtype !== 'f16' || tensor.fill !== undefined) return null
  const coordsText = tensor.coords.length === 2 ? "(z['row'], z['col'])" : "z['coords']"
  return {
    code: 'io/scipy-f16',
    message: `scipy.sparse.load_npz rejects '${name}': the coo format has no f16`,
    hint: `in Python: z = numpy.load('${name}'); scipy.sparse.coo_array((z['data'].astype('f4'), ${coordsText}), z['shape']); or write f32`,
  }
}
