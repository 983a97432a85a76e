/** Stage verifiers as observers, for `load` or `observe`: they report the step or pass that broke an invariant. Loaded on demand only. */
import { inPass, unreachable } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Kernel2, Kernel3 } from '../../ir/statements/loops.ts'
import { PASSES } from '../../lower/passes.ts'
import type { Observer } from '../../lower/pipeline.ts'
import type { CompilationStage, StageObserver } from '../../run/compile/compile.ts'
import { verify1 } from '../../verifiers/stage1.ts'
import { verify2 } from '../../verifiers/stage2.ts'
import { verify3 } from '../../verifiers/stage3.ts'

/** Throws InternalError with the violated invariant, the step or pass, and the schedule. */
export const verifyStages: StageObserver = (program, at) => {
  const { after } = at
  const where = after === null ? ' as written' : after.of === null ? '' : ` (${after.number} of ${after.of})`
  inPass(
    `${titleOf(program.stage, at)}${after === null ? '' : `, after ${after.what} ${after.name}`}${where}`,
    () => verifyStage(program, after?.what === 'pass' ? after.name : undefined),
  )
}

/** Cached per kernel, because most passes leave most kernels unchanged. */
const verified2 = memoize((kernel: Kernel2) => {
  verify2(kernel)
  return true
})

/** Verifies a single lowering; the error names the invariant only. Throws InternalError. */
export const verifyPass: Observer = (pass, result) => verifyStage(result, pass)

/** Title for messages: `stage 3 of kernel k under schedule s`. */
export const titleOf = (stage: 1 | 2 | 3, { kernel, schedule }: Omit<CompilationStage, 'after'>): string =>
  `stage ${stage} of kernel ${kernel}${schedule === null ? '' : ` under schedule ${schedule}`}`

/** Verifies a program. `pass`: the last pass that ran; all if omitted. Throws InternalError. */
export function verifyStage(program: Kernel1 | Kernel2 | Kernel3, pass?: string): void {
  switch (program.stage) {
    case 1:
      verify1(program)
      break
    case 2:
      verified2(program)
      break
    case 3: {
      // Invariants of a pass hold after this pass and all later ones.
      const done = new Set(pass === undefined ? PASSES : PASSES.slice(0, PASSES.indexOf(pass) + 1))
      verify3(program, (p) => done.has(p))
      break
    }
    default:
      unreachable(program)
  }
}
