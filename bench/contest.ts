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

/**
 * Two entries alone, in the order a b b a, `rounds` times after warming up: the median over rounds of a's time over b's.
 * What is neighbouring in time meets the same machine, so this is steadier than the ratio of two medians.
 */
export async function duel(
  a: () => number | Promise<number>,
  b: () => number | Promise<number>,
  rounds: number,
): Promise<number> {
  const ratios: number[] = []
  for (let k = -2; k < rounds; k++) {
    const a1 = await a()
    const b1 = await b()
    const b2 = await b()
    const a2 = await a()
    if (k >= 0) ratios.push((a1 + a2) / (b1 + b2))
  }
  return median(ratios)
}
