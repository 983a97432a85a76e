/** Calls that take a kernel, from JavaScript. */
import { expectArgument } from '../ast/expect-argument.ts'
import { Kernel } from './kernel.ts'

/** @throws SptError `api/argument` */
export function expectKernel(kernel: unknown): Kernel {
  expectArgument(kernel instanceof Kernel, 'the kernel', kernel, "a kernel: program.kernel('name')")
  return kernel as Kernel
}
