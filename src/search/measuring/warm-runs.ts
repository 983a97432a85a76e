/**
 * Warm-up by a kernel's own times: JavaScript engines compile loops while they run, so first runs take up to 100 times
 * as long.
 */

/** A run below this fraction of the minimum so far shows that the kernel is still getting faster. */
const FALL_RATIO = 0.9
/**
 * Number and milliseconds of runs without such a run after which a kernel is warm: background compilation takes about
 * that long.
 */
const STEADY = { runs: 8, milliseconds: 30 } as const
/** Warm-up limits: milliseconds for slow kernels, runs for short ones. */
const LIMITS = { runs: 300, milliseconds: 300 } as const

/**
 * Runs a kernel until its times stop falling.
 * @param run - Milliseconds of one run
 * @returns The times since the last fall, at least two
 */
export async function warmRuns(run: () => Promise<number>): Promise<readonly number[]> {
  let times: number[] = []
  let minimum = Number.POSITIVE_INFINITY
  let elapsed = 0
  const isWarm = (): boolean =>
    times.length > 1 &&
    (elapsed >= LIMITS.milliseconds ||
      times.length > LIMITS.runs ||
      (times.length > STEADY.runs && elapsed >= STEADY.milliseconds))
  while (!isWarm()) {
    const time = await run()
    if (time < FALL_RATIO * minimum) [times, minimum, elapsed] = [[], time, 0]
    else elapsed += time
    times.push(time)
  }
  return times
}
