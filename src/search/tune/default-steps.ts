/** Kernels that run as they were measured. */
import type { Kernel } from '../../api/kernels/kernel.ts'

/**
 * Adds an explicit step to kernels without loop steps. Otherwise `compile` would apply a default schedule, and measure
 * another kernel.
 */
export const decided = (kernel: Kernel): Kernel => (kernel.compilation.onLoops ? kernel : kernel.asWritten())
