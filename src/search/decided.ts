/** Kernels that run as they were measured. */
import type { Kernel } from '../api/kernel.ts'

/**
 * With a step that says so where it has none on loops: `compile` would look for a schedule by itself, which is not what was
 * measured.
 */
export const decided = (kernel: Kernel): Kernel => (kernel.compilation.onLoops ? kernel : kernel.as_written())
