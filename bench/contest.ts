/** Functions that do the same work, timed against one another in one process. */
import { median } from './support.ts'

export interface Result {
  readonly name: string
  /** Milliseconds. */
  readonly median: number
  readonly best: number
}

/**
 * Runs all entries `repeats` times after warming up, interleaved and in alternating order, so that whatever else the
 * machine does falls on all of them alike. Each entry runs once and returns its time in milliseconds.
 */
export async function contest(
  entries: Readonly<Record<string, () => number | Promise<number>>>,
  repeats: number,
  warmUp = 3,
): Promise<Result[]> {
  const list = Object.entries(entries)
  const times = new Map<string, number[]>(list.map(([name]) => [name, []]))
  for (let k = -warmUp; k < repeats; k++)
    for (const [name, run] of k % 2 === 0 ? list : [...list].reverse()) {
      const ms = await run()
      if (k >= 0) times.get(name)!.push(ms)
    }
  return list.map(([name]) => {
    const ts = times.get(name)!
    return { name, median: median(ts), best: Math.min(...ts) }
  })
}

/** How long a synchronous function takes, in milliseconds. */
export const timed = (run: () => void) => (): number => {
  const start = performance.now()
  run()
  return performance.now() - start
}
