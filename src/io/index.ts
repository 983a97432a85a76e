/** Files ↔ tensors, in Node. Browsers import `dispatch.ts` and the formats' own files, which need no file system. */
import { type Diagnostic, SptError } from '../ast/diagnostics/diagnostic.ts'
import { Work, type WorkOptions } from '../ast/work.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import type { Tensor } from '../storage/tensor.ts'
import { withCheckpoints } from './byte-source.ts'
import { checkReadable, readTensorFrom, splitAddress, tensorChunks, writeWarning } from './dispatch.ts'
import { fileSource, withFile, writeFile } from './node-files.ts'
import { type Weights, type WeightsOptions, weightsOf } from './safetensors/weights.ts'
import type { ReadOptions, WriteOptions } from './tensor-file-options.ts'

export { blobSource, type Chunks } from './byte-source.ts'
export { ADDRESSES, READABLE, readTensorFrom, WRITABLE } from './dispatch.ts'
export { fileSource, writeFile } from './node-files.ts'
export { npzArrays, npzChunks } from './numpy/npz-write.ts'
export { maskPart, masksMetadata, masksOf, PRUNED } from './safetensors/pruned-layer.ts'
export { openSafetensors } from './safetensors/safetensors.ts'
export { densePart, type SafetensorsPart, safetensorsChunks } from './safetensors/safetensors-write.ts'
export type { Weights, WeightsOptions } from './safetensors/weights.ts'

/**
 * Reads a tensor: `.mtx .smtx .el .edges .txt .tsv .csv` (each also `.gz`), `.npy`, `.npz`, `.safetensors`. Sparse
 * files give coordinates, dense ones row-major values. Addresses: `f.npz#name` an array, `f.npz#prefix` the matrix
 * stored as `prefix_indptr …`, `f.npz#a,b,c` a pattern with those coordinates; `f.safetensors#name` a tensor, or
 * `f.safetensors.index.json#name` for a model in several files; `folder/report.json#name` a layer written by `spt
 * prune`, as a matrix of its kept elements including zeros. @throws SptError `io/…`
 */
export async function readTensor(path: string, options: ReadOptions & WorkOptions = {}): Promise<Tensor> {
  const work = new Work(options)
  const split = splitAddress(path)
  checkReadable(split.path)
  work.begin('read', split.path)
  return withFile(split.path, (source) =>
    readTensorFrom(withCheckpoints(source, work), { ...options, address: split.address ?? options.address }),
  )
}

/**
 * As `readTensor`, for a buffer of type `dtype`: integers that exceed the default types are read as that type. @throws
 * as `readTensor`
 */
export async function readTensorFor(
  path: string,
  dtype: Dtype | undefined,
  options: ReadOptions = {},
): Promise<Tensor> {
  try {
    return await readTensor(path, options)
  } catch (error) {
    const isWide = error instanceof SptError && error.code === 'io/value-range'
    if (!isWide || dtype === undefined || options.dtype !== undefined) throw error
    return readTensor(path, { ...options, dtype })
  }
}

/** The tensors of a model file, for repeated reads; the file is not kept open. @throws SptError `io/…` */
export const openWeights = async (path: string, options: WeightsOptions = {}): Promise<Weights> =>
  weightsOf(await fileSource(path), options)

/** Writes a tensor as `.npy`, `.npz`, `.safetensors`, `.mtx` or `.mtx.gz`. @throws SptError `io/…` */
export async function writeTensor(
  path: string,
  tensor: Tensor,
  { onWarning = emitWarning }: WriteOptions = {},
): Promise<void> {
  await writeFile(path, tensorChunks(path, tensor))
  const warning = writeWarning(path, tensor)
  if (warning) onWarning(warning)
}

const emitWarning = ({ code, message, hint = '' }: Diagnostic): void =>
  process.emitWarning(message, { code, detail: hint })
