/** Matrices by name: of the package, generated, or from a file that was dropped into the page. */
import { generateMatrix } from '../../bench/families.ts'
import { coords } from '../../src/index.ts'
import { bytesSource } from '../../src/io/byte-source.ts'
import { readTensorFrom } from '../../src/io/dispatch.ts'
import { coordsOfDense } from '../../src/storage/entries/stored-coords.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import type { MatrixChoice } from '../protocol.ts'
import { pageFile } from './package-files.ts'

/** Largest matrix of which the page makes pictures and copies. */
const MAX_NONZEROS = 5_000_000

interface Latest extends MatrixChoice {
  readonly tensor: Promise<CoordTensor>
}
let latest: Latest | null = null

/** The matrix by coordinates. The latest one is kept. */
export function matrixOf({ name, bytes }: MatrixChoice): Promise<CoordTensor> {
  if (latest?.name === name && isEqual(latest.bytes, bytes)) return latest.tensor
  const tensor = bytes ? fromFile(name, bytes) : builtIn(name)
  latest = { name, ...(bytes && { bytes }), tensor }
  tensor.catch(() => {
    latest = null
  })
  return tensor
}

const isEqual = (a: Uint8Array | undefined, b: Uint8Array | undefined): boolean =>
  a?.length === b?.length && (a?.every((x, k) => x === b![k]) ?? true)

async function builtIn(name: string): Promise<CoordTensor> {
  if (name.startsWith('data/')) {
    const response = await pageFile(name)
    return fromFile(name, new Uint8Array(await response.arrayBuffer()))
  }
  const generated = generateMatrix(name)
  if (!generated) throw new Error(`there is no matrix '${name}'`)
  const { shape, rows, columns } = generated
  // Small integers: their sums are exact in any order, so results of schedules can be compared by eye.
  const values = Float32Array.from(columns, (j, e) => ((j + e) % 5) + 1)
  return coords([...shape], [rows, columns], values)
}

async function fromFile(name: string, bytes: Uint8Array): Promise<CoordTensor> {
  const read = await readTensorFrom(bytesSource(name, bytes), {})
  const tensor = read.kind === 'dense' ? coordsOfDense(read) : read
  if (tensor.kind !== 'coords') throw new Error(`${name} holds no matrix by coordinates`)
  if (tensor.shape.length !== 2)
    throw new Error(`${name} holds a tensor of ${tensor.shape.length} dimensions; expected: a matrix`)
  const count = tensor.coords[0]!.length
  if (count > MAX_NONZEROS)
    throw new Error(`${name} has ${count.toLocaleString('en-US')} nonzeros; the page takes at most 5,000,000`)
  return tensor
}
