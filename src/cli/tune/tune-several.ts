/** `spt tune` on several matrices and sizes. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { TuneProgress } from '../../search/tune/index.ts'
import type { KernelSpace } from '../../search/types.ts'
import { EXIT } from '../output/failure.ts'
import { writeTable } from './generalise-option.ts'
import { spaceOf } from './space-option.ts'
import { defaultKeptText, tuneAllJson, tuneAllReport } from './tune-all-report.ts'
import type { TuneFiles } from './tune-cases.ts'
import {
  dataName,
  inputsOf,
  priorOf,
  progressReporter,
  queueOf,
  reportOnFailure,
  sharedFiles,
  type Tuning,
  writeOutFile,
  writeWrongResults,
} from './tuning.ts'

export async function tuneSeveral(tuning: Tuning, cases: readonly TuneFiles[]): Promise<number> {
  const { call, kernel, device, options } = tuning
  const { tuneAll } = await import('../../search/tune/cases/tune-all.ts')
  const report = progressReporter(call)
  let latest:
    | { readonly name: string; readonly search: TuneProgress; readonly space: KernelSpace<Kernel> }
    | undefined
  let space: KernelSpace<Kernel> | undefined
  const search = tuneAll(kernel, {
    ...options,
    // Inputs are read when their case starts, because they may be large.
    cases: cases.map((c) => ({
      name: c.name,
      group: c.group,
      data: dataName(c),
      inputs: () => inputsOf(tuning, c),
      files: sharedFiles(c),
    })),
    device,
    space: async (inputs) => {
      space = await spaceOf(call, kernel, device, inputs)
      return space
    },
    prior: (space, inputs) => priorOf(tuning, space, inputs),
    queue: await queueOf(tuning),
    onProgress({ case: name, at: index, of: count, search }) {
      tuning.onSearchStart()
      if (search && space) latest = { name, search, space }
      report(search, `${name} (${index} of ${count}): `)
    },
  })
  const result = await reportOnFailure(tuning, search, () => latest)
  call.io.progress?.('')
  for (const { name, rejection } of result.cases)
    if (rejection) call.io.err(`warning: ${name} is left out: ${rejection.message} [${rejection.code}]\n`)
  // Printed before files are written, because writing may fail.
  call.io.out((call.flag('json') ? tuneAllJson : tuneAllReport)(kernel, device.name, result))
  await writeWrongResults(tuning, result.wrong)
  const stored = await writeTable(tuning, cases, result)
  await writeOutFile(
    tuning,
    result.verdict === 'default' ? defaultKeptText(kernel, result) : (stored ?? result.schedule?.text),
  )
  return result.verdict ? EXIT.ok : EXIT.failed
}
