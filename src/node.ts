/** sparsetile in Node: the same with files, Dawn and CUDA. */
import { readFile } from 'node:fs/promises'
import { loadWith, type SptProgram } from './api/program.ts'
import { type ReadText, refuseImport } from './ast/resolve-imports.ts'
import { inPackage } from './ast/resolve-path.ts'
import { placeOf } from './io/package.ts'
import { createCpuDevice } from './runtime/cpu.ts'
import { type CudaOptions, createCudaDevice } from './runtime/cuda/index.ts'
import type { Device } from './runtime/device.ts'
import { createNodeWebGpu, type NodeWebGpuOptions } from './runtime/webgpu-node.ts'

export * from './index.ts'
export { readTensor, writeTensor } from './io/index.ts'

/**
 * Loads a program: its text, or the path of a `.spt` file. `sparsetile/…` is a file of the package; anything else that
 * a file imports comes through `read` (default: the file system). A text alone imports from the package only.
 * @throws SptError with every error found; `render` prints it
 */
export async function load(
  textOrPath: string,
  options: { readonly read?: ReadText; readonly name?: string } = {},
): Promise<SptProgram> {
  const withPackage =
    (read: ReadText): ReadText =>
    (path) =>
      inPackage(path) ? readText(path) : read(path)
  return loadWith(textOrPath, options.name, {
    files: withPackage(options.read ?? readText),
    imports: withPackage(options.read ?? (async (path) => refuseImport(path))),
  })
}

const readText: ReadText = (path) => readFile(placeOf(path), 'utf8')

export const devices = {
  cpu: async (): Promise<Device> => createCpuDevice(),
  webgpu: (options: NodeWebGpuOptions = {}): Promise<Device> => createNodeWebGpu(options),
  cuda: (options: CudaOptions = {}): Promise<Device> => createCudaDevice(options),
}
