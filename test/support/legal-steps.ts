/** A kernel with those of the steps that are legal, one after the other. */
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import type { Step } from '../../src/schedule/steps/resolve.ts'
import type { Joined } from './join-gen.ts'

export interface Made {
  readonly compilation: Compilation
  /** What was accepted, with the loops it makes. */
  readonly steps: readonly string[]
  readonly refused: readonly string[]
}

/** A schedule of one step alone may act on coordinates. */
const ofLoops = (s: Step): Step =>
  s.stage === 1 && s.step.kind === 'reorder' ? { stage: 2, step: s.step } : s

/** The kernel with those of the steps that are legal. */
export function made({ text, steps }: Pick<Joined, 'text' | 'steps'>, name = 'k'): Made {
  const schedules = steps.map((s, k) => `schedule ${name}.s${k} { ${s} }`)
  const kernel = parseProgram(`${text}\n${schedules.join('\n')}`).kernel(name)
  const quick = keeping(kernel, text, steps, false)
  try {
    void quick.compilation.plan
    return quick
  } catch {
    // One of them cannot be lowered.
    return keeping(kernel, text, steps, true)
  }
}

/** Of the steps those that are legal; `lowered`: each of which can be lowered, too. */
function keeping(kernel: Kernel, text: string, steps: readonly string[], lowered: boolean): Made {
  let { compilation } = kernel
  const kept: string[] = []
  const refused: string[] = []
  for (const [k, step] of steps.entries())
    try {
      const next = kernel
        .steps(`s${k}`)
        .map(ofLoops)
        .reduce((c, s) => c.step(s), compilation)
      void next.loops
      if (lowered) void next.plan
      compilation = next
      kept.push(step)
    } catch (e) {
      if (!(e instanceof SptError) || !/^schedule\//.test(e.diagnostics[0]!.code))
        throw new Error(`${e instanceof Error ? e.stack : e}\n${[text, ...kept, step].join('\n')}`)
      refused.push(e.diagnostics[0]!.code)
    }
  return { compilation, steps: kept, refused }
}
