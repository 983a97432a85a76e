/** `spt tune` on several matrices, and sizes. */
import type { Kernel } from '../../api/kernel.ts'
import type { TuneProgress } from '../../search/tune/index.ts'
import type { KernelSpace } from '../../search/types.ts'
import { EXIT } from '../failure.ts'
import { spaceOf } from './space-option.ts'
import type { TuneFiles } from './tune-cases.ts'
import { leftUnasked, tunedAllJson, tunedAllReport } from './tuned-all.ts'
import {
  dataName,
  inputsOf,
  priorOf,
  progressReporter,
  queueOf,
  reportWrong,
  sharedFiles,
  type Tuning,
  toldUntilThen,
  writeOut,
} from './tuning.ts'

export async function tuneSeveral(tuning: Tuning, cases: readonly TuneFiles[]): Promise<number> {
  const { call, kernel, device, options } = tuning
  const { tuneAll } = await import('../../search/tune/tune-all.ts')
  const report = progressReporter(call)
  let last:
    | { readonly name: string; readonly search: TuneProgress; readonly space: KernelSpace<Kernel> }
    | undefined
  let space: KernelSpace<Kernel> | undefined
  const searched = tuneAll(kernel, {
    ...options,
    // Large ones are read when it is their turn.
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
    onProgress({ case: name, at, of, search }) {
      tuning.searching()
      if (search && space) last = { name, search, space }
      report(search, `${name} (${at} of ${of}): `)
    },
  })
  const result = await toldUntilThen(tuning, searched, () => last)
  call.io.progress?.('')
  for (const { name, refused } of result.cases)
    if (refused) call.io.err(`warning: ${name} has no part in it: ${refused.message} [${refused.code}]\n`)
  // First: a disk may be full.
  call.io.out((call.flag('json') ? tunedAllJson : tunedAllReport)(kernel, device.name, result))
  await reportWrong(tuning, result.wrong)
  await writeOut(tuning, result.verdict === 'unasked' ? leftUnasked(kernel, result) : result.schedule?.text)
  return result.verdict ? EXIT.ok : EXIT.failed
}
