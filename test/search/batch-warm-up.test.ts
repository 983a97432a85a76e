/** A batch waits for its first candidate until one was measured. */
import { expect, test } from 'vitest'
import type { Candidate } from '../../src/search/evaluate/evaluator.ts'
import { evaluateFirstAlone } from '../../src/search/tune/remote-evaluator.ts'
import { measured } from './outcomes.ts'

test('the first candidate is settled before others begin; later all are evaluated together', async () => {
  const log: string[] = []
  const evaluate = evaluateFirstAlone(async (asked) => {
    log.push(`begin ${asked.map((a) => a.point.a).join(' ')}`)
    for (const { point, settle } of asked)
      settle(point.a === 0 ? { status: 'rejected', code: 'x/y', message: '' } : measured(Number(point.a)))
  })
  const batch = (...values: number[]) =>
    evaluate(
      values.map((a, at): Candidate => {
        const settle: Candidate['settle'] = (o) => void log.push(`${at} ${o.status}`)
        return { point: { a }, share: 1, kernel: undefined as never, settle }
      }),
    )
  await batch(0, 1)
  await batch(2, 3, 4)
  await batch(5, 6)
  expect(log).toEqual([
    'begin 0',
    '0 rejected',
    'begin 1',
    '1 measured',
    'begin 2 3 4',
    '0 measured',
    '1 measured',
    '2 measured',
    'begin 5 6',
    '0 measured',
    '1 measured',
  ])
})
