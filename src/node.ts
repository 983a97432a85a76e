/** sparsetile in Node: the same with files, Dawn and CUDA. */
import {
  checkDtype,
  checkShape,
  checkTensor,
  checkWithin,
  expectArgument,
  expectOptions,
} from './api/inputs/argument-checks.ts'
import { verifierFor } from './api/programs/lazy-verifier.ts'
import type { LoadOptions, SptProgram, TextOrUrl } from './api/programs/program.ts'
import { checkLoadOptions, isOddPath, isPath, loadWith, textOf } from './api/programs/program.ts'
import { expectFields, expectValues, FLAG } from './ast/diagnostics/value-kinds.ts'
import { type ReadText, refuseImport, rooted } from './ast/imports/resolve-imports.ts'
import { inPackage, readPackaged } from './ast/imports/resolve-path.ts'
import type { WorkOptions } from './ast/work.ts'
import { devices as hosted } from './index.ts'
import { readTensor as readFileTensor, writeTensor as writeFileTensor } from './io/index.ts'
import { packagedFormatsNamed } from './io/package/package.ts'
import { readProgramText, refuseFolder, rootedIn, shippedText } from './io/package/program-text.ts'
import { programTrees } from './io/package/program-trees.ts'
import type { ReadOptions, WriteOptions } from './io/tensor-file-options.ts'
import type { CudaOptions } from './runtime/cuda/cuda-options.ts'
import type { Device } from './runtime/device.ts'
import {
  isShared,
  NODE_WEBGPU_OPTIONS,
  type NodeWebGpuOptions,
  type SharedGpuOptions,
} from './runtime/webgpu/options.ts'
import { installStoredModels } from './search/calibrate/stored.ts'
import { checkValueArray, type Tensor } from './storage/tensor.ts'

export * from './index.ts'
export { type InstructionTest, instructionTest } from './instruction-tests/instruction-test.ts'

export interface NodeLoadOptions extends LoadOptions {
  /**
   * The invariants of each stage are checked after every step and pass; what breaks one is named by an `InternalError`.
   * Default: `SPT_VERIFY=1`.
   */
  readonly verify?: boolean | undefined
}

/**
 * Loads a program: its text, or the path of a `.spt` file. `sparsetile/…` is a file of the package; anything else that
 * a file imports comes through `read` (default: the file system). A text alone imports from the package, and with a
 * `root` from there.
 * @throws SptError with every error found; `render` prints it
 */
export async function load(given: TextOrUrl, options: NodeLoadOptions = {}): Promise<SptProgram> {
  checkLoadOptions(options, { verify: FLAG })
  const { read, root, verify = process.env.SPT_VERIFY === '1' } = options
  const textOrPath = textOf(given)
  const isFile = isPath(textOrPath)
  if (!read && isOddPath(textOrPath)) await refuseFolder(textOrPath)
  return loadWith(textOrPath, options, {
    files: withPackage(read ?? readProgramText),
    imports: withPackage(
      root !== undefined
        ? read
          ? rooted(root, read)
          : await rootedIn(root)
        : (read ?? (isFile ? readProgramText : async (path) => refuseImport(path))),
    ),
    trees: programTrees(),
    shipped: shippedText,
    observer: await verifierFor(verify),
  })
}

const withPackage =
  (read: ReadText): ReadText =>
  (path) =>
    inPackage(path) ? readProgramText(path) : read(path)

/**
 * Reads a tensor: `.mtx .smtx .el .edges .txt .tsv .csv` (each also `.gz`), `.npy`, `.npz`, `.safetensors`. Sparse files give coordinates,
 * dense ones row-major values. Within an `.npz`: `f.npz#name` an array, `f.npz#prefix` the matrix stored as
 * `prefix_indptr …`, `f.npz#a,b,c` a pattern with those coordinates; `f.safetensors#name` a tensor, as
 * `f.safetensors.index.json#name` where it lies in several files; `folder/report.json#name` a layer that `spt prune` wrote, as a matrix of
 * what is kept, zeros among it. Throws `SptError` with codes `io/…`.
 */
export async function readTensor(path: TextOrUrl, options: ReadOptions & WorkOptions = {}): Promise<Tensor> {
  expectOptions('readTensor', options, ['dtype', 'shape', 'address', 'tiles', 'signal', 'onProgress'])
  if (options.dtype !== undefined) checkDtype(options.dtype)
  if (options.shape !== undefined) checkShape(options.shape)
  const { address } = options
  expectValues(options, { tiles: FLAG })
  expectArgument(address === undefined || typeof address === 'string', 'the address', address, 'a string')
  return readFileTensor(textOf(path), options)
}

/**
 * Writes a tensor as `.npy`, `.npz`, `.safetensors`, `.mtx` or `.mtx.gz`, atomically: a failed write leaves the old file.
 * @throws SptError `tensor/…`, `bind/value-type`, `bind/value-range` of what is no proper tensor; `io/…`
 */
export async function writeTensor(
  path: TextOrUrl,
  tensor: Tensor,
  options: WriteOptions = {},
): Promise<void> {
  expectOptions('writeTensor', options, ['onWarning'])
  checkTensor('the tensor', tensor, 'what is written')
  if (tensor.values) checkValueArray(tensor.values, tensor.dtype)
  if (tensor.kind === 'coords') checkWithin(tensor.shape, tensor.coords)
  await writeFileTensor(textOf(path), tensor, options)
}

readPackaged(packagedFormatsNamed)
installStoredModels()

/** Those that are asked for are loaded. */
export const devices = {
  cpu: hosted.cpu,
  webgpu: async (given: NodeWebGpuOptions | SharedGpuOptions = {}): Promise<Device> => {
    if (isShared(given)) return hosted.webgpu(given)
    const options = given as NodeWebGpuOptions
    expectFields('devices.webgpu', options, NODE_WEBGPU_OPTIONS)
    const { createNodeWebGpu } = await import('./runtime/webgpu/node.ts')
    return createNodeWebGpu(options)
  },
  cuda: async (options: CudaOptions = {}): Promise<Device> => {
    const files = ['libcuda', 'nvrtc', 'include', 'cacheDir'] as const
    expectOptions('devices.cuda', options, ['ordinal', ...files, 'syncEachLaunch', 'overlap'])
    const { createCudaDevice } = await import('./runtime/cuda/index.ts')
    return createCudaDevice(options)
  },
}
