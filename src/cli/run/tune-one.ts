/** `spt tune` on one matrix. */
import { EXIT } from '../failure.ts'
import { spaceOf } from './space-option.ts'
import type { TuneFiles } from './tune-cases.ts'
import { progressLine, tuneJson, tuneReport, winner } from './tuned.ts'
import { inputsOf, priorOf, queueOf, reportWrong, sharedFiles, type Tuning, writeOut } from './tuning.ts'

export async function tuneOne(tuning: Tuning, files: TuneFiles): Promise<number> {
  const { call, kernel, device, options } = tuning
  const { tune } = await import('../../search/tune/index.ts')
  const inputs = await inputsOf(tuning, files)
  const space = await spaceOf(call, kernel, device, inputs)
  const queue = await queueOf(tuning)
  const result = await tune(kernel, {
    ...options,
    space,
    inputs,
    device,
    prior: priorOf(tuning, space, inputs),
    queue: queue && { ...queue, tensors: sharedFiles(files) },
    onProgress: (p) => call.io.progress?.(progressLine(p)),
  })
  call.io.progress?.('')
  await reportWrong(tuning, result.wrong)
  await writeOut(call, result.best ? winner(result.best.kernel) : undefined)
  call.io.out((call.flag('json') ? tuneJson : tuneReport)(kernel, device.name, space.name, result))
  return result.best ? EXIT.ok : EXIT.failed
}
