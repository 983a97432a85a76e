/** Ranking thread: receives a space and data once, then batches of points, of which it processes its chunk. */
import { parentPort } from 'node:worker_threads'
import type { Point } from '../types.ts'
import { costsFrom, type RankingOrigin } from './origin.ts'
import { WorkSlots } from './work-slots.ts'

export interface RankingTask {
  /** Absent if it is the origin of the previous task. */
  readonly origin: RankingOrigin | undefined
  /** Points, and the shared memory of their `WorkSlots`; absent if the thread is only prepared. */
  readonly work: { readonly points: readonly Point[]; readonly memory: SharedArrayBuffer } | undefined
}

let costs: Promise<((point: Point) => number | null) | null> = Promise.resolve(null)

parentPort?.on('message', async ({ origin, work }: RankingTask) => {
  // A thread that cannot rebuild the space does not take part.
  if (origin) costs = costsFrom(origin).catch(() => null)
  const cost = await costs
  if (!cost || !work) return
  const slots = new WorkSlots(work.memory)
  for (let at = slots.take(); at >= 0; at = slots.take()) slots.settle(at, cost(work.points[at]!))
})
