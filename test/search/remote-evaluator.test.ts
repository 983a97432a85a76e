/** Trials on workers: outcomes that arrived are reported, also if the remaining trials fail. */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import type { Candidate } from '../../src/search/evaluate/evaluator.ts'
import type { Collected } from '../../src/search/studies/queue.ts'
import { evaluateOnWorkers } from '../../src/search/tune/remote-evaluator.ts'
import type { Outcome } from '../../src/search/types.ts'
import { PROGRAM } from '../cli/support.ts'
import { measured } from './outcomes.ts'

test('outcomes are reported as they arrive, each with its worker', async () => {
  const kernel = (await load(PROGRAM)).kernel('mul')
  const came = (ms: number, isReported = true): Collected => ({
    record: { study: 's', point: {}, outcome: measured(ms), time: 1, worker: `w${ms}` },
    hasFailed: !isReported,
  })
  const evaluate = evaluateOnWorkers({
    run: async (trials, _, onDone) => {
      expect(trials.map((t) => t.trace)).toEqual([2, 4, 8].map((by) => kernel.split('i', by).toJSON()))
      onDone!(2, came(3))
      onDone!(1, came(2, false))
      throw new Error('nobody is left')
    },
  })
  const told: (readonly [number, Outcome, string | undefined])[] = []
  const asked = [2, 4, 8].map(
    (by, at): Candidate => ({
      point: { by },
      share: 1,
      kernel: kernel.split('i', by),
      settle: (outcome, facts) => void told.push([at, outcome, facts?.worker]),
    }),
  )
  await expect(evaluate(asked)).rejects.toThrow('nobody is left')
  expect(told).toEqual([[2, measured(3), 'w3']])
})
