/** `spt tune --worker`: runs trials of published studies on this device, one at a time. */
import type { DeviceKind } from '../../backends/target.ts'
import { devices } from '../../node.ts'
import type { SharedReport } from '../../search/studies/rebuild.ts'
import type { Point } from '../../search/types.ts'
import type { Call } from '../arguments/command.ts'
import { EXIT } from '../output/failure.ts'
import { ms } from './tune-report.ts'

type TrialReport = Pick<SharedReport, 'outcome' | 'duration'>

/** Options of a worker; all other options are part of a study. */
const WORKER_OPTIONS = ['worker', 'device', 'idle', 'data-root', 'no-instr']

/** Runs until it is stopped or idle; a trial in flight is completed. */
export async function runTuneWorker(
  call: Call,
  file: string,
  kind: DeviceKind,
  options: readonly string[],
): Promise<number> {
  if (call.args.length > 0)
    call.reject(`--worker takes no file, and there is ${call.args[0]}`, {
      expected: 'spt tune --worker DB',
      hint: 'studies contain their programs: to publish a study, spt tune FILE --queue DB',
    })
  for (const name of options)
    if (!WORKER_OPTIONS.includes(name) && (call.flag(name) || call.one(name) !== undefined))
      call.reject(`--${name} is not possible with --worker`, {
        expected: WORKER_OPTIONS.map((n) => `--${n}`).join(', '),
        hint: 'studies contain their options: pass this option to spt tune FILE --queue DB',
      })
  const idleSeconds = idleOption(call, 0)
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
    const count = await runWorker(file, device, trials.evaluate, {
      signal: stop.signal,
      idleSeconds,
      onNote: (line) => call.io.err(`${line}\n`),
      onTrial: ({ kernel }, { point }, report) =>
        call.io.err(`${new Date().toISOString()} ${++done}: ${trialText(kernel, point, report)}\n`),
    })
    call.io.out(`${count} trials done\n`)
    return EXIT.ok
  } finally {
    process.off('SIGINT', end)
    process.off('SIGTERM', end)
    await trials.close()?.dispose()
  }
}

/** A line of a worker's log. */
export function trialText(kernel: string, point: Point, { outcome: o, duration }: TrialReport): string {
  const result =
    o.status === 'measured'
      ? ms(o.timing.median)
      : o.status === 'bounded'
        ? `at most ${ms(o.atMost)}`
        : 'code' in o
          ? `${o.status} ${o.code}`
          : o.status
  const durationText = duration === undefined ? '' : `, took ${(duration / 1000).toFixed(1)} s`
  return `${kernel} ${JSON.stringify(point)}: ${result}${durationText}`
}

const MAX_IDLE_SECONDS = 10_000_000

/** `--idle` in seconds. */
export const idleOption = (call: Call, min: 0 | 1): number | undefined =>
  call.integer('idle', min, MAX_IDLE_SECONDS)
