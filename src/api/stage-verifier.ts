/**
 * The verifiers of the stages as observers: whoever wants to know which step or pass broke an invariant gives one to
 * `load` or `observe`. Nothing else imports this file, so that compilers without it do not load the verifiers.
 */
import { inPass, unreachable } from '../ast/diagnostic.ts'
import type { Kernel2, Plan } from '../ir/loops.ts'
import { memoize } from '../ir/memoize.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { PASSES } from '../lower/passes.ts'
import type { Observer } from '../lower/pipeline.ts'
import type { CompilationStage, StageObserver } from '../run/compile.ts'
import { verify1 } from '../verifiers/stage1.ts'
import { verify2 } from '../verifiers/stage2.ts'
import { verify3 } from '../verifiers/stage3.ts'

/** @throws InternalError which invariant of its stage a kernel breaks, after what, under which schedule */
export const verifyStages: StageObserver = (program, at) => {
  const { after } = at
  const where = after === null ? ' as written' : after.of === null ? '' : ` (${after.number} of ${after.of})`
  inPass(
    `${titleOf(program.stage, at)}${after === null ? '' : `, after ${after.what} ${after.name}`}${where}`,
    () => verifyStage(program, after?.what === 'pass' ? after.name : undefined),
  )
}

/** Most passes leave most kernels as they are. */
const verified2 = memoize((kernel: Kernel2) => {
  verify2(kernel)
  return true
})

/** The same, naming the invariant alone, to observe a single lowering. @throws InternalError */
export const verifyPass: Observer = (pass, result) => verifyStage(result, pass)

/** `stage 3 of kernel k under schedule s`. */
export const titleOf = (stage: 1 | 2 | 3, { kernel, schedule }: Omit<CompilationStage, 'after'>): string =>
  `stage ${stage} of kernel ${kernel}${schedule === null ? '' : ` under schedule ${schedule}`}`

/** `pass`: the latest; all if left out. @throws InternalError */
export function verifyStage(program: Kernel1 | Kernel2 | Plan, pass?: string): void {
  switch (program.stage) {
    case 1:
      verify1(program)
      break
    case 2:
      verified2(program)
      break
    case 3: {
      // Each pass stands for what it reaches and for all before it.
      const done = new Set(pass === undefined ? PASSES : PASSES.slice(0, PASSES.indexOf(pass) + 1))
      verify3(program, (p) => done.has(p))
      break
    }
    default:
      unreachable(program)
  }
}
