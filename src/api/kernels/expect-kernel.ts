/** Checks of kernel arguments, for calls from JavaScript. */
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import { Kernel } from './kernel.ts'

/** Throws SptError `api/argument` unless the argument is a kernel. */
export function expectKernel(kernel: unknown): Kernel {
  expectArgument(kernel instanceof Kernel, 'the kernel', kernel, "a kernel: program.kernel('name')")
  return kernel as Kernel
}
