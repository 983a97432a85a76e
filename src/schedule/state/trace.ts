/** Traces of loop steps as JSON. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { LOOP_STEPS } from '../primitives.ts'
import { type LoopStep, stepProblem } from '../steps/step-data.ts'

/** Returns a trace as JSON, without spans, which belong to a source text. */
export const traceToJson = (trace: readonly LoopStep[]): string =>
  JSON.stringify(trace.map(({ span: _, ...step }) => step))

/** Reads the output of `traceToJson`. Throws `SptError` (`schedule/bad-trace`) for any other text. */
export function traceFromJson(text: string): readonly LoopStep[] {
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch {
    data = undefined
  }
  if (!Array.isArray(data))
    return fail({
      code: 'schedule/bad-trace',
      message: 'this is not a trace of a schedule',
      expected: 'a list of steps as JSON',
    })
  data.forEach((s: unknown, k) => {
    const problem = stepProblem(s, LOOP_STEPS)
    if (problem)
      fail({
        ...problem,
        code: 'schedule/bad-trace',
        message: `step ${k + 1} of the trace: ${problem.message}`,
      })
  })
  return data as LoopStep[]
}
