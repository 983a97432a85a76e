/** Report of a `tune` result as an HTML page. */
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import { SptFormat } from '../../api/inputs/format-values.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { chooseFormat } from '../../api/programs/format-lookup.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, expectOptions, isRecord } from '../../ast/diagnostics/expect-argument.ts'
import { drawCoords, drawParts } from '../../pictures/picture/index.ts'
import { fastestTrials } from '../../search/loop/tally.ts'
import { decisionImportance } from '../../search/statistics/importance.ts'
import { typescriptText } from '../../search/text.ts'
import {
  comparisonText,
  endText,
  finalText,
  noResultText,
  ratioText,
  tiedWithFastest,
} from '../../search/tune/finals/final-text.ts'
import type { TuneResult } from '../../search/tune/index.ts'
import type { Point, Trial } from '../../search/types.ts'
import { brief } from '../numbers.ts'
import { best, convergence, outcomes, predictions } from '../studies.ts'
import { code } from '../texts.ts'
import { importance, pareto } from '../tradeoffs.ts'
import { capitalize, comparisonSection, finalName, timedFinals } from './finals.ts'
import { facts, heading, page, paragraph, type Section, scrollable, sideBySide } from './page.ts'
import { rooflineSection } from './roofline-section.ts'

export interface TuneReportOptions {
  /** The bound tensors; sparse tensors are drawn in the format of the fastest point. */
  readonly tensors?: RunInputs['tensors'] | undefined
}

/** Width in pixels of charts that may be placed side by side. */
const HALF_WIDTH = 540
/** Maximum number of trials in the table, and of decisions with a column of their own. */
const MAX_TRIALS = 20
const MAX_DECISION_COLUMNS = 8

/**
 * Report of a `tune` result as one HTML file without scripts or external resources. Sections: the task, the fastest kernel
 * against the default, convergence, predictions against measurements, the roofline (with `explain`, if the ceilings of the
 * device are known), rejected trials, format and schedule of the fastest kernel, the best trials.
 * ```ts
 * const result = await tune(kernel, { space, inputs, device, trials: 64, explain: true })
 * writeFileSync('report.html', tuneReport(result, { tensors: inputs.tensors }))
 * ```
 * @throws SptError `api/argument`, `api/unknown-option`
 */
export function tuneReport(result: TuneResult, options: TuneReportOptions = {}): string {
  expectOptions('tuneReport', options, ['tensors'])
  expectArgument(isRecord(result) && 'subject' in result, 'the result', result, 'what tune gives')
  const { tensors = {} } = options
  expectArgument(isRecord(tensors), 'tensors', tensors, 'tensors by name')
  const { subject } = result
  return page(
    `${subject.kernel} tuned on ${subject.device.name}`,
    [paragraph(verdictText(result), 'lead'), facts(taskFacts(result))],
    [
      { title: 'Comparison with the default schedule', content: comparisonSection(result) },
      convergenceSection(result),
      ...predictionSections(result),
      ...tradeoffSections(result),
      { title: 'Roofline', content: rooflineSection(result) },
      {
        title: 'Outcomes of the trials',
        content: [scrollable(outcomes(result.trials).html()), ...bugNote(result)],
      },
      ...fastestSections(result, tensors),
      { title: 'The best trials', content: bestTrialsTable(result) },
    ],
  )
}

function verdictText(result: TuneResult): string {
  const { best, defaultSchedule, finalists, confirmation } = result
  if (!best) return noResultText(result)
  if (best.name === 'default' && confirmation)
    return `${capitalize(finalName(best))} is kept: ${brief(best.timing.median)} ms. The fastest of the search (${confirmation.name}) is not distinguishable from it: it takes ${ratioText(confirmation)} times as long, in ${confirmation.rounds} fresh preparations of both.`
  const tied = [...tiedWithFastest(finalists, confirmation)].filter((f) => f.name !== best.name)
  const isTied = (f: { readonly name: string }): boolean => tied.some((a) => a.name === f.name)
  const baselines = [defaultSchedule, ...finalists.filter((f) => f.name === 'unscheduled')].filter(
    (f) => !isTied(f),
  )
  const comparisons = timedFinals(baselines)
    .filter((f) => f.name !== best.name)
    .map((f) =>
      f.name === 'default' && confirmation?.name === best.name
        ? `${brief(1 / confirmation.ratio)} times as fast as ${finalName(f)} in fresh preparations`
        : `${brief(f.timing.median / best.timing.median)} times as fast as ${finalName(f)}`,
    )
  const comparisonList = comparisons.length > 0 ? `, ${comparisons.join(', ')}` : ''
  const time = `${brief(best.timing.median)} ms${comparisonList}`
  return tied.length === 0
    ? `${capitalize(finalName(best))} is the fastest: ${time}.`
    : `${capitalize(finalName(best))} takes ${time}. It is not distinguishable from ${tied.map(finalName).join(', ')}.`
}

function taskFacts(r: TuneResult): (readonly [string, string])[] {
  const { subject: s } = r
  const sizes = Object.entries(s.sizes).map(([name, n]) => `${name} = ${n.toLocaleString('en-US')}`)
  return [
    ['kernel', s.kernel],
    ['device', `${s.device.kind}: ${s.device.name}${s.device.driver ? ` (${s.device.driver})` : ''}`],
    ['compiler', `sparsetile ${s.compiler}`],
    ['sizes', sizes.join(', ') || 'none'],
    ...s.tensors.map((t) => [`tensor ${t.name}`, tensorText(t)] as const),
    [
      'space',
      `${s.space}${r.remaining === undefined ? '' : `, ${r.remaining.toLocaleString('en-US')} points left`}`,
    ],
    ...libraryFacts(r),
    ['strategy', `${s.strategy}, seed ${s.seed}`],
    ['trials', `${r.trials.length}${r.knownTrials > 0 ? `, ${r.knownTrials} of them from the records` : ''}`],
    ['search', endText(r)],
    ['date', s.started],
    ...(r.study === null ? [] : [['study', r.study] as const]),
    ...(r.coverage ? [['compared', comparisonText(r)] as const] : []),
  ]
}

function libraryFacts({ libraries: { trials, absent } }: TuneResult): (readonly [string, string])[] {
  const used = new Set(trials.map((t) => `${t.routine.library} ${t.routine.version}`))
  const entries = [...used, ...absent.map((a) => `no ${a.library}: ${a.reason}`)]
  return entries.length === 0 ? [] : [['libraries', entries.join('; ')]]
}

function tensorText({ shape, dtype, stored }: TuneResult['subject']['tensors'][number]): string {
  const size = shape.reduce((n, x) => n * x, 1)
  const extents = shape.map((n) => n.toLocaleString('en-US')).join(' × ')
  if (stored === null) return `${extents}, ${dtype}, dense`
  const share = size > 0 ? ` (${brief((100 * stored) / size)} %)` : ''
  return `${extents}, ${dtype}, ${stored.toLocaleString('en-US')} stored${share}`
}

function convergenceSection({ trials, defaultSchedule }: TuneResult): Section {
  const title = 'Convergence'
  const isTimed = (t: Trial & { readonly seconds?: number | undefined }): boolean =>
    t.outcome.status === 'measured' && t.seconds !== undefined
  const levels =
    defaultSchedule.outcome.status === 'measured'
      ? { 'default schedule': defaultSchedule.outcome.timing.median }
      : {}
  if (!trials.some((t) => t.outcome.status === 'measured'))
    return { title, content: [paragraph('No trial was measured.', 'note')] }
  const byTrials = convergence(trials, { levels, width: HALF_WIDTH }).html()
  const bySeconds = trials.some(isTimed)
    ? convergence(trials, { by: 'seconds', levels, width: HALF_WIDTH }).html()
    : paragraph('All trials are from the records, without the time since the start of a search.', 'note')
  // The trials of several searches have only the wall-clock time in common.
  const isResumed = trials.some((t) => isTimed(t)) && trials.some((t) => !isTimed(t) && t.time !== undefined)
  const byMinutes = isResumed ? [scrollable(convergence(trials, { by: 'minutes', levels }).html())] : []
  return { title, content: [sideBySide(byTrials, bySeconds), ...byMinutes] }
}

/** Minimum number of measured trials for the importance of decisions. */
const MIN_MEASURED = 8

function tradeoffSections({ trials }: TuneResult): Section[] {
  const timed = trials.filter((t) => t.outcome.status === 'measured')
  const withBytes = timed.filter((t) => t.bytes !== undefined)
  const hasImportance = timed.length >= MIN_MEASURED && decisionImportance(timed).some((i) => i.share > 0)
  return [
    ...(withBytes.length > 1
      ? [{ title: 'Time against memory', content: [pareto(withBytes, { width: 620 }).html()] }]
      : []),
    ...(hasImportance
      ? [{ title: 'Which decisions matter', content: [importance(timed, { width: 620 }).html()] }]
      : []),
  ]
}

/** Predictions against measurements; omitted for a single point. */
function predictionSections({ trials }: TuneResult): Section[] {
  const predicted = trials.filter((t) => t.outcome.status === 'measured' && t.predicted !== undefined)
  return predicted.length < 2
    ? []
    : [{ title: 'Prediction against measurement', content: [predictions(trials, { width: 620 }).html()] }]
}

const bugNote = ({ wrong }: TuneResult): string[] =>
  wrong.length === 0
    ? []
    : [paragraph(`${wrong.length} differ from the reference: please report these bugs of the compiler.`)]

function fastestSections(
  { best, bestSchedule }: TuneResult,
  tensors: NonNullable<TuneReportOptions['tensors']>,
): Section[] {
  if (!best || !bestSchedule) return []
  const pictures = drawStoredTensors(bestSchedule.kernel, tensors)
  const routineNote = `${finalName(best)} is a routine of a library, which has no schedule. The fastest schedule takes ${brief(bestSchedule.timing.median / best.timing.median)} times as long.`
  return [
    {
      title: 'The fastest schedule',
      content: [
        ...(best.routine ? [paragraph(routineNote)] : []),
        paragraph(`${capitalize(finalName(bestSchedule))}, in the language and in TypeScript:`),
        code(finalText(bestSchedule), 'spt', { limit: Infinity }).html(),
        code(typescriptText(bestSchedule.kernel), 'js', { limit: Infinity }).html(),
      ],
    },
    ...(pictures.length > 0 ? [{ title: 'Stored tensors', content: pictures }] : []),
  ]
}

/** Decisions that differ have a column each if they are few, otherwise one common column. */
function bestTrialsTable({ trials, wrong }: Pick<TuneResult, 'trials' | 'wrong'>): readonly string[] {
  const fastest = fastestTrials({ trials, wrong }).slice(0, MAX_TRIALS)
  if (fastest.length === 0) return [paragraph('No trial was measured.', 'note')]
  const first = fastest[0]!.point
  const common = Object.keys(first).filter((n) => fastest.every(({ point }) => point[n] === first[n]))
  const differing = new Set(fastest.flatMap((t) => Object.keys(t.point)).filter((n) => !common.includes(n)))
  const shownPoint = (point: Point): Point => {
    const names = Object.keys(point).filter((n) => differing.has(n))
    const differences = pick(point, names)
    return differing.size <= MAX_DECISION_COLUMNS ? differences : { point: pointText(differences) }
  }
  const title = `The fastest ${fastest.length} of ${trials.length}, as measured during the search, in milliseconds.`
  const shortened = trials.map((t) => ({ ...t, point: shownPoint(t.point) }))
  return [
    paragraph(title, 'note'),
    ...(common.length > 0 ? [paragraph(`All of them have ${pointText(pick(first, common))}.`, 'note')] : []),
    scrollable(best(shortened, MAX_TRIALS).html()),
  ]
}

const pick = (point: Point, names: readonly string[]): Point =>
  Object.fromEntries(names.map((n) => [n, point[n]!]))

const pointText = (point: Point): string =>
  Object.entries(point)
    .map(([name, value]) => `${name} = ${value}`)
    .join('; ')

// Pictures of the tensors in the formats of a kernel.

type Tensors = NonNullable<RunInputs['tensors']>
/** A tensor that is bound by its coordinates. */
type CoordsTensor = Parameters<typeof drawCoords>[0]

/** Maximum number of elements of drawn tensors: drawing converts them again. */
const MAX_STORED = 2 ** 24

/** HTML: a picture of each tensor that is bound by its coordinates, in the format that the steps of the kernel choose. */
function drawStoredTensors(kernel: Kernel, tensors: Tensors): readonly string[] {
  return Object.entries(tensors).flatMap(([name, tensor]) => {
    if (!isCoords(tensor)) return []
    const count = tensor.coords[0]?.length ?? 0
    if (count > MAX_STORED)
      return [heading(name), paragraph(`Not drawn: it has more than ${MAX_STORED} elements.`, 'note')]
    const step = kernel.toJSON().find((s) => s.kind === 'as' && s.buffer === name)
    const svg = resultOrError(() => {
      if (step?.kind !== 'as') return drawCoords(tensor, { name: `${name}, as it is declared` })
      const { format, args } = chooseFormat(step.format, step.args, kernel.formats)
      const sptFormat = new SptFormat(format, args).withOrder(tensor.shape.length)
      const operands = sptFormat.inputs.map((g) => [g.name, tensors[g.name]!] as const)
      return drawParts(sptFormat.convert(tensor, Object.fromEntries(operands)).stored, { name })
    })
    return svg instanceof SptError
      ? [heading(name), paragraph(`Not drawn: ${svg.diagnostics[0]!.message}.`, 'note')]
      : [scrollable(svg)]
  })
}

const isCoords = (tensor: Tensors[string]): tensor is CoordsTensor =>
  'kind' in tensor && tensor.kind === 'coords'
