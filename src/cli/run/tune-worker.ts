/** `spt tune --worker`: trials of studies that others published, one after the other, on this device. */
import type { DeviceKind } from '../../backends/target.ts'
import { devices } from '../../node.ts'
import type { Call } from '../command.ts'
import { EXIT } from '../failure.ts'
import { misused } from '../usage.ts'

/** What a worker is told besides the server; the rest comes with the studies. */
const OWN = ['worker', 'device', 'idle', 'data-root', 'no-instr']

/** Until it is told to end, or has been idle. Ends after the trial that it is at. */
export async function work(
  call: Call,
  url: string,
  kind: DeviceKind,
  all: readonly string[],
): Promise<number> {
  if (call.args.length > 0)
    misused({
      command: call.command,
      message: `--worker takes no file, and there is ${call.args[0]}`,
      expected: 'spt tune --worker URL',
      hint: 'studies bring their programs: spt tune FILE --queue URL publishes one',
    })
  for (const name of all)
    if (!OWN.includes(name) && (call.flag(name) || call.one(name) !== undefined))
      misused({
        command: call.command,
        message: `--${name} is not possible with --worker`,
        expected: OWN.map((n) => `--${n}`).join(', '),
        hint: 'studies bring what they are about: give it to spt tune FILE --queue URL',
      })
  const idleSeconds = idleOf(call, 0)
  const { runWorker, studyEvaluator } = await import('../../search/studies/index.ts')
  const device = await devices[kind]()
  const stop = new AbortController()
  const end = (): void => {
    if (!stop.signal.aborted) call.io.err('ends after the present trial\n')
    stop.abort()
  }
  const trials = studyEvaluator(device, {
    dataRoot: call.one('data-root'),
    instructions: call.flag('no-instr') ? false : undefined,
    reopen: () => devices[kind](),
  })
  process.once('SIGINT', end)
  process.once('SIGTERM', end)
  try {
    let done = 0
    const count = await runWorker(url, device, trials.evaluate, {
      signal: stop.signal,
      idleSeconds,
      onNote: (line) => call.io.err(`${line}\n`),
      onTrial: ({ kernel }, _, { outcome }) =>
        call.io.progress?.(`${++done} done, the last of ${kernel}: ${outcome.status}`),
    })
    call.io.progress?.('')
    call.io.out(`${count} trials done\n`)
    return EXIT.ok
  } finally {
    process.off('SIGINT', end)
    process.off('SIGTERM', end)
    await trials.close()?.dispose()
  }
}

const MOST_SECONDS = 10_000_000

/** `--idle` in seconds. */
export const idleOf = (call: Call, least: 0 | 1): number | undefined =>
  call.integer('idle', least, MOST_SECONDS)
