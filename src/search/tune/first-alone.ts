/** Evaluates the first point of a search alone, so that a search that is interrupted early has a result. */
import type { PointEvaluator } from '../evaluate/evaluator.ts'

/** @returns The same evaluation, except that batches wait for their first point until a point was measured */
export function evaluateFirstAlone(evaluate: PointEvaluator['evaluate']): PointEvaluator['evaluate'] {
  let isMeasured = false
  return async (points, context = {}) => {
    if (isMeasured || points.length < 2) return evaluate(points, context)
    const first = await evaluate(points.slice(0, 1), context)
    isMeasured = first.some((o) => o.status === 'measured')
    const settle = (n: number, outcome: (typeof first)[number]): void => context.report?.(1 + n, outcome)
    return [...first, ...(await evaluate(points.slice(1), { ...context, report: settle }))]
  }
}
