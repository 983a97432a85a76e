/** `spt tune` on several matrices and sizes. */

import { declaredOf, type RunInputs, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { randomInputs } from '../../api/inputs/random-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import type { Generalisation, Loss } from '../../search/choice/generalise.ts'
import { choiceText } from '../../search/choice/rules.ts'
import { fastestTrials } from '../../search/loop/tally.ts'
import type { TuneAllResult, TunedCandidate } from '../../search/tune/cases/tune-all-result.ts'
import type { TuneResult } from '../../search/tune/index.ts'
import type { KernelSpace } from '../../search/types.ts'
import { spaceName, spaceOf } from '../arguments/schedule-call.ts'
import { EXIT } from '../output/failure.ts'
import { linesText, table } from '../output/figures.ts'
import { writeTable } from './generalise-option.ts'
import type { TuneFiles } from './tune-cases.ts'
import { byFrequency, ms, tuneJson, tuneText, winnerText } from './tune-report.ts'
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
    { tensors, params, ...(seed !== undefined && { seed }) },
    allFormatInputs,
  )
  const text = tuneReport(result, { tensors: bound.tensors })
  await call.write(path, text)
}

// The report about several cases.

/** Geometric mean of time / best, and the number of rejected cases. */
const factor = ({ mean, rejected }: Loss): string =>
  `${Math.exp(mean).toFixed(3)}${rejected > 0 ? `, ${rejected} rejected` : ''}`

const timeText = (r: TuneAllResult, candidate: number | null, caseIndex: number): string => {
  const timing = candidate === null ? null : r.candidates[candidate]!.timings[caseIndex]
  return timing ? ms(timing.median) : 'none'
}

const nameOf = ({ call, tunedOn }: TunedCandidate, k: number): string =>
  call
    ? appliedName(call.name, call.args)
    : tunedOn === null
      ? 'unscheduled'
      : `candidate ${k + 1}, of ${tunedOn[0]}`

/** Final report of tuning on several matrices. */
export function tuneAllReport(kernel: Kernel, device: string, r: TuneAllResult): string {
  const { generalisation: g } = r
  const searches = r.cases.flatMap((c) => c.search ?? [])
  const rejected: Record<string, number> = {}
  for (const s of searches)
    for (const [code, n] of Object.entries(s.rejectedByCode)) rejected[code] = (rejected[code] ?? 0) + n
  const failed = searches.reduce((n, s) => n + s.failed, 0)
  const trials = searches.reduce((n, s) => n + s.trials.length, 0)
  // Tuning ended early, or some data could not be used, so not all cases compare the candidates.
  const compared = r.cases.filter((c) => c.values !== null).length
  const casesText = compared === r.cases.length ? 'each' : `${compared} of the cases`
  const candidatesText = compared === 0 ? '' : `, then ${r.candidates.length} candidates on ${casesText}`
  const head = linesText(
    {
      kernel: `${kernel.name} on ${device}`,
      cases: `${r.cases.length}; ${trials} trials${candidatesText}; after ${r.seconds.toFixed(1)} s`,
      rejected: byFrequency(rejected),
      failed: failed > 0 ? `${failed}` : null,
      wrong: r.wrong.length > 0 ? `${r.wrong.length}: compiler bugs` : null,
    },
    { width: 9, gap: ' ' },
  )
  const rows = g ? comparison(r, g) : bestByCase(r)
  return `${head}\n${table(rows).join('\n')}\n\n${conclusion(kernel, r)}`
}

function comparison(r: TuneAllResult, g: Generalisation): (readonly string[])[] {
  const { defaultLoss } = r
  const rows = [
    ['', 'default', 'single', 'dispatch', 'best', ''],
    ...r.cases.map((c, n) => [
      c.name,
      ...[c.defaultSchedule, c.single, c.dispatch, c.best].map((k) => timeText(r, k, n)),
      c.best === null ? (c.rejection?.code ?? '') : nameOf(r.candidates[c.best]!, c.best),
    ]),
  ]
  if (!defaultLoss) return rows
  const heldOut = [g.single, g.dispatch].map((j) => (j.heldOutLoss ? factor(j.heldOutLoss) : 'unknown'))
  const fitted = [g.single, g.dispatch].map((j) => factor(j.fittedLoss))
  return [
    ...rows,
    ['', '', '', '', '', ''],
    ['time / best', factor(defaultLoss), ...fitted, '1', '(geometric mean)'],
    ['held out', factor(defaultLoss), ...heldOut, '1', '(on held-out matrices)'],
  ]
}

/** Best trial of each case, if tuning ended before all candidates were compared. */
function bestByCase({ cases }: TuneAllResult): string[][] {
  const rows = cases.map(({ name, search, rejection }) => {
    const [best] = search ? fastestTrials(search) : []
    const time = best?.outcome.status === 'measured' ? ms(best.outcome.timing.median) : 'none'
    const point = Object.entries(best?.point ?? {}).map(([decision, value]) => `${decision} = ${value}`)
    return [name, String(search?.trials.length ?? 0), time, point.join(', ') || (rejection?.code ?? '')]
  })
  return [['', 'trials', 'best so far', ''], ...rows]
}

function conclusion(kernel: Kernel, result: TuneAllResult): string {
  const { generalisation: g, schedule, candidates, verdict } = result
  if (g && verdict === 'default') return defaultKeptText(kernel, result)
  if (!schedule || !g)
    return 'Tuning ended before all candidates were measured on all cases, so no schedule is selected. Continue with --db and --resume.\n'
  const choosable = candidates.map((c) => ({ ...c, requires: c.kernel.compilation.loops.facts ?? [] }))
  const heading = g.isBetter
    ? '// Dispatch by sizes and statistics of the data:'
    : g.tree.kind === 'leaf'
      ? '// One schedule is as fast as a dispatch:'
      : '// On held-out matrices, a dispatch is not faster than the single schedule:'
  const alternative =
    g.isBetter || g.tree.kind === 'leaf'
      ? ''
      : `\n// The dispatch that was not selected:\n${asComment(choiceText(kernel, g.dispatch.rules, choosable).text)}`
  return `${heading}\n${schedule.text}${alternative}`
}

/** Comment for the output file if nothing is faster than the default: names the default. */
export function defaultKeptText(kernel: Kernel, { cases, candidates }: TuneAllResult): string {
  const defaults = cases.flatMap(({ defaultSchedule }) => {
    const { call } = (defaultSchedule === null ? null : candidates[defaultSchedule]) ?? { call: null }
    return call ? [appliedName(call.name, call.args)] : []
  })
  const scheduleNames = [...(kernel.dispatch === null ? [] : [kernel.dispatch]), ...new Set(defaults)].join(
    ', ',
  )
  return `// No schedule is faster than the default${scheduleNames && ` (${scheduleNames})`}: ${kernel.name} is unchanged.\n`
}

const asComment = (text: string): string =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => `${`// ${line}`.trimEnd()}\n`)
    .join('')

/** Final report as JSON. */
function tuneAllJson(kernel: Kernel, device: string, r: TuneAllResult): string {
  const { generalisation: g, candidates, cases, ...rest } = r
  const report = {
    kernel: kernel.name,
    device,
    ...rest,
    isDispatchBetter: g?.isBetter ?? null,
    losses: g && {
      default: r.defaultLoss,
      single: { fitted: g.single.fittedLoss, heldOut: g.single.heldOutLoss },
      dispatch: { fitted: g.dispatch.fittedLoss, heldOut: g.dispatch.heldOutLoss },
    },
    tree: g?.tree ?? null,
    cases: cases.map(({ search, ...c }) => ({
      ...c,
      search: search && { ...search, trials: search.trials.length, wrong: search.wrong.length },
    })),
    candidates: candidates.map((c, k) => ({
      name: nameOf(c, k),
      call: c.call,
      steps: c.kernel.trace,
      trace: c.kernel.toJSON(),
      foundOn: c.tunedOn,
      timings: c.timings,
    })),
  }
  return `${JSON.stringify(report, null, 2)}\n`
}
