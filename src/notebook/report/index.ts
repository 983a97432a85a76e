/** Results of `tune` as a page. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import { expectArgument, expectOptions, isRecord } from '../../ast/expect-argument.ts'
import { fastestTrials } from '../../search/fastest.ts'
import { decisionImportance } from '../../search/importance.ts'
import { typescriptText } from '../../search/text.ts'
import {
  alikeFastest,
  comparedText,
  endText,
  finalText,
  nothingText,
  ratioText,
} from '../../search/tune/final-text.ts'
import type { TuneResult } from '../../search/tune/index.ts'
import type { Point, Trial } from '../../search/types.ts'
import { brief } from '../numbers.ts'
import { best, convergence, outcomes, predictions } from '../studies.ts'
import { code } from '../texts.ts'
import { importance, pareto } from '../tradeoffs.ts'
import { capital, comparisonOf, finalName, times } from './finals.ts'
import { storedTensors } from './formats.ts'
import { beside, facts, page, paragraph, type Section, wide } from './page.ts'
import { rooflineOf } from './roofline-section.ts'

export interface TuneReportOptions {
  /** The bound tensors: sparse ones are drawn in the format of the fastest point. */
  readonly tensors?: RunInputs['tensors'] | undefined
}

/** Width in pixels of charts that may be placed side by side. */
const HALF = 540
/** Trials in the table, and decisions that have columns in it. */
const BEST = 20
const COLUMNS = 8

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
    [paragraph(verdict(result), 'lead'), facts(factsOf(result))],
    [
      { title: 'The fastest against what runs unasked', content: comparisonOf(result) },
      convergenceOf(result),
      ...predictionsOf(result),
      ...tradeoffsOf(result),
      { title: 'Roofline', content: rooflineOf(result) },
      {
        title: 'What became of the trials',
        content: [wide(outcomes(result.trials).html()), ...bugs(result)],
      },
      ...winnerOf(result, tensors),
      { title: 'The best trials', content: bestOf(result) },
    ],
  )
}

function verdict(result: TuneResult): string {
  const { best, defaultSchedule, finalists, confirmation } = result
  if (!best) return nothingText(result)
  if (best.name === 'standard' && confirmation)
    return `${capital(finalName(best))} is kept: ${brief(best.timing.median)} ms. The fastest of the search (${confirmation.name}) is not distinguishable from it: it takes ${ratioText(confirmation)} times as long, in ${confirmation.rounds} fresh preparations of both.`
  const alike = [...alikeFastest(finalists, confirmation)].filter((f) => f.name !== best.name)
  const isAlike = (f: { readonly name: string }): boolean => alike.some((a) => a.name === f.name)
  const others = [defaultSchedule, ...finalists.filter((f) => f.name === 'as written')].filter(
    (f) => !isAlike(f),
  )
  const than = times(others)
    .filter((f) => f.name !== best.name)
    .map((f) =>
      f.name === 'standard' && confirmation?.name === best.name
        ? `${brief(1 / confirmation.ratio)} times as fast as ${finalName(f)} in fresh preparations`
        : `${brief(f.timing.median / best.timing.median)} times as fast as ${finalName(f)}`,
    )
  const rest = than.length > 0 ? `, ${than.join(', ')}` : ''
  const time = `${brief(best.timing.median)} ms${rest}`
  return alike.length === 0
    ? `${capital(finalName(best))} is the fastest: ${time}.`
    : `${capital(finalName(best))} takes ${time}. It is not distinguishable from ${alike.map(finalName).join(', ')}.`
}

function factsOf(r: TuneResult): (readonly [string, string])[] {
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
    ...librariesOf(r),
    ['strategy', `${s.strategy}, seed ${s.seed}`],
    ['trials', `${r.trials.length}${r.knownTrials > 0 ? `, ${r.knownTrials} of them from the records` : ''}`],
    ['search', endText(r)],
    ['date', s.started],
    ...(r.study === null ? [] : [['study', r.study] as const]),
    ...(r.coverage ? [['compared', comparedText(r)] as const] : []),
  ]
}

/** Vendor libraries that took part in the search, and those that could not be opened. */
function librariesOf({ libraries: { trials, absent } }: TuneResult): (readonly [string, string])[] {
  const there = new Set(trials.map((t) => `${t.routine.library} ${t.routine.version}`))
  const all = [...there, ...absent.map((a) => `no ${a.library}: ${a.reason}`)]
  return all.length === 0 ? [] : [['libraries', all.join('; ')]]
}

function tensorText({ shape, dtype, stored }: TuneResult['subject']['tensors'][number]): string {
  const all = shape.reduce((n, x) => n * x, 1)
  const extents = shape.map((n) => n.toLocaleString('en-US')).join(' × ')
  if (stored === null) return `${extents}, ${dtype}, dense`
  const share = all > 0 ? ` (${brief((100 * stored) / all)} %)` : ''
  return `${extents}, ${dtype}, ${stored.toLocaleString('en-US')} stored${share}`
}

function convergenceOf({ trials, defaultSchedule }: TuneResult): Section {
  const title = 'Convergence'
  const isTimed = (t: Trial & { readonly seconds?: number | undefined }): boolean =>
    t.outcome.status === 'measured' && t.seconds !== undefined
  const levels =
    defaultSchedule.outcome.status === 'measured'
      ? { 'what runs unasked': defaultSchedule.outcome.timing.median }
      : {}
  if (!trials.some((t) => t.outcome.status === 'measured'))
    return { title, content: [paragraph('No trial was measured.', 'note')] }
  const byTrials = convergence(trials, { levels, width: HALF }).html()
  const bySeconds = trials.some(isTimed)
    ? convergence(trials, { by: 'seconds', levels, width: HALF }).html()
    : paragraph('All trials are from the records: when they were done in a search is not known.', 'note')
  // Where several searches had a part in it, they have no clock in common but the calendar.
  const isResumed = trials.some((t) => isTimed(t)) && trials.some((t) => !isTimed(t) && t.time !== undefined)
  const byMinutes = isResumed ? [wide(convergence(trials, { by: 'minutes', levels }).html())] : []
  return { title, content: [beside(byTrials, bySeconds), ...byMinutes] }
}

/** Minimum number of measured trials for the importance of decisions. */
const LEAST_MEASURED = 8

function tradeoffsOf({ trials }: TuneResult): Section[] {
  const timed = trials.filter((t) => t.outcome.status === 'measured')
  const weighed = timed.filter((t) => t.bytes !== undefined)
  const matters = timed.length >= LEAST_MEASURED && decisionImportance(timed).some((i) => i.share > 0)
  return [
    ...(weighed.length > 1
      ? [{ title: 'Time against memory', content: [pareto(weighed, { width: 620 }).html()] }]
      : []),
    ...(matters
      ? [{ title: 'Which decisions matter', content: [importance(timed, { width: 620 }).html()] }]
      : []),
  ]
}

/** Predictions against measurements; omitted for a single point. */
function predictionsOf({ trials }: TuneResult): Section[] {
  const both = trials.filter((t) => t.outcome.status === 'measured' && t.predicted !== undefined)
  return both.length < 2
    ? []
    : [{ title: 'Prediction against measurement', content: [predictions(trials, { width: 620 }).html()] }]
}

const bugs = ({ wrong }: TuneResult): string[] =>
  wrong.length === 0
    ? []
    : [
        paragraph(
          `${wrong.length} differ from the reference: these are bugs of the compiler, to be reported.`,
        ),
      ]

function winnerOf(
  { best, bestSchedule }: TuneResult,
  tensors: NonNullable<TuneReportOptions['tensors']>,
): Section[] {
  if (!best || !bestSchedule) return []
  const pictures = storedTensors(bestSchedule.kernel, tensors)
  return [
    {
      title: 'The schedule of the fastest',
      content: [
        ...(!best.routine
          ? []
          : [
              paragraph(
                `${finalName(best)} is a routine of a library, which has no schedule. The fastest schedule takes ${brief(bestSchedule.timing.median / best.timing.median)} times as long.`,
              ),
            ]),
        paragraph(`${capital(finalName(bestSchedule))}, in the language and in TypeScript:`),
        code(finalText(bestSchedule), 'spt', { limit: Infinity }).html(),
        code(typescriptText(bestSchedule.kernel), 'js', { limit: Infinity }).html(),
      ],
    },
    ...(pictures.length > 0 ? [{ title: 'What it stores', content: pictures }] : []),
  ]
}

/** Decisions have columns where they differ, while they are few. */
function bestOf({ trials, wrong }: Pick<TuneResult, 'trials' | 'wrong'>): readonly string[] {
  const fastest = fastestTrials({ trials, wrong }).slice(0, BEST)
  if (fastest.length === 0) return [paragraph('No trial was measured.', 'note')]
  const first = fastest[0]!.point
  const alike = Object.keys(first).filter((n) => fastest.every(({ point }) => point[n] === first[n]))
  const differing = new Set(fastest.flatMap((t) => Object.keys(t.point)).filter((n) => !alike.includes(n)))
  const shown = (point: Point): Point => {
    const own = pick(
      point,
      Object.keys(point).filter((n) => differing.has(n)),
    )
    return differing.size <= COLUMNS ? own : { point: pointText(own) }
  }
  const all = trials.map((t) => ({ ...t, point: shown(t.point) }))
  return [
    paragraph(
      `The fastest ${fastest.length} of ${trials.length}, as measured during the search, in milliseconds.`,
      'note',
    ),
    ...(alike.length > 0 ? [paragraph(`All of them have ${pointText(pick(first, alike))}.`, 'note')] : []),
    wide(best(all, BEST).html()),
  ]
}

const pick = (point: Point, names: readonly string[]): Point =>
  Object.fromEntries(names.map((n) => [n, point[n]!]))

const pointText = (point: Point): string =>
  Object.entries(point)
    .map(([name, value]) => `${name} = ${value}`)
    .join('; ')
