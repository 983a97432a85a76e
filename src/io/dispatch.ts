/** One table from file endings to readers and writers; runs in browsers. */
import { type Diagnostic, failWith } from '../ast/diagnostics/diagnostic.ts'
import type { Tensor } from '../storage/tensor.ts'
import { type ByteSource, type Chunks, WHOLE } from './byte-source.ts'
import { gzip, inflate, MAX_EXPANSION } from './compression/inflate.ts'
import { readNpy } from './numpy/npy.ts'
import { openNpz } from './numpy/npz.ts'
import { readNpzTensor } from './numpy/npz-tensor.ts'
import { npyChunks, npzArrays, npzChunks, scipyWarning } from './numpy/npz-write.ts'
import { PRUNED, readPrunedLayer } from './safetensors/pruned-layer.ts'
import { openSafetensors, openShardOf, tensorAt } from './safetensors/safetensors.ts'
import { denseChunks } from './safetensors/safetensors-write.ts'
import { toCoords } from './sparse-matrix.ts'
import type { ReadOptions } from './tensor-file-options.ts'
import { readEdges } from './text/edges.ts'
import { readMatrixMarket } from './text/matrix-market.ts'
import { matrixMarketChunks } from './text/matrix-market-write.ts'
import { readSmtx } from './text/smtx.ts'
import { unknownEnding } from './unknown-ending.ts'

interface Input {
  readonly source: ByteSource
  /** The content, decompressed if the file is `.gz`. */
  readonly chunks: Chunks
  readonly maxBytes: number
  readonly options: ReadOptions
}

interface FileFormat {
  readonly endings: readonly string[]
  /** `.gz` may follow the ending. */
  readonly text: boolean
  /** The file holds several tensors, selected by `#address`. */
  readonly addressed?: boolean
  readonly read: (input: Input) => Promise<Tensor>
  readonly write?: (tensor: Tensor) => Chunks
  /** A warning if other readers cannot load the file. */
  readonly warning?: (name: string, tensor: Tensor) => Diagnostic | null
}

const textOptions = ({ source, maxBytes, options }: Input) => ({
  name: source.name,
  dtype: options.dtype,
  shape: options.shape,
  maxBytes,
})

const describeTensor = (tensor: Tensor): string =>
  tensor.kind === 'stored'
    ? ' in storage order'
    : tensor.kind === 'coords' && tensor.fill !== undefined
      ? ` with the fill value ${tensor.fill}`
      : ''

function rejectKind(ending: string, tensor: Tensor, instead: string): never {
  return failWith(
    'io/kind',
    `a ${tensor.kind === 'dense' ? 'dense' : 'sparse'} tensor${describeTensor(tensor)} cannot be written as ${ending}`,
    { hint: `Write ${instead}.` },
  )
}

const FORMATS: readonly FileFormat[] = [
  {
    endings: ['.mtx'],
    text: true,
    read: (input) => readMatrixMarket(input.chunks, textOptions(input)),
    write: (tensor) =>
      tensor.kind === 'stored' || (tensor.kind === 'coords' && tensor.fill !== undefined)
        ? rejectKind('.mtx', tensor, '.npz')
        : matrixMarketChunks(tensor),
  },
  {
    endings: ['.npz'],
    text: false,
    addressed: true,
    read: async ({ source, options }) => readNpzTensor(await openNpz(source), options.address, options),
    write: (tensor) => npzChunks(npzArrays(tensor)),
    warning: scipyWarning,
  },
  {
    endings: ['.npy'],
    text: false,
    read: ({ source, options }) =>
      readNpy(source.stream(), { name: source.name, dtype: options.dtype, bytes: source.size }),
    write: (tensor) =>
      tensor.kind === 'dense'
        ? npyChunks(tensor.values, tensor.shape, tensor.dtype)
        : rejectKind('.npy', tensor, '.npz or .mtx'),
  },
  {
    endings: ['.safetensors'],
    text: false,
    addressed: true,
    async read({ source, options }) {
      const file = await openSafetensors(source)
      return file.dense(tensorAt(file.name, [...file.entries.keys()], options.address), options.dtype)
    },
    write: (tensor) =>
      tensor.kind === 'dense' ? denseChunks(tensor) : rejectKind('.safetensors', tensor, '.npz or .mtx'),
  },
  {
    endings: ['.safetensors.index.json'],
    text: false,
    addressed: true,
    async read({ source, options }) {
      const { file, tensor } = await openShardOf(source, options.address)
      return file.dense(tensor, options.dtype)
    },
  },
  {
    endings: [PRUNED.report],
    text: false,
    addressed: true,
    read: ({ source, options }) => readPrunedLayer(source, options),
  },
  {
    endings: ['.smtx'],
    text: true,
    read: async (input) => toCoords(await readSmtx(input.chunks, textOptions(input)), input.source.name),
  },
  {
    endings: ['.el', '.edges', '.txt'],
    text: true,
    read: (input) => readEdges(input.chunks, textOptions(input)),
  },
  {
    endings: ['.tsv', '.csv'],
    text: true,
    read: (input) => readEdges(input.chunks, { ...textOptions(input), table: true }),
  },
]

/** Addresses in files that hold several tensors, for help. */
export const ADDRESSES =
  'Within an .npz: PATH#array, PATH#prefix of a scipy matrix, PATH#csr (or its layout) for the matrix only, or\nPATH#rows,columns for coordinates. Within .safetensors, or\nthe .safetensors.index.json of a model in several files: PATH#tensor. For output of spt prune: DIR/report.json#layer,\na matrix of the kept weights.'

/** The endings that can be read, for messages and help. */
export const READABLE: readonly string[] = FORMATS.flatMap((f) =>
  f.endings.flatMap((e) => (f.text ? [e, `${e}.gz`] : [e])),
)
export const WRITABLE: readonly string[] = FORMATS.filter((f) => f.write).flatMap((f) =>
  f.endings.flatMap((e) => (f.text ? [e, `${e}.gz`] : [e])),
)

const GZ = '.gz'

interface FormatMatch {
  readonly format: FileFormat
  readonly packed: boolean
}

function checkPath(name: string): void {
  if (typeof name !== 'string') failWith('io/path', `a path is ${typeof name}`, { expected: 'a string' })
}

function findFormat(name: string): FormatMatch | undefined {
  checkPath(name)
  const lower = name.toLowerCase()
  const packed = lower.endsWith(GZ)
  const plain = packed ? lower.slice(0, -GZ.length) : lower
  const format = FORMATS.find((f) => f.endings.some((e) => plain.endsWith(e)))
  return format && (!packed || format.text) ? { format, packed } : undefined
}

/** Checks that a file can be read, by its ending. @throws SptError `io/unknown-extension`, `io/address` */
export function checkReadable(name: string): void {
  if (findFormat(name)) return
  checkAddress(name)
  unknownEnding(name, READABLE, 'read')
}

/** Rejects an invalid `#address`, or one for a file with a single tensor. @throws SptError `io/address` */
function checkAddress(name: string): void {
  const hashIndex = addressAt(name)
  if (hashIndex < 0) return
  const file = name.slice(0, hashIndex)
  const { addressed } = findFormat(file)!.format
  failWith(
    'io/address',
    addressed
      ? `'${name.slice(hashIndex)}' is not an address in '${file}'`
      : `'${file}' holds one tensor, and '${name.slice(hashIndex)}' addresses one of several`,
    { expected: addressed ? `${file}#array, or ${file} alone` : file },
  )
}

/** The index of the first `#` after a file name; −1 if there is none. */
function addressAt(path: string): number {
  let hashIndex = path.indexOf('#')
  while (hashIndex >= 0 && !findFormat(path.slice(0, hashIndex))) hashIndex = path.indexOf('#', hashIndex + 1)
  return hashIndex
}

/** Splits `file.npz#address`; names of files that hold one tensor are not split. */
export function splitAddress(path: string): { readonly path: string; readonly address?: string } {
  checkPath(path)
  const hashIndex = addressAt(path)
  const file = path.slice(0, hashIndex)
  return hashIndex >= 0 && hashIndex + 1 < path.length && findFormat(file)?.format.addressed
    ? { path: file, address: path.slice(hashIndex + 1) }
    : { path }
}

function checkShape(tensor: Tensor, shape: readonly number[] | undefined, name: string): Tensor {
  if (shape && (shape.length !== tensor.shape.length || shape.some((n, k) => n !== tensor.shape[k])))
    failWith('io/shape-mismatch', `${name} has the shape ${tensor.shape.join(' × ') || 'of a scalar'}`, {
      expected: shape.join(' × ') || 'a scalar',
    })
  return tensor
}

/** Reads any supported file, selected by the ending of the source's name. @throws SptError `io/…` */
export async function readTensorFrom(source: ByteSource, options: ReadOptions = {}): Promise<Tensor> {
  const match = findFormat(source.name) ?? unknownEnding(source.name, READABLE, 'read')
  const { name, size } = source
  if (size === 0) failWith('io/empty', `${name} is empty`, { hint: WHOLE })
  const tensor = await match.format.read({
    source,
    chunks: match.packed ? inflate(source.stream(), 'gzip', name) : source.stream(),
    maxBytes: match.packed ? size * MAX_EXPANSION : size,
    options,
  })
  return checkShape(tensor, options.shape, name)
}

/**
 * The bytes of a file called `name` that holds the tensor. @throws SptError `io/unknown-extension`, `io/kind`,
 * `io/rank`
 */
export function tensorChunks(name: string, tensor: Tensor): Chunks {
  const match = findFormat(name)
  if (!match?.format.write) return unknownEnding(name, WRITABLE, 'write')
  const chunks = match.format.write(tensor)
  return match.packed ? gzip(chunks) : chunks
}

/** The warning for a tensor written to `name`; `null` if there is none. */
export const writeWarning = (name: string, tensor: Tensor): Diagnostic | null =>
  findFormat(name)?.format.warning?.(name, tensor) ?? null
