/** sparsetile in Node: the same with files, Dawn and CUDA. */
import { readFile } from 'node:fs/promises'
import { isPath, parseProgram, readProgram, type SptProgram } from './api/program.ts'
import type { ReadText } from './ast/resolve-imports.ts'
import { createCpuDevice } from './runtime/cpu.ts'
import { type CudaOptions, createCudaDevice } from './runtime/cuda/index.ts'
import type { Device } from './runtime/device.ts'
import { createNodeWebGpu, type NodeWebGpuOptions } from './runtime/webgpu-node.ts'

export * from './index.ts'
export { readTensor, writeTensor } from './io/index.ts'

/**
 * Loads a program: its text, or the path of a `.spt` file.
 * @throws SptError with every error found; `render` prints it
 */
export async function load(
  textOrPath: string,
  options: { readonly read?: ReadText; readonly name?: string } = {},
): Promise<SptProgram> {
  if (!isPath(textOrPath)) return parseProgram(textOrPath, options.name)
  return readProgram(textOrPath, options.read ?? ((path) => readFile(path, 'utf8')))
}

export const devices = {
  cpu: async (): Promise<Device> => createCpuDevice(),
  webgpu: (options: NodeWebGpuOptions = {}): Promise<Device> => createNodeWebGpu(options),
  cuda: (options: CudaOptions = {}): Promise<Device> => createCudaDevice(options),
}
