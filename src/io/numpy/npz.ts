/** Reads `.npz`: a zip archive with one `.npy` entry per array. Arrays are read on request. */

import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { quantity } from '../../ast/print/quantity.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { DenseTensor, ValueArray } from '../../storage/tensor.ts'
import type { ByteSource } from '../byte-source.ts'
import { type ZipEntry, zipBytes, zipEntries } from '../compression/zip.ts'
import { denseOf, type NpyOptions, readNpyArray, readNpyHeader, rejectText } from './npy.ts'
import type { ElementType } from './npy-elements.ts'

export interface Npz {
  /** The file's name, for diagnostics. */
  readonly name: string
  /** The arrays, in the file's order. */
  readonly names: readonly string[]
  has(array: string): boolean
  /**
   * Type and shape of an array of numbers; its elements are not read. @throws SptError `io/unknown-array`,
   * `io/unsupported` for text
   */
  elementInfo(array: string): Promise<{ readonly type: ElementType; readonly shape: readonly number[] }>
  /** The raw elements, little-endian and row-major. @throws as `dense` */
  bytes(array: string): Promise<Uint8Array>
  /**
   * An array of numbers. @throws SptError `io/unknown-array`, `io/unsupported` for text, and errors of `.npy` reading
   */
  dense(array: string, dtype?: Dtype): Promise<DenseTensor>
  /**
   * A one-dimensional array of integers that fit 32 bits. @throws SptError `io/not-integers`, `io/rank`,
   * `io/value-range`
   */
  integers(array: string): Promise<Int32Array>
  /** As `integers`, for numbers up to 2^53. */
  wideIntegers(array: string): Promise<Float64Array>
  /** As `integers`, in two dimensions. */
  integerRows(array: string): Promise<DenseTensor>
  /** ASCII or UTF-32 text without padding. @throws SptError `io/unsupported` for numbers */
  text(array: string): Promise<string>
}

const SUFFIX = '.npy'

/** Opens an archive; reads its directory only. */
export async function openNpz(source: ByteSource): Promise<Npz> {
  const entries = new Map<string, ZipEntry>()
  const seen = new Set<string>()
  for (const e of await zipEntries(source)) {
    const isArray = e.name.endsWith(SUFFIX)
    // Python readers accept either name for the other, so a member `a` next to `a.npy` is a duplicate.
    const array = isArray ? e.name.slice(0, -SUFFIX.length) : e.name
    if (seen.has(array))
      failWith('io/corrupt', `${source.name} has the array '${array}' twice`, {
        expected: 'each array once',
        hint: 'write the archive anew',
      })
    seen.add(array)
    if (isArray) entries.set(array, e)
  }
  const names = [...entries.keys()]
  const entryOf = (array: string): ZipEntry =>
    entries.get(array) ??
    failWith('io/unknown-array', `${source.name} has no array '${array}'`, {
      lookup: { name: array, candidates: names },
      expected: names.join(', '),
    })
  const read = async (array: string, options: NpyOptions = {}) => {
    const entry = entryOf(array)
    return readNpyArray(zipBytes(source, entry), {
      name: `${source.name}#${array}`,
      bytes: entry.size,
      ...options,
    })
  }
  const integers = async (array: string, dtype: Dtype, rank = 1): Promise<DenseTensor> => {
    const label = `${source.name}#${array}`
    const { type, header } = await readNpyHeader(zipBytes(source, entryOf(array)), label)
    if (!/^[iu]/.test(type.code))
      failWith('io/not-integers', `${label} holds '${header.descriptor}'`, { expected: 'integers' })
    if (header.shape.length !== rank) rejectRank(label, header.shape, rank)
    try {
      return denseOf(await read(array, { dtype }), label)
    } catch (error) {
      if (!(error instanceof SptError) || error.code !== 'io/value-range') throw error
      const hint = 'sizes and indices are 32-bit integers here: split the tensor'
      throw new SptError(error.diagnostics.map((d) => ({ ...d, hint })))
    }
  }
  return {
    name: source.name,
    names,
    has: (array) => entries.has(array),
    async elementInfo(array) {
      const label = `${source.name}#${array}`
      const { type, header } = await readNpyHeader(zipBytes(source, entryOf(array)), label)
      if (type.dtype === null) rejectText(label)
      return { type, shape: header.shape }
    },
    async bytes(array) {
      const content = await read(array, { raw: true })
      return content.type.dtype === null || content.dtype !== null
        ? rejectText(`${source.name}#${array}`)
        : content.bytes
    },
    dense: async (array, dtype) => denseOf(await read(array, { dtype }), `${source.name}#${array}`),
    integers: async (array) => (await integers(array, 'i32')).values as Int32Array,
    wideIntegers: async (array) => (await integers(array, 'f64')).values as Float64Array,
    integerRows: (array) => integers(array, 'i32', 2),
    async text(array) {
      const found = await read(array)
      if (found.dtype !== null)
        return failWith('io/unsupported', `${source.name}#${array} holds numbers, not text`, {
          expected: 'the name of a sparse format, as written by scipy.sparse.save_npz',
        })
      // UTF-32 text of a format's name is ASCII with three zero bytes per letter.
      return new TextDecoder('latin1').decode(found.bytes).replaceAll('\0', '')
    },
  }
}

/** Reports an array with the wrong number of dimensions. @throws SptError `io/rank` */
export function rejectRank(label: string, shape: readonly number[], expected: number): never {
  return failWith('io/rank', `${label} has ${shape.length} dimensions (${shape.join(' × ') || 'a scalar'})`, {
    expected: `${quantity(expected, 'dimension')}`,
  })
}

/** Values of a one-dimensional array. */
export async function vector(
  npz: Npz,
  array: string,
  dtype?: Dtype,
): Promise<{ values: ValueArray; dtype: Dtype }> {
  const found = await npz.dense(array, dtype)
  if (found.shape.length !== 1) rejectRank(`${npz.name}#${array}`, found.shape, 1)
  return { values: found.values, dtype: found.dtype }
}
