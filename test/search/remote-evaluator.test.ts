/** Trials on workers: outcomes that arrived are reported, also if the remaining trials fail. */
import { expect, test } from 'vitest'
import { type Kernel, load } from '../../src/node.ts'
import { space } from '../../src/search/spaces/function-space.ts'
import type { Collected } from '../../src/search/studies/queue.ts'
import type { RemoteTrials } from '../../src/search/studies/remote-trials.ts'
import { RemoteEvaluator } from '../../src/search/tune/remote-evaluator.ts'
import type { Outcome } from '../../src/search/types.ts'
import { PROGRAM } from '../cli/support.ts'
import { measured } from './outcomes.ts'

test('outcomes are reported as they arrive, each with its worker', async () => {
  const kernel = (await load(PROGRAM)).kernel('mul')
  const factors = space('factors', kernel, (p) =>
    p.pick('by', {
      two: (k: Kernel) => k.split('i', 2),
      four: (k: Kernel) => k.split('i', 4),
      eight: (k: Kernel) => k.split('i', 8),
    }),
  )
  const came = (ms: number, isReported = true): Collected => ({
    record: { study: 's', point: {}, outcome: measured(ms), time: 1, worker: `w${ms}` },
    report: isReported ? { outcome: measured(ms), worker: `w${ms}`, time: 1 } : null,
  })
  const trials: Pick<RemoteTrials, 'run'> = {
    run: async (_: unknown, __: unknown, onDone: (at: number, done: Collected) => void) => {
      onDone(2, came(3))
      onDone(1, came(2, false))
      throw new Error('nobody is left')
    },
  }
  const evaluator = new RemoteEvaluator(factors, trials as unknown as RemoteTrials)
  const asked = ['two', 'four', 'eight'].map((by) => ({ point: { by }, share: 1 }))
  const told: (readonly [number, Outcome, string | undefined])[] = []
  const settle = (at: number, outcome: Outcome): void =>
    void told.push([at, outcome, evaluator.factsOf(asked[at]!.point)?.worker])
  await expect(evaluator.evaluate(asked, { report: settle })).rejects.toThrow('nobody is left')
  expect(told).toEqual([[2, measured(3), 'w3']])
})
