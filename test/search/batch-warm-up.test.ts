/** A batch waits for its first point until one was measured, and its outcomes keep their order. */
import { expect, test } from 'vitest'
import { evaluateFirstAlone } from '../../src/search/tune/remote-evaluator.ts'
import type { Outcome } from '../../src/search/types.ts'

test('the first point is settled before others begin; later all are evaluated together', async () => {
  const log: string[] = []
  const evaluate = evaluateFirstAlone(async (asked, { report } = {}) => {
    log.push(`begin ${asked.map((a) => a.point.a).join(' ')}`)
    const outcomes = asked.map(
      ({ point: { a } }): Outcome =>
        a === 0
          ? { status: 'rejected', code: 'x/y', message: '' }
          : { status: 'measured', timing: { median: Number(a), interval: null, samples: [Number(a)] } },
    )
    for (const [k, o] of outcomes.entries()) report?.(k, o)
    return outcomes
  })
  const batch = async (...values: number[]) => {
    const outcomes = await evaluate(
      values.map((a) => ({ point: { a }, share: 1 })),
      { report: (at, o) => log.push(`${at} ${o.status}`) },
    )
    return outcomes.map((o) => (o.status === 'measured' ? o.timing.median : 0))
  }
  expect(await batch(0, 1)).toEqual([0, 1])
  expect(await batch(2, 3, 4)).toEqual([2, 3, 4])
  expect(await batch(5, 6)).toEqual([5, 6])
  expect(log).toEqual([
    'begin 0',
    '0 rejected',
    'begin 1',
    '1 measured',
    'begin 2',
    '0 measured',
    'begin 3 4',
    '1 measured',
    '2 measured',
    'begin 5 6',
    '0 measured',
    '1 measured',
  ])
})
