/** The data sets of a folder, by what they hold. Files that are not there are left out. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { coords, readTensor } from '../../src/node.ts'
import type { CoordTensor, Tensor } from '../../src/storage/tensor.ts'

/** `m × n`, sparse. */
export interface Matrix {
  readonly kind: 'matrix'
  readonly name: string
  readonly tensor: CoordTensor
}
/** `relations × nodes × nodes`: relation, target, source. */
export interface Triples {
  readonly kind: 'triples'
  readonly name: string
  readonly tensor: CoordTensor
}
/** Pairs of input and output voxels, offset by offset. */
export interface KernelMap {
  readonly kind: 'map'
  readonly name: string
  readonly lengths: readonly number[]
  readonly imap: Int32Array
  readonly omap: Int32Array
}
export type DataSet = Matrix | Triples | KernelMap

const column = async (path: string, name: string): Promise<Int32Array> => {
  const t = await readTensor(`${path}#${name}`)
  return Int32Array.from(t.values as ArrayLike<number>)
}

export const largest = (c: Int32Array): number => c.reduce((a, b) => Math.max(a, b), -1)

/** Every readable sparse matrix, triple list and kernel map of the folder, small ones first. */
export async function readData(folder: string): Promise<DataSet[]> {
  const out: DataSet[] = []
  for (const file of (await readdir(folder)).sort()) {
    const path = join(folder, file)
    const name = file.replace(/\.(mtx|npz|gz)/g, '')
    if (!/\.(mtx|mtx\.gz|npz)$/.test(file) || out.some((d) => d.name === name)) continue
    out.push(await readSet(path, name))
  }
  return out.sort((a, b) => elements(a) - elements(b))
}

async function readSet(path: string, name: string): Promise<DataSet> {
  if (/minkunet/.test(name)) {
    const lengths = [...(await column(path, 'knnz'))]
    return {
      kind: 'map',
      name,
      lengths,
      imap: await column(path, 'imap'),
      omap: await column(path, 'omap'),
    }
  }
  if (/aifb|fb15k/.test(name)) {
    const [rel, dst, src] = await Promise.all(['rel', 'dst', 'src'].map((c) => column(path, c)))
    const nodes = Math.max(largest(dst!), largest(src!)) + 1
    return { kind: 'triples', name, tensor: coords([largest(rel!) + 1, nodes, nodes], [rel!, dst!, src!]) }
  }
  return { kind: 'matrix', name, tensor: asMatrix(await readTensor(path)) }
}

function asMatrix(t: Tensor): CoordTensor {
  if (t.kind !== 'coords' || t.shape.length !== 2) throw new Error('not a sparse matrix')
  return t
}

export const elements = (d: DataSet): number =>
  d.kind === 'map' ? d.imap.length : d.tensor.coords[0]!.length
