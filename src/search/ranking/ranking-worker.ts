/** Ranking thread: receives a space and data once, then batches of points, of which it processes its chunk. */
import { parentPort } from 'node:worker_threads'
import type { Point } from '../types.ts'
import { costsFrom, type RankingOrigin } from './origin.ts'
import { WorkSlots } from './work-stealing.ts'

export interface Share {
  readonly points: readonly Point[]
  /** Shared memory of `Shares`. */
  readonly memory: SharedArrayBuffer
  readonly thread: number
}

export interface RankingTask {
  /** Absent if it is the origin of the previous task. */
  readonly origin?: RankingOrigin
  readonly share?: Share
}

let costs: Promise<((point: Point) => number | null) | null> = Promise.resolve(null)

parentPort?.on('message', async ({ origin, share }: RankingTask) => {
  // A thread that cannot rebuild the space does not take part.
  if (origin) costs = costsFrom(origin).catch(() => null)
  const cost = await costs
  if (!cost || !share) return
  const { points, memory, thread } = share
  const shares = new WorkSlots(memory)
  for (let at = shares.take(thread); at >= 0; at = shares.take(thread)) shares.settle(at, cost(points[at]!))
})
