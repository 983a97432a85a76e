/** Bytes and operations of a kernel that was compared at the end. */
import type { Kernel } from '../../../api/kernels/kernel.ts'
import type { Explanation } from '../../../run/explain/index.ts'
import type { Evaluator } from '../../evaluate/evaluator.ts'
import { outcomeOf } from '../../evaluate/outcomes.ts'
import type { Outcome } from '../../types.ts'

export { allOperations } from '../../../run/explain/roofline.ts'

export interface KernelExplanation {
  /** Bytes and operations, without times. */
  readonly explanation?: Explanation | undefined
  /** Reason why they are unknown. */
  readonly unexplained?: Outcome | undefined
}

export async function explainKernel(evaluator: Evaluator, kernel: Kernel): Promise<KernelExplanation> {
  try {
    const compiled = await evaluator.compile(kernel)
    try {
      const prepared = await evaluator.bench.data.prepare(compiled)
      try {
        return { explanation: await prepared.explain({ time: false }) }
      } finally {
        prepared.free()
      }
    } finally {
      compiled.release()
    }
  } catch (e) {
    return { unexplained: outcomeOf(e) }
  }
}
