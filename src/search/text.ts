/** Kernels under schedules as texts: the language's, and TypeScript. */
import type { Kernel } from '../api/kernels/kernel.ts'
import { expectArgument } from '../ast/diagnostics/expect-argument.ts'
import { isName } from '../ast/nodes/names.ts'

/**
 * The steps of a kernel as a schedule of its own, `schedule k.name { … }`, which reads back to the same steps where the
 * formats and instructions that it names are in scope.
 */
export function scheduleText(kernel: Kernel, name: string): string {
  expectArgument(typeof name === 'string' && isName(name), 'the name of a schedule', name, 'a name: best')
  const steps = kernel.trace.map((step) => `  ${step}\n`)
  return `schedule ${kernel.name}.${name} {${steps.length > 0 ? `\n${steps.join('')}` : ''}}\n`
}

/** An expression that applies the steps of a kernel to one called `base`. */
export function typescriptText(kernel: Kernel, base = 'kernel'): string {
  const steps = kernel.toJSON().map((step) => `  ${JSON.stringify(step)},\n`)
  return steps.length > 0 ? `${base}.replay([\n${steps.join('')}])` : base
}
