import { existsSync } from 'node:fs'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { installPackageFiles } from '../../node-programs.ts'
import { STRATEGIES } from '../../search/strategies/index.ts'
import { type Call, type CommandSpec, longName } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { BIND, DEVICE, KERNEL, SEED, TRUST } from '../arguments/options.ts'
import { checkWritable, checkWritableFolder } from '../arguments/paths.ts'
import { SPACE } from '../arguments/schedule-call.ts'
import { checkNames } from '../run/bind-options.ts'
import { checkImportable, checkSelfContained } from '../run/out-file.ts'
import { parseFile, programFrom, selectKernel, withSourcesOf } from '../scheduled-kernel.ts'
import { checkGeneralise } from '../tune/generalise-option.ts'
import { casesOf } from '../tune/tune-cases.ts'
import { tuneOne, tuneSeveral } from '../tune/tune-several.ts'
import { runTuneWorker } from '../tune/tune-worker.ts'
import { budgetOf, DEFAULT_TRIALS, withTuning } from '../tune/tuning.ts'

export const tune: CommandSpec = {
  name: 'tune',
  args: 'FILE | --worker DB',
  count: [0, 1],
  summary: 'Search for the fastest schedule of a kernel on data',
  options: optionTable`
    ${KERNEL}
    ${BIND}  Data of a buffer or an axis; with several files (A=folder/*.mtx, or repeated --bind), the
      search covers all files
    --size <NAME=N>  [repeats]  A size or a scalar; several values are combined with each file
    ${DEVICE}
    ${SPACE}  ${SPACE.about} (default: cpu_space or gpu_space if declared, otherwise sketches)
    --trials <N>  Maximum number of points to try, including illegal ones, for each file and size (default:
      ${DEFAULT_TRIALS}; unlimited if only --minutes is given)
    --minutes <M>  Time limit of the search: 5, 0.5
    --strategy <S>  ${Object.keys(STRATEGIES).join(', ')} (default: model if the device has a cost model,
      otherwise surrogate)
    ${SEED}  Seed of random data and of the strategy (default: 0)
    --no-libraries  With one matrix on cuda: do not measure the routines of vendor libraries
    --db <FILE>  [update]  Store trials in this file of records; a missing folder is created
    --resume  Reuse recorded trials of the same study (default of --db: the user's records)
    --out <FILE>  [write]  Write the fastest schedule or the dispatch rule as a program (.spt) that imports
      the kernel
    --generalise <FILE>  [update]  With several matrices or sizes: write the rules to this dispatch table
      (.spt), for \`choose from\`; rules for other devices are kept
    --whole  [with out]  With --out: write a self-contained file that includes the source of FILE
    --html <FILE>  [write]  With one matrix: write a self-contained page with charts of the results
    --bugs <FOLDER>  Folder for results that differ from the reference; a missing folder is created
      (default: .)
    --queue <DB>  [update]  Distribute the trials to workers through this file of records, which all
      machines share
    --worker <DB>  [update]  Without FILE: run trials from this file until Ctrl-C, for studies with the same
      device, driver and compiler
    --idle <S>  [with queue worker]  With --worker: stop after S seconds without a trial. With --queue: stop
      after S seconds without a worker (default: 60)
    --data-root <DIR>  [with worker]  With --worker: read data files only from this folder
    --json  Print one JSON object; times in milliseconds
    ${TRUST}
  `,
  notes: [
    'Every candidate is compared with the reference before it is measured. The fastest are measured again at the end, next to\nthe default schedule, the unscheduled kernel, a version with dense storage, and routines of installed\nlibraries (cuSPARSE, cuBLAS). Ctrl-C stops the search and reports the best result so far.',
    'With several files, the fastest schedules of each file are measured on all files. From the results, the command derives\na dispatch rule over sizes and statistics, and reports its time on held-out files next to the best single schedule.\nThe rule is used only if it is faster.',
  ],
  examples: [
    'spt tune kernel.spt --bind A=graph.mtx --size d=64 --trials 100',
    'spt tune kernel.spt --bind A=graph.mtx --size d=64 --device cuda --queue /shared/queue.db',
    "spt tune kernel.spt --bind 'A=graphs/*.mtx' --size d=32 --size d=128 --trials 64 --out tuned.spt",
    'spt tune --worker /shared/queue.db --device cuda --idle 600',
    'spt tune kernel.spt --bind A=graph.mtx --size d=64 --device cuda --minutes 5 --db study.db --resume --out fast.spt --html report.html',
  ],
  async run(call) {
    installPackageFiles()
    const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const queue = call.one('worker')
    if (queue !== undefined) return runTuneWorker(call, queue, kind, tune.options.map(longName))
    if (call.args.length === 0)
      call.reject('a file is missing', { expected: 'spt tune FILE, or spt tune --worker DB' })
    const budget = budgetOf(call)
    const cases = await casesOf(call)
    await checkOutputs(call, cases.length)
    const parsed = await parseFile(call.args[0]!, call)
    const out = call.one('out')
    if (out !== undefined && call.flag('whole')) checkSelfContained(call, parsed)
    else if (out !== undefined) checkImportable(call, parsed, out)
    const program = await programFrom(parsed, call)
    return withSourcesOf(program, async () => {
      const kernel = selectKernel(program, call)
      for (const { files, params } of cases)
        checkNames(kernel.source, files.keys(), params.keys(), kernel.formatInputs())
      await checkGeneralise(call, kernel.name, cases)
      return withTuning({ call, parsed, program, kernel, kind, budget }, (t) =>
        cases.length === 1 ? tuneOne(t, cases[0]!) : tuneSeveral(t, cases),
      )
    })
  },
}

/** Checks before the search that its result can be written. @throws UsageError, SptError `io/…` */
async function checkOutputs(call: Call, cases: number): Promise<void> {
  const [out, html] = [call.one('out'), call.one('html')]
  if (html !== undefined && cases > 1)
    call.reject(`--html reports one case (one matrix and size); there are ${cases} cases`, {
      expected: 'a single file per buffer, and a single value per size',
      hint: 'omit --html; --json contains every case',
    })
  if (out !== undefined && !/\.spt$/i.test(out) && !out.startsWith('/dev/'))
    call.reject(`--out ${out} is not the name of a program`, {
      expected: 'a name that ends with .spt',
      hint: 'the winner as TypeScript is printed; --json has the steps as data',
    })
  for (const path of [out, html]) if (path !== undefined) await checkWritable(path)
  const bugs = call.one('bugs')
  if (bugs !== undefined && existsSync(bugs)) await checkWritableFolder(bugs, 'spt-bug.json')
}
