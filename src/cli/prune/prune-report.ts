/** Report of `spt prune` for people. */
import { escapeLine } from '../../ast/diagnostics/render.ts'
import { globOf } from '../../prune/options.ts'
import type { LayerReport, PruneReport } from '../../prune.ts'
import { count, ms, percent, size, table } from '../output/figures.ts'
import type { PredictedReport } from './predict.ts'

/** Maximum number of reasons shown. */
const MAX_REASONS = 3

const bytes = (r: Pick<LayerReport, 'denseBytes' | 'patternBytes'>): string =>
  `${size(r.denseBytes)} → ${size(r.patternBytes)}`

const expected = ({ predicted }: PredictedReport['layers'][number]): string =>
  predicted ? [predicted.before, predicted.after].map((t) => (t === null ? 'none' : ms(t))).join(' → ') : ''

/** The kernel and the cost model of the times, and the distinct reasons for missing times. */
function timeNotes({ prediction, layers }: PredictedReport): string[] {
  if (!prediction) return []
  const { kernel, device, chip, schedules } = prediction
  const reasons = [...new Set(layers.flatMap((l) => (l.predicted?.reason ? [l.predicted.reason] : [])))]
  const modelNote = chip === null ? '' : `; cost model of ${chip}, for comparisons only`
  const moreReasons =
    reasons.length > MAX_REASONS ? [`no time: ${reasons.length - MAX_REASONS} more reasons, in the JSON`] : []
  const shownReasons = reasons.slice(0, MAX_REASONS).map((w) => `no time: ${escapeLine(w)}`)
  return [
    `predicted time: ${kernel}${schedules.length > 0 ? ` under ${schedules.join(', ')}` : ''} on ${device}, dense weights → kept weights${modelNote}`,
    ...shownReasons,
    ...moreReasons,
  ]
}

function row(r: PredictedReport['layers'][number], times: boolean): string[] {
  return [
    escapeLine(r.name),
    `${count(r.rows)} × ${count(r.cols)}`,
    r.excluded ? 'excluded' : percent(r.sparsity),
    r.excluded ? '' : r.retainedNorm.toFixed(3),
    count(r.keptOutputs),
    r.tiles === null ? '' : count(r.tiles),
    ...(times ? [expected(r)] : []),
    bytes(r),
  ]
}

/** In quotes for a POSIX shell. */
const shellWord = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** One warning for each layer with almost no kept elements, with a remedy. */
export function* sparseLayerWarnings({ layers, sparseLayers, warnBelow }: PruneReport): Generator<string> {
  for (const { name, rows, cols, kept } of layers.filter((l) => sparseLayers.includes(l.name))) {
    const glob = globOf(name)
    const limit = `--limit ${shellWord(`${glob}=${Number((1 - warnBelow).toFixed(4))}`)}`
    yield `warning: layer ${escapeLine(name)} keeps ${count(kept)} of ${count(rows * cols)} elements, less than ${percent(warnBelow)}\n  = hint: ${limit} or --exclude ${shellWord(glob)}\n`
  }
}

export function reportText(r: PredictedReport): string {
  const times = r.prediction !== undefined
  const head = ['layer', 'outputs × inputs', 'sparsity', 'norm', 'outputs kept', 'tiles']
  const total = ['total', count(r.elements), percent(r.sparsity), r.retainedNorm.toFixed(3), '', '']
  const lines = table([
    [...head, ...(times ? ['predicted time'] : []), 'bytes, dense → pattern'],
    ...r.layers.map((l) => row(l, times)),
    [...total, ...(times ? [''] : []), bytes(r)],
  ])
  const title = `${r.pattern} for a sparsity of ${percent(r.target)}`
  return `${[title, ...lines, 'norm: ‖W ⊙ mask‖ / ‖W‖', ...timeNotes(r)].join('\n')}\n`
}
