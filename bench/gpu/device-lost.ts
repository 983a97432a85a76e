/** Kernels that take their device with them. */
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { CudaCallError, isSticky } from '../../src/runtime/cuda/errors.ts'

export class DeviceLost extends Error {
  readonly culprit: string

  constructor(culprit: string, what: string) {
    super(what)
    this.culprit = culprit
  }
}

/** Whether nothing more will run in this process. */
export const isLoss = (error: unknown): boolean =>
  (error instanceof SptError &&
    error.diagnostics.some((d) => d.code === 'device/fault' || d.code === 'device/lost')) ||
  (error instanceof CudaCallError && isSticky(error.code))
