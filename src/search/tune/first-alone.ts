/** Evaluates the first measured point of a search alone: one that is interrupted early has a result then. */
import type { Trier } from '../evaluate/evaluator.ts'

/** @returns the same evaluation, whose batches wait for their first point until one was measured */
export function firstAlone(evaluate: Trier['evaluate']): Trier['evaluate'] {
  let isMeasured = false
  return async (points, context = {}) => {
    if (isMeasured || points.length < 2) return evaluate(points, context)
    const first = await evaluate(points.slice(0, 1), context)
    isMeasured = first.some((o) => o.status === 'measured')
    const settle = (n: number, outcome: (typeof first)[number]): void => context.report?.(1 + n, outcome)
    return [...first, ...(await evaluate(points.slice(1), { ...context, report: settle }))]
  }
}
