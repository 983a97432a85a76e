/** Warm-up by a kernel's own times: a host compiles loops while they run, and its first runs take up to a hundred times as long. */

/** A run that takes less than this share of the least before it shows that the kernel is still getting faster. */
const FALLS = 0.9
/** Runs and milliseconds without one after which a kernel is warm: compilers work in the background for about that long. */
const STEADY = { runs: 8, milliseconds: 30 } as const
/** Warm-up limits: milliseconds for slow kernels, runs for short ones. */
const MOST = { runs: 300, milliseconds: 300 } as const

/**
 * Runs a kernel until its times stop falling.
 * @param run milliseconds of one run
 * @returns the times since they last fell, at least two
 */
export async function warmRuns(run: () => Promise<number>): Promise<readonly number[]> {
  let times: number[] = []
  let level = Number.POSITIVE_INFINITY
  let since = 0
  const isWarm = (): boolean =>
    times.length > 1 &&
    (since >= MOST.milliseconds ||
      times.length > MOST.runs ||
      (times.length > STEADY.runs && since >= STEADY.milliseconds))
  while (!isWarm()) {
    const time = await run()
    if (time < FALLS * level) [times, level, since] = [[], time, 0]
    else since += time
    times.push(time)
  }
  return times
}
