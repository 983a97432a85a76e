/** Untimed runs: V8 compiles a kernel during its first ones, and drivers load it. */

/** A kernel counts as warm after this many milliseconds or runs. */
const WARM_MS = 100
const WARM_RUNS = 50

export interface WarmUp {
  /** Milliseconds of the first run. */
  readonly first: number
  readonly runs: number
}

export async function warmUp(run: () => Promise<void>, now = () => performance.now()): Promise<WarmUp> {
  const start = now()
  await run()
  const first = now() - start
  let runs = 1
  for (; runs < WARM_RUNS && now() - start < WARM_MS; runs++) await run()
  return { first, runs }
}
