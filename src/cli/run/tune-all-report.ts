/** Reports of `spt tune` on several matrices. */

import type { Kernel } from '../../api/kernel.ts'
import { appliedName } from '../../ast/applied-name.ts'
import type { Generalised, Loss } from '../../search/choice/generalise.ts'
import { choiceText } from '../../search/choice/text.ts'
import { fastestTrials } from '../../search/fastest.ts'
import type { TuneAllResult, TunedCandidate } from '../../search/tune/tune-all-result.ts'
import { table } from '../figures.ts'
import { byFrequency, ms } from './tune-report.ts'

/** Geometric mean of time / best, and the number of rejected cases. */
const factor = ({ mean, refused }: Loss): string =>
  `${Math.exp(mean).toFixed(3)}${refused > 0 ? `, ${refused} refused` : ''}`

const timeText = (r: TuneAllResult, candidate: number | null, caseIndex: number): string => {
  const timing = candidate === null ? null : r.candidates[candidate]!.timings[caseIndex]
  return timing ? ms(timing.median) : 'none'
}

/** Display name of a candidate. */
const nameOf = ({ call, foundOn }: TunedCandidate, k: number): string =>
  call
    ? appliedName(call.name, call.args)
    : foundOn === null
      ? 'as written'
      : `candidate ${k + 1}, of ${foundOn[0]}`

/** Final report of tuning on several matrices. */
export function tuneAllReport(kernel: Kernel, device: string, r: TuneAllResult): string {
  const { generalised: g } = r
  const searches = r.cases.flatMap((c) => c.search ?? [])
  const rejected: Record<string, number> = {}
  for (const s of searches)
    for (const [code, n] of Object.entries(s.rejectedByCode)) rejected[code] = (rejected[code] ?? 0) + n
  const failed = searches.reduce((n, s) => n + s.failed, 0)
  const trials = searches.reduce((n, s) => n + s.trials.length, 0)
  // Tuning ended early, or some data could not be used, so not all cases compare the candidates.
  const compared = r.cases.filter((c) => c.values !== null).length
  const where = compared === r.cases.length ? 'each' : `${compared} of the cases`
  const candidatesText = compared === 0 ? '' : `, then ${r.candidates.length} candidates on ${where}`
  const head = [
    `kernel    ${kernel.name} on ${device}`,
    `cases     ${r.cases.length}; ${trials} trials${candidatesText}; after ${r.seconds.toFixed(1)} s`,
    ...(Object.keys(rejected).length > 0 ? [`rejected  ${byFrequency(rejected)}`] : []),
    ...(failed > 0 ? [`failed    ${failed}`] : []),
    ...(r.wrong.length > 0 ? [`wrong     ${r.wrong.length}: bugs of the compiler`] : []),
    '',
  ]
  const rows = g ? comparison(r, g) : bestByCase(r)
  return `${[...head, ...table(rows)].join('\n')}\n\n${conclusion(kernel, r)}`
}

/** Times of each case, with their loss. */
function comparison(r: TuneAllResult, g: Generalised): (readonly string[])[] {
  const { standard } = r
  const rows = [
    ['', 'unasked', 'single', 'choice', 'best', ''],
    ...r.cases.map((c, n) => [
      c.name,
      ...[c.standard, c.single, c.choice, c.best].map((k) => timeText(r, k, n)),
      c.best === null ? (c.refused?.code ?? '') : nameOf(r.candidates[c.best]!, c.best),
    ]),
  ]
  const losses = standard
    ? [
        ['', '', '', '', '', ''],
        [
          'time / best',
          factor(standard),
          factor(g.single.fitted),
          factor(g.choice.fitted),
          '1',
          '(geometric mean)',
        ],
        [
          'left out',
          factor(standard),
          ...[g.single, g.choice].map((j) => (j.leftOut ? factor(j.leftOut) : 'not known')),
          '1',
          '(on matrices that it was made without)',
        ],
      ]
    : []
  return [...rows, ...losses]
}

/** Best trial of each case, if tuning ended before all candidates were compared. */
function bestByCase({ cases }: TuneAllResult): string[][] {
  const rows = cases.map(({ name, search, refused }) => {
    const [best] = search ? fastestTrials(search) : []
    const time = best?.outcome.status === 'measured' ? ms(best.outcome.timing.median) : 'none'
    const point = Object.entries(best?.point ?? {}).map(([decision, value]) => `${decision} = ${value}`)
    return [name, String(search?.trials.length ?? 0), time, point.join(', ') || (refused?.code ?? '')]
  })
  return [['', 'trials', 'best so far', ''], ...rows]
}

function conclusion(kernel: Kernel, result: TuneAllResult): string {
  const { generalised: g, schedule, candidates, verdict } = result
  if (g && verdict === 'unasked') return defaultKeptText(kernel, result)
  if (!schedule || !g)
    return 'It was ended before all candidates were tried on all: nothing is chosen. With --db, --resume goes on.\n'
  const choosable = candidates.map((c) => ({ ...c, requires: c.kernel.compilation.loops.facts ?? [] }))
  const heading = g.isBetter
    ? '// Chosen by what is known of the data:'
    : g.tree.kind === 'leaf'
      ? '// One schedule is as good as a choice:'
      : '// A choice is no better on matrices that it was made without; the single schedule:'
  const alternative =
    g.isBetter || g.tree.kind === 'leaf'
      ? ''
      : `\n// The choice that was not taken:\n${asComment(choiceText(kernel, g.choice.rules, choosable).text)}`
  return `${heading}\n${schedule.text}${alternative}`
}

/** Comment for the output file if nothing is faster than the default: names the default. */
export function defaultKeptText(kernel: Kernel, { cases, candidates }: TuneAllResult): string {
  const defaults = cases.flatMap(({ standard }) => {
    const { call } = (standard === null ? null : candidates[standard]) ?? { call: null }
    return call ? [appliedName(call.name, call.args)] : []
  })
  const named = [...(kernel.choice === null ? [] : [kernel.choice]), ...new Set(defaults)].join(', ')
  return `// Nothing is better than what runs unasked${named && ` (${named})`}: ${kernel.name} is left as it is.\n`
}

const asComment = (text: string): string =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => `${`// ${line}`.trimEnd()}\n`)
    .join('')

/** Final report as JSON. */
export function tuneAllJson(kernel: Kernel, device: string, r: TuneAllResult): string {
  const { generalised: g, candidates, cases, ...rest } = r
  const report = {
    kernel: kernel.name,
    device,
    ...rest,
    isChoice: g?.isBetter ?? null,
    losses: g && {
      standard: r.standard,
      single: { fitted: g.single.fitted, leftOut: g.single.leftOut },
      choice: { fitted: g.choice.fitted, leftOut: g.choice.leftOut },
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
      foundOn: c.foundOn,
      timings: c.timings,
    })),
  }
  return `${JSON.stringify(report, null, 2)}\n`
}
