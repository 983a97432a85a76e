import { existsSync } from 'node:fs'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { STRATEGIES } from '../../search/strategies/index.ts'

import { type Call, type CommandSpec, longName } from '../command.ts'
import { BIND, DEVICE, KERNEL, SEED, TRUST } from '../options.ts'
import { checkWritable, checkWritableFolder } from '../paths.ts'
import { checkNames } from '../run/bind-options.ts'
import { checkImportable, checkWhole } from '../run/out-file.ts'
import { SPACE } from '../run/space-option.ts'
import { casesOf } from '../run/tune-cases.ts'
import { tuneOne } from '../run/tune-one.ts'
import { tuneSeveral } from '../run/tune-several.ts'
import { work } from '../run/tune-worker.ts'
import { budgetOf, USUAL_TRIALS, withTuning } from '../run/tuning.ts'
import { chosenKernel, parseFile, programFrom, within } from '../scheduled-kernel.ts'
import { misused } from '../usage.ts'

export const tune: CommandSpec = {
  name: 'tune',
  args: 'FILE | --worker URL',
  count: [0, 1],
  summary: 'Search for the fastest schedule of a kernel on data',
  options: [
    KERNEL,
    {
      ...BIND,
      about:
        'Data of a buffer, or of an axis; several files of one (A=folder/*.mtx, or given several times) are tuned on together',
    },
    {
      flags: '--size <NAME=N>',
      about: 'A size or a scalar; several values: each with each file',
      repeats: true,
    },
    DEVICE,
    {
      ...SPACE,
      about: `${SPACE.about} (default: cpu_space or gpu_space where there is one, else sketches)`,
    },
    {
      flags: '--trials <N>',
      about: `Points that are measured at most, of each file and size (default: ${USUAL_TRIALS}; with --minutes alone, as many as that gives time for)`,
    },
    { flags: '--minutes <M>', about: 'Ends it after that: 5, 0.5' },
    {
      flags: '--strategy <S>',
      about: `${Object.keys(STRATEGIES).join(', ')} (default: model where there is one for the device, else surrogate)`,
    },
    { ...SEED, about: 'Of random data, and of what the strategy draws (default: 0)' },
    {
      flags: '--no-libraries',
      about:
        "On one matrix, on cuda: leave out the routines of the vendor's libraries that compute the kernel",
    },
    {
      flags: '--db <FILE>',
      about: 'Keep trials in this file of records; its folder is made if it is missing',
      file: 'update',
    },
    {
      flags: '--resume',
      about:
        "What the records hold of the same study is not measured again (default of --db: the user's records)",
    },
    {
      flags: '--out <FILE>',
      about: 'Write the fastest schedule, or the choice, as a program (.spt) that imports the kernel',
      file: 'write',
    },
    { flags: '--whole', about: 'With --out: a file that needs no other, with the text of FILE' },
    {
      flags: '--html <FILE>',
      about: 'On one matrix: write what was found as a page with charts, which needs no network',
      file: 'write',
    },
    {
      flags: '--bugs <FOLDER>',
      about: 'Where results that differ from the reference are written; made if it is missing (default: .)',
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
    'Every candidate is compared with the reference before it is measured. The fastest are measured again at the end, against\nwhat runs unasked (standard), the kernel as written, its sparse tensors stored dense, and routines of libraries\n(cuSPARSE, cuBLAS) where they are installed. Ctrl-C ends it with the best so far.',
    'On several files the fastest of each are tried on all, and a choice by sizes and statistics is made of them: what it takes on\nfiles that it was made without is told beside the best single schedule, which stays where that is no worse.',
  ],
  examples: [
    'spt tune kernel.spt --bind A=graph.mtx --size d=64 --trials 100',
    'spt tune kernel.spt --bind A=graph.mtx --size d=64 --device cuda --queue redis://HOST:6379',
    "spt tune kernel.spt --bind 'A=graphs/*.mtx' --size d=32 --size d=128 --trials 64 --out tuned.spt",
    'spt tune --worker redis://HOST:6379 --device cuda --idle 600',
    'spt tune kernel.spt --bind A=graph.mtx --size d=64 --device cuda --minutes 5 --db study.db --resume --out fast.spt --html report.html',
  ],
  async run(call) {
    const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const server = call.one('worker')
    if (server !== undefined) return work(call, server, kind, tune.options.map(longName))
    checkUse(call)
    const budget = budgetOf(call)
    const cases = await casesOf(call)
    await checkWritten(call, cases.length)
    const parsed = await parseFile(call.args[0]!, call)
    const out = call.one('out')
    if (out !== undefined && call.flag('whole')) checkWhole(call, parsed)
    else if (out !== undefined) checkImportable(call, parsed, out)
    const program = await programFrom(parsed, call)
    return within(program, () => {
      const kernel = chosenKernel(program, call)
      for (const { files, params } of cases)
        checkNames(kernel.source, files.keys(), params.keys(), kernel.usedData())
      return withTuning({ call, parsed, program, kernel, kind, budget }, (t) =>
        cases.length === 1 ? tuneOne(t, cases[0]!) : tuneSeveral(t, cases),
      )
    })
  },
}

/** @throws UsageError for missing files, and for options of workers without workers */
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

/** Checks before the search that its result can be written. @throws UsageError, SptError `io/…` */
async function checkWritten(call: Call, cases: number): Promise<void> {
  const [out, html] = [call.one('out'), call.one('html')]
  if (html !== undefined && cases > 1)
    misused({
      command: call.command,
      message: `--html is of one matrix and size, and these are ${cases} cases`,
      expected: 'one file of each buffer, and one value of each size',
      hint: 'leave it out; --json has all of it as data',
    })
  if (out !== undefined && !/\.spt$/i.test(out) && !out.startsWith('/dev/'))
    misused({
      command: call.command,
      message: `--out ${out} is not the name of a program`,
      expected: 'a name that ends with .spt',
      hint: 'the winner as TypeScript is printed; --json has its steps as data',
    })
  for (const path of [out, html]) if (path !== undefined) await checkWritable(path)
  const bugs = call.one('bugs')
  if (bugs !== undefined && existsSync(bugs)) await checkWritableFolder(bugs, 'spt-bug.json')
}
