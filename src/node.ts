/** sparsetile in Node: the same with files, Dawn and CUDA. */
import {
  checkDtype,
  checkShape,
  checkTensor,
  checkWithin,
  expectArgument,
  expectOptions,
} from './api/inputs/argument-checks.ts'
import { checkLoadOptions, type TextOrUrl, textOf } from './api/programs/load-options.ts'
import type { SptProgram } from './api/programs/program.ts'
import { expectFields, expectValues, FLAG } from './ast/diagnostics/value-kinds.ts'
import type { WorkOptions } from './ast/work.ts'
import { devices as hosted } from './index.ts'
import type { InstructionTest } from './instruction-tests/instruction-test.ts'
import type { ReadOptions, WriteOptions } from './io/tensor-file-options.ts'
import type { Instr } from './ir/instructions/instr.ts'
import type { NodeLoadOptions } from './node-programs.ts'
import type { CudaOptions } from './runtime/cuda/cuda-options.ts'
import type { Device } from './runtime/device.ts'
import {
  isShared,
  NODE_WEBGPU_OPTIONS,
  type NodeWebGpuOptions,
  type SharedGpuOptions,
} from './runtime/webgpu/options.ts'
import { checkValueArray, type Tensor } from './storage/tensor.ts'

export * from './index.ts'
export type { InstructionTest } from './instruction-tests/instruction-test.ts'
export type { NodeLoadOptions } from './node-programs.ts'

/**
 * Loads a program: its text, or the path of a `.spt` file. `sparsetile/…` is a file of the package; anything else that
 * a file imports comes through `read` (default: the file system). A text alone imports from the package, and with a
 * `root` from there.
 * @throws SptError with every error found; `render` prints it
 */
export async function load(given: TextOrUrl, options: NodeLoadOptions = {}): Promise<SptProgram> {
  checkLoadOptions(options, { verify: FLAG })
  compiler = await import('./node-programs.ts')
  return compiler.loadProgram(textOf(given), options)
}

let compiler: typeof import('./node-programs.ts') | undefined

/**
 * Returns the test of an instruction's body. Opaque tiles are loaded and stored by instructions among `others`.
 * @throws SptError `schedule/…` if the instruction cannot be used on its own body
 */
export function instructionTest(declared: Instr, others: readonly Instr[] = [], seed = 1): InstructionTest {
  // Instructions come from programs, and `load` imports the compiler with the first one.
  expectArgument(
    compiler !== undefined,
    'what is tested',
    declared,
    'an instruction: program.instructions.get(name)',
  )
  return compiler!.instructionTest(declared, others, seed)
}

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
  return (await import('./io/index.ts')).readTensor(textOf(path), options)
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
  await (await import('./io/index.ts')).writeTensor(textOf(path), tensor, options)
}

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
