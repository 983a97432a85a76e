/** sparsetile in Node: the same with files, Dawn and CUDA. */
import { checkLoadOptions, isPath, type LoadOptions, loadWith, type SptProgram } from './api/program.ts'
import { type ReadText, refuseImport, rooted } from './ast/resolve-imports.ts'
import { inPackage } from './ast/resolve-path.ts'
import { readProgramText, rootedIn } from './io/program-text.ts'
import { createCpuDevice } from './runtime/cpu.ts'
import { type CudaOptions, createCudaDevice } from './runtime/cuda/index.ts'
import type { Device } from './runtime/device.ts'
import { createNodeWebGpu, type NodeWebGpuOptions } from './runtime/webgpu-node.ts'

export * from './index.ts'
export { readTensor, writeTensor } from './io/index.ts'

/**
 * Loads a program: its text, or the path of a `.spt` file. `sparsetile/…` is a file of the package; anything else that
 * a file imports comes through `read` (default: the file system). A text alone imports from the package, and with a
 * `root` from there.
 * @throws SptError with every error found; `render` prints it
 */
export async function load(textOrPath: string, options: LoadOptions = {}): Promise<SptProgram> {
  checkLoadOptions(options)
  const { read, root } = options
  const isFile = isPath(textOrPath)
  return loadWith(textOrPath, options, {
    files: withPackage(read ?? readProgramText),
    imports: withPackage(
      root !== undefined
        ? read
          ? rooted(root, read)
          : await rootedIn(root)
        : (read ?? (isFile ? readProgramText : async (path) => refuseImport(path))),
    ),
  })
}

const withPackage =
  (read: ReadText): ReadText =>
  (path) =>
    inPackage(path) ? readProgramText(path) : read(path)

export const devices = {
  cpu: async (): Promise<Device> => createCpuDevice(),
  webgpu: (options: NodeWebGpuOptions = {}): Promise<Device> => createNodeWebGpu(options),
  cuda: (options: CudaOptions = {}): Promise<Device> => createCudaDevice(options),
}
