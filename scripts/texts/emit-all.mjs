/** Emits the code of many `.spt` files in several processes. */
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

/** As in vitest.config.ts: short-lived trees die young, and most code is too short-lived to be optimised early. */
const FLAGS = [
  '--min-semi-space-size=128',
  '--max-semi-space-size=128',
  '--single-threaded-gc',
  '--interrupt-budget=540672',
]

/**
 * Rows of all files, in no particular order.
 * @param options - `root`: a built checkout; `wanted`: `KERNEL.SCHEDULE TARGET`, or `TARGET`, of texts that are returned;
 *   `seconds`: a time limit for each process
 */
export async function emitAll(
  files,
  { root = '.', wanted, env, seconds, jobs = availableParallelism() } = {},
) {
  const queue = [...files]
  const rows = []
  const work = () =>
    new Promise((done, fail) => {
      const child = fork(join(import.meta.dirname, 'emit.mjs'), [root], {
        execArgv: FLAGS,
        ...(env ? { env } : {}),
        ...(seconds ? { timeout: seconds * 1000, killSignal: 'SIGKILL' } : {}),
      })
      child.on('message', ({ rows: found, file, error }) => {
        if (error) fail(new Error(`${file}: ${error}`))
        if (found) rows.push(...found)
        const next = queue.shift()
        if (next) child.send({ file: next, wanted })
        else child.disconnect()
      })
      child.on('exit', (code) => (code === 0 ? done() : fail(new Error(`a process ended with ${code}`))))
    })
  await Promise.all(Array.from({ length: Math.min(jobs, files.length) }, work))
  return rows
}
