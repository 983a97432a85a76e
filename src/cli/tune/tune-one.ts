/** `spt tune` on one matrix. */
import { type RunInputs, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { declaredOf } from '../../api/inputs/bound-values.ts'
import { randomInputs } from '../../api/inputs/random-inputs.ts'
import type { TuneProgress, TuneResult } from '../../search/tune/index.ts'
import { EXIT } from '../output/failure.ts'
import { spaceName, spaceOf } from './space-option.ts'
import type { TuneFiles } from './tune-cases.ts'
import { tuneJson, tuneText, winnerText } from './tune-report.ts'
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

export async function tuneOne(tuning: Tuning, files: TuneFiles): Promise<number> {
  const { call, kernel, device, options } = tuning
  const { tune } = await import('../../search/tune/index.ts')
  const inputs = await inputsOf(tuning, files)
  const space = await spaceOf(call, kernel, device, inputs)
  const queue = await queueOf(tuning)
  const html = call.one('html')
  const report = progressReporter(call)
  let latest: TuneProgress | undefined
  const search = tune(kernel, {
    ...options,
    space,
    inputs,
    device,
    data: dataName(files),
    explain: html !== undefined,
    libraries: !call.flag('no-libraries'),
    prior: priorOf(tuning, space, inputs),
    queue: queue && { ...queue, tensors: sharedFiles(files) },
    onProgress(p) {
      tuning.onSearchStart()
      latest = p
      report(p)
    },
  })
  const result = await reportOnFailure(tuning, search, () => latest && { search: latest, space })
  call.io.progress?.('')
  // Printed before files are written, because writing may fail.
  call.io.out(
    (call.flag('json') ? tuneJson : tuneText)(kernel, device.name, spaceName(kernel, space), result),
  )
  await writeWrongResults(tuning, result.wrong)
  await writeOutFile(tuning, result.bestSchedule ? winnerText(result) : undefined)
  // As for `--out`: without a result, an existing file is kept.
  if (html !== undefined && result.best) {
    await writePage(html, tuning, inputs, result)
    if (!call.flag('json')) call.io.out(`\n// Report written to ${html}\n`)
  }
  return result.best ? EXIT.ok : EXIT.failed
}

/** Writes the report with pictures of the bound or random tensors. */
async function writePage(
  path: string,
  { call, kernel: { source, allFormatInputs } }: Tuning,
  inputs: RunInputs,
  result: TuneResult,
): Promise<void> {
  const { tuneReport } = await import('../../notebook/report/index.ts')
  const { tensors, params, seed } = valuesIn(source, {
    ...inputs,
    tensors: declaredOf(source, inputs.tensors ?? {}, allFormatInputs),
  })
  const bound = randomInputs(
    source,
    { tensors, params, ...(seed === undefined ? {} : { seed }) },
    allFormatInputs,
  )
  const text = tuneReport(result, { tensors: bound.tensors })
  await call.write(path, text)
}
