/** Reports of `spt tune`: progress and result. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { LibraryRoutine } from '../../search/evaluate/library-routines.ts'
import { fastestOf } from '../../search/loop/tally.ts'
import { typescriptText } from '../../search/text.ts'
import {
  comparisonText,
  confirmationText,
  endText,
  finalText,
  noResultText,
  ratioText,
  tiedWithFastest,
} from '../../search/tune/finals/final-text.ts'
import type { Finalist, TuneProgress, TuneResult } from '../../search/tune/index.ts'
import type { KernelSpace, Outcome, Timing } from '../../search/types.ts'
import { linesText } from '../output/figures.ts'

export const ms = (x: number): string => `${Number(x.toPrecision(4))} ms`
/** `3 a/code, 1 b/code`. */
export const byFrequency = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([code, n]) => `${n} ${code}`)
    .join(', ')

/** Progress on one line. */
export function progressLine(p: TuneProgress): string {
  const rejected = Object.values(p.rejectedByCode).reduce((a, b) => a + b, 0)
  const timeOf = (o: Outcome | undefined): string | null =>
    o?.status === 'measured' ? ms(o.timing.median) : null
  const libraryTime = timeOf(p.library?.outcome)
  return [
    `${p.trialsDone} done`,
    p.knownTrials > 0 && `${p.knownTrials} known`,
    `best ${timeOf(p.best?.outcome) ?? 'none'}`,
    libraryTime && `${p.library!.routine.library} ${libraryTime}`,
    `${rejected} rejected`,
    `${p.failed} failed`,
    p.remaining !== undefined && `${p.remaining} left`,
    p.ranking !== undefined && `ranking, ${p.ranking} points so far`,
    p.comparing !== undefined && `comparing ${p.comparing}`,
  ]
    .filter(Boolean)
    .join(', ')
}

/** Best result of a search that ended with an error; '' without a measured trial. */
export function partialResultText(
  { trialsDone, knownTrials, best }: Pick<TuneProgress, 'trialsDone' | 'knownTrials' | 'best'>,
  space: KernelSpace<Kernel>,
  name = '',
): string {
  if (best?.outcome.status !== 'measured') return ''
  const { median } = best.outcome.timing
  return `note: until then, the best of ${trialsDone + knownTrials} trials${name && ` of ${name}`} took ${ms(median)}, not compared with the default schedule:\n${finalText({ kernel: space.kernel(best.point) })}`
}

const outcomeText = (o: Outcome): string =>
  o.status === 'measured'
    ? `${ms(o.timing.median)}  (${intervalText(o.timing.interval)})`
    : o.status === 'wrong'
      ? 'differs from the reference'
      : o.status === 'bounded'
        ? `given up: at most ${ms(o.atMost)}`
        : o.code === 'search/far-slower'
          ? `not run: ${o.message}`
          : o.code

const intervalText = (interval: Timing['interval']): string =>
  interval ? interval.map(ms).join(' to ') : 'one sample'

const nameOf = ({ name, schedule }: Finalist): string => (schedule ? `${name}: ${schedule}` : name)

/** Final report of a search. */
export function tuneText(kernel: Kernel, device: string, space: string, r: TuneResult): string {
  const rejected = byFrequency(r.rejectedByCode)
  // Nothing was compared.
  const isEnded = r.finalists.every(({ outcome: o }) => o.status === 'failed' && o.code === 'search/ended')
  const faults = reducerFaults([...r.trials, ...r.finalists].map((t) => t.outcome))
  const head = linesText(
    {
      kernel: `${kernel.name} on ${device}`,
      space: `${space}${r.remaining === undefined ? '' : `, ${r.remaining} points left`}`,
      trials: `${r.trials.length}${r.knownTrials > 0 ? `, ${r.knownTrials} of them known` : ''}; ${endText(r)}`,
      rejected: rejected && [rejected, ...faults],
      failed: r.failed > 0 ? `${r.failed}` : null,
      wrong: r.wrong.length > 0 ? `${r.wrong.length}: compiler bugs` : null,
      compared: r.coverage && comparisonText(r),
      libraries: libraryTexts(r),
      study: r.study?.slice(0, 12),
    },
    { width: 9, gap: ' ' },
  )
  const report = isEnded ? head : `${head}\n${comparison(r).join('\n')}\n`
  if (!r.best) return `${report}\n${noResultText(r)}\n`
  if (!r.bestSchedule) return `${report}\n${libraryNote(r)}No schedule could be measured.\n`
  const formatNote = r.bestSchedule.declaration ? ', with the format in the program of the kernel' : ''
  const typescript = `// TypeScript${formatNote}\n${typescriptText(r.bestSchedule.kernel)}\n`
  return `${report}\n${winnerText(r)}\n${typescript}`
}

/** Candidates by time with the fastest marked, then those without a time. */
function comparison({ finalists, confirmation }: TuneResult): string[] {
  const ranked = fastestOf(finalists)
  const tied = tiedWithFastest(finalists, confirmation)
  const note = (f: Finalist): string =>
    tied.has(f)
      ? '  not distinguishable from it'
      : f !== ranked[0]
        ? ''
        : tied.size > 0
          ? '  the lowest median'
          : '  the fastest'
  const rows = [...ranked, ...finalists.filter((f) => !ranked.includes(f))]
  const width = Math.max(...rows.map((f) => nameOf(f).length))
  const lines = rows.map((f) => `${nameOf(f).padEnd(width)}  ${outcomeText(f.outcome)}${note(f)}`)
  return [...lines, ...(confirmation ? ['', confirmationText(confirmation)] : [])]
}

/** Rejections caused by the user's program. */
const PROGRAM_FAULTS: ReadonlySet<string> = new Set(['check/monoid-law', 'space/thrown'])

/** Describes failures and wrong results caused by the program's reducers, which counts do not show. */
function reducerFaults(outcomes: readonly Outcome[]): string[] {
  const fault = outcomes.find((o) => o.status === 'rejected' && PROGRAM_FAULTS.has(o.code))
  return fault?.status === 'rejected' ? [fault.message] : []
}

function libraryTexts({ libraries: { trials, absent } }: TuneResult): readonly string[] {
  const present = [...new Set(trials.map((t) => `${t.routine.library} ${t.routine.version}`))]
  const mismatching = trials.filter((t) => t.outcome.status === 'wrong').map((t) => t.name)
  return [
    present.join(', '),
    mismatching.length > 0 ? `different from the reference: ${mismatching.join('; ')}` : '',
    ...absent.map((a) => `none of ${a.library}: ${a.reason}`),
  ].filter((text) => text !== '')
}

function libraryNote({ best, bestSchedule }: TuneResult): string {
  if (!best?.routine) return ''
  const slower = bestSchedule
    ? `; the fastest schedule takes ${Number((bestSchedule.timing.median / best.timing.median).toPrecision(3))} times as long`
    : ''
  return `// ${best.name} is the fastest: a routine of a library (libraryRoutines), not a schedule${slower}\n`
}

/** Source of the fastest schedule, with its name in the comparison; empty if there is none. */
export const winnerText = (r: TuneResult): string =>
  r.bestSchedule ? `${libraryNote(r)}// ${headline(r, r.bestSchedule)}\n${finalText(r.bestSchedule)}` : ''

function headline({ confirmation: c, finalists }: TuneResult, fastest: Finalist): string {
  if (fastest.name !== 'default' || !c)
    return `${tiedWithFastest(finalists, c).size > 0 ? 'The schedule with the lowest median' : 'The fastest schedule'}: ${nameOf(fastest)}${c ? `, ${ratioText(c)} times the time of the default` : ''}`
  return `No schedule is distinguishable from the default, which is kept: ${nameOf(fastest)} (${c.name}: ${ratioText(c)} times its time)`
}

/** Final report as JSON. */
export function tuneJson(kernel: Kernel, device: string, space: string, r: TuneResult): string {
  const { trials, finalists, best, bestSchedule, libraries, defaultSchedule, ...rest } = r
  const final = (f: Finalist): object => ({
    name: f.name,
    schedule: f.schedule ?? null,
    point: f.point,
    steps: f.routine ? null : f.kernel.trace,
    library: f.routine ? routineOf(f.routine) : null,
    outcome: f.outcome,
  })
  const schedule = (f: Finalist): object =>
    f.routine ? {} : { text: finalText(f), trace: f.kernel.toJSON() }
  const report = {
    kernel: kernel.name,
    device,
    space,
    ...rest,
    best: best && { ...final(best), ...schedule(best) },
    bestSchedule: bestSchedule && { ...final(bestSchedule), ...schedule(bestSchedule) },
    libraries: {
      trials: libraries.trials.map((t) => ({ name: t.name, ...routineOf(t.routine), outcome: t.outcome })),
      absent: libraries.absent,
    },
    defaultSchedule: final(defaultSchedule),
    finalists: finalists.map(final),
    trials,
  }
  return `${JSON.stringify(report, null, 2)}\n`
}

const routineOf = ({ library, version, routine, variant }: LibraryRoutine): object => ({
  library,
  version,
  routine,
  variant,
})
