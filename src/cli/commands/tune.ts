import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Kernel } from '../../api/kernel.ts'
import type { SptProgram } from '../../api/program.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { guarded } from '../../io/node-files.ts'
import { devices } from '../../node.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { costModel, costPrior, predictor } from '../../search/cost-model.ts'
import { STRATEGIES } from '../../search/strategies/index.ts'
import type { WrongResult } from '../../search/tally.ts'
import type { TuneOptions } from '../../search/tune/index.ts'
import { longName } from '../args.ts'
import type { Call, CommandSpec } from '../command.ts'
import { EXIT } from '../failure.ts'
import { BIND, KERNEL, SEED, TRUST } from '../options.ts'
import { checkNames, given, numbers, readInputs } from '../run/bind-options.ts'
import { SPACE, spaceOf } from '../run/space-option.ts'
import { idleOf, work } from '../run/tune-worker.ts'
import { progressLine, tuneJson, tuneReport, winner } from '../run/tuned.ts'
import { chosenKernel, loadFile, within } from '../scheduled-kernel.ts'
import { misused } from '../usage.ts'

const USUAL_TRIALS = 64
const MOST = 1_000_000
const MOST_MINUTES = 7 * 24 * 60

export const tune: CommandSpec = {
  name: 'tune',
  args: 'FILE | --worker URL',
  count: [0, 1],
  summary: 'Search for the fastest schedule of a kernel on data',
  options: [
    KERNEL,
    BIND,
    { flags: '--size <NAME=N>', about: 'A size or a scalar', repeats: true },
    { flags: '--device <D>', about: 'cpu, webgpu or cuda (default: cpu)' },
    {
      ...SPACE,
      about: `${SPACE.about} (default: cpu_space or gpu_space where there is one, else sketches)`,
    },
    { flags: '--trials <N>', about: `Points that are measured at most (default: ${USUAL_TRIALS})` },
    { flags: '--minutes <M>', about: 'Ends it after that' },
    {
      flags: '--strategy <S>',
      about: `${Object.keys(STRATEGIES).join(', ')} (default: model where there is one for the device, else surrogate)`,
    },
    { ...SEED, about: 'Of random data, and of what the strategy draws (default: 0)' },
    { flags: '--db <FILE>', about: 'Keep trials in this file of records', file: 'write' },
    { flags: '--resume', about: 'With --db: what it holds of the same study is not measured again' },
    { flags: '--out <FILE>', about: 'Write the fastest schedule as .spt', file: 'write' },
    {
      flags: '--bugs <FOLDER>',
      about: 'Where results that differ from the reference are written (default: .)',
    },
    {
      flags: '--queue <URL>',
      about: 'Workers do the trials: redis://HOST:PORT, redis://:PASSWORD@HOST:PORT',
    },
    {
      flags: '--worker <URL>',
      about:
        'Without FILE: do trials of that server on this device, until Ctrl-C; those of a study whose device, driver and compiler are these',
    },
    {
      flags: '--idle <S>',
      about:
        'With --worker: end after S seconds without a trial. With --queue: give up after S seconds without a worker (default: 60)',
    },
    { flags: '--data-root <DIR>', about: 'With --worker: files of data lie in this folder and nowhere else' },
    { flags: '--json', about: 'One JSON object instead of the report; times in milliseconds' },
    ...TRUST,
  ],
  notes: [
    'Every candidate is compared with the reference before it is measured. The fastest are measured again at the end, against\nwhat runs unasked (standard), the kernel as written, and its sparse tensors stored dense. Ctrl-C ends it with the best so far.',
  ],
  examples: [
    'spt tune kernel.spt --bind A=graph.mtx --size d=64 --trials 100',
    'spt tune kernel.spt --bind A=graph.mtx --size d=64 --device cuda --queue redis://HOST:6379',
    'spt tune --worker redis://HOST:6379 --device cuda --idle 600',
    'spt tune kernel.spt --bind A=graph.mtx --size d=64 --device cuda --minutes 5 --db study.db --resume --out fast.spt',
  ],
  async run(call) {
    const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const server = call.one('worker')
    if (server !== undefined) return work(call, server, kind, tune.options.map(longName))
    checkUse(call)
    const trials = call.integer('trials', 1, MOST)
    const minutes = call.integer('minutes', 1, MOST_MINUTES)
    const named = call.one('strategy')
    const { files, seed } = given(call)
    const params = numbers(call)
    const program = await loadFile(call.args[0]!, call)
    return within(program, async () => {
      const kernel = chosenKernel(program, call)
      checkNames(kernel.source, files.keys(), params.keys())
      const inputs = {
        tensors: await readInputs(kernel.source, files, params),
        params: Object.fromEntries(params),
        seed,
      }
      const device = await devices[kind]()
      const stop = new AbortController()
      const interrupt = (): void => stop.abort()
      process.once('SIGINT', interrupt)
      const { openRecords } = await import('../../search/records/index.ts')
      const { tune: tuned } = await import('../../search/tune/index.ts')
      const db = call.one('db')
      const records = db === undefined ? undefined : await openRecords(db)
      try {
        const space = await spaceOf(call, kernel, device, inputs)
        const modelled = costModel(kind) !== null && (named === undefined || named === 'model')
        const result = await tuned(kernel, {
          space,
          inputs,
          device,
          trials: trials ?? (minutes === undefined ? USUAL_TRIALS : undefined),
          seconds: minutes === undefined ? undefined : 60 * minutes,
          strategy: named,
          prior: modelled ? costPrior(space, predictor(kernel, { device: kind, inputs })) : undefined,
          seed,
          records,
          resume: call.flag('resume'),
          signal: stop.signal,
          reopen: () => devices[kind](),
          queue: await queueOf(call, program, files),
          onProgress: (p) => call.io.progress?.(progressLine(p)),
        })
        call.io.progress?.('')
        for (const [k, bug] of result.wrong.entries()) await report(call, kernel, kind, bug, k)
        const out = call.one('out')
        if (out !== undefined && result.best)
          await guarded(out, 'write', () => writeFile(out, winner(result.best!.kernel)))
        call.io.out((call.flag('json') ? tuneJson : tuneReport)(kernel, device.name, space.name, result))
        return result.best ? EXIT.ok : EXIT.failed
      } finally {
        process.off('SIGINT', interrupt)
        records?.close()
        await device.dispose()
      }
    })
  },
}

/** @throws UsageError where a file is missing, or what is said of workers is said to nobody */
function checkUse(call: Call): void {
  const { command } = call
  if (call.args.length === 0)
    misused({ command, message: 'a file is missing', expected: 'spt tune FILE, or spt tune --worker URL' })
  if (call.one('data-root') !== undefined)
    misused({
      command,
      message: '--data-root is of workers',
      expected: 'spt tune --worker URL --data-root DIR',
    })
  if (call.one('idle') !== undefined && call.one('queue') === undefined)
    misused({
      command,
      message: '--idle says how long is waited for workers',
      expected: '--queue URL --idle S',
    })
}

/** Files are those of the workers, by the same paths. */
async function queueOf(
  call: Call,
  program: SptProgram,
  files: ReadonlyMap<string, string>,
): Promise<TuneOptions['queue']> {
  const url = call.one('queue')
  if (url === undefined) return undefined
  const { shareProgram } = await import('../../search/studies/index.ts')
  return {
    url,
    program: shareProgram(program),
    tensors: Object.fromEntries([...files].map(([name, file]) => [name, { file: resolve(file) }])),
    idleSeconds: idleOf(call, 1),
    onNote: (line) => call.io.err(`${line}\n`),
  }
}

/** A candidate whose result differs, so that it can be looked into. */
async function report(
  call: Call,
  kernel: Kernel,
  kind: DeviceKind,
  bug: WrongResult,
  k: number,
): Promise<void> {
  const path = join(call.one('bugs') ?? '.', `spt-bug-${kernel.name}-${k + 1}.json`)
  const all = {
    kernel: kernel.name,
    file: call.args[0],
    device: kind,
    bind: call.many('bind'),
    size: call.many('size'),
    ...bug,
  }
  await guarded(path, 'write', () => writeFile(path, `${JSON.stringify(all, null, 2)}\n`))
  call.io.err(`warning: a candidate differs from the reference: ${path}\n`)
}
