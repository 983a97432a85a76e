/** What `spt prune` tells, for people. */
import { escapedLine } from '../../ast/render.ts'
import type { LayerReport, PruneReport } from '../../prune.ts'
import { count, percent, size, table } from '../figures.ts'

const bytes = (r: Pick<LayerReport, 'denseBytes' | 'patternBytes'>): string =>
  `${size(r.denseBytes)} → ${size(r.patternBytes)}`

function row(r: LayerReport): string[] {
  return [
    escapedLine(r.name),
    `${count(r.rows)} × ${count(r.cols)}`,
    r.excluded ? 'excluded' : percent(r.sparsity),
    r.excluded ? '' : r.retainedNorm.toFixed(3),
    count(r.keptOutputs),
    r.tiles === null ? '' : count(r.tiles),
    bytes(r),
  ]
}

export function human(r: PruneReport): string {
  const lines = table([
    ['layer', 'outputs × inputs', 'sparsity', 'norm', 'outputs kept', 'tiles', 'bytes → in the pattern'],
    ...r.layers.map(row),
    ['together', count(r.elements), percent(r.sparsity), r.retainedNorm.toFixed(3), '', '', bytes(r)],
  ])
  const asked = `${r.pattern} for a sparsity of ${percent(r.target)}`
  return `${[asked, ...lines, 'norm: ‖W ⊙ mask‖ / ‖W‖'].join('\n')}\n`
}
