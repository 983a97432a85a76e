/** `spt tune` on several matrices and sizes. */

import { declaredOf, type RunInputs, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { randomInputs } from '../../api/inputs/small-data.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { TuneResult } from '../../search/tune/index.ts'
import type { KernelSpace } from '../../search/types.ts'
import { spaceName, spaceOf } from '../arguments/schedule-call.ts'
import { EXIT } from '../output/failure.ts'
import { writeTable } from './generalise-option.ts'
import { defaultKeptText, tuneAllJson, tuneAllReport } from './tune-all-report.ts'
import type { TuneFiles } from './tune-cases.ts'
import { tuneJson, tuneText, winnerText } from './tune-report.ts'
import {
  dataName,
  inputsOf,
  priorOf,
  queueOf,
  sharedFiles,
  type Tuning,
  withProgress,
  writeOutFile,
  writeWrongResults,
} from './tuning.ts'

export async function tuneSeveral(tuning: Tuning, cases: readonly TuneFiles[]): Promise<number> {
  const { call, kernel, device, options } = tuning
  const { tuneAll } = await import('../../search/tune/cases/tune-all.ts')
  const queue = await queueOf(tuning)
  let space: KernelSpace<Kernel> | undefined
  const result = await withProgress(tuning, (report) =>
    tuneAll(kernel, {
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
      queue,
      onProgress: ({ case: name, at, of, search }) => report(search, space, name, `${at} of ${of}`),
    }),
  )
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

/** `spt tune` on one matrix. */
export async function tuneOne(tuning: Tuning, files: TuneFiles): Promise<number> {
  const { call, kernel, device, options } = tuning
  const { tune } = await import('../../search/tune/index.ts')
  const inputs = await inputsOf(tuning, files)
  const space = await spaceOf(call, kernel, device, inputs)
  const queue = await queueOf(tuning)
  const html = call.one('html')
  const result = await withProgress(tuning, (report) =>
    tune(kernel, {
      ...options,
      space,
      inputs,
      device,
      data: dataName(files),
      explain: html !== undefined,
      libraries: !call.flag('no-libraries'),
      prior: priorOf(tuning, space, inputs),
      queue: queue && { ...queue, tensors: sharedFiles(files) },
      onProgress: (p) => report(p, space),
    }),
  )
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
