/** Validates masks given by the user (`--masks`), and reports them like computed masks. */
import { checkMasks } from '../../prune/layers.ts'
import { type Layers, type Mask, type Pruned, type PruneOptions, prune } from '../../prune.ts'
import type { Call } from '../arguments/command.ts'
import { rejectUsage } from '../arguments/usage.ts'
import { CHECKABLE, type SelectedPattern } from './patterns.ts'

/** Options that select masks, and have no effect on given masks. */
const SELECTION_OPTIONS = ['sparsity', 'normalise', 'gradients', 'limit', 'exclude', 'after']

/** @throws UsageError */
export function checkMaskOptions(call: Call, { pattern, check }: SelectedPattern): void {
  const { command } = call
  if (call.one('masks') === undefined) return
  for (const option of SELECTION_OPTIONS)
    if (call.one(option) !== undefined)
      rejectUsage({
        command,
        message: `--${option} selects elements, but --masks already gives the masks`,
        expected: 'one of the two',
      })
  if (!check)
    rejectUsage({
      command,
      message: `given masks cannot be checked against ${pattern.text}`,
      expected: `--pattern ${CHECKABLE.join(' or ')}`,
    })
}

/** Layers without a mask are kept dense and excluded from totals. @throws SptError `prune/mask`, `prune/not-tile-wise` */
export async function pruneWithMasks(
  { shapes, weights }: Layers,
  masks: ReadonlyMap<string, Mask>,
  { pattern, check }: SelectedPattern,
  report: Pick<PruneOptions, 'warnBelow' | 'onProgress'>,
): Promise<Pruned> {
  const indices = shapes.flatMap((s, k) => (masks.has(s.name) ? [k] : []))
  const maskedShapes = indices.map((k) => shapes[k]!)
  const kept = maskedShapes.map((s) => masks.get(s.name)!)
  checkMasks('masks', kept, maskedShapes)
  const tiles = maskedShapes.flatMap((s, k) => {
    const layerTiles = check!(kept[k]!, s)
    return layerTiles ? [layerTiles] : []
  })
  const elements = kept.reduce((n, m) => n + m.length, 0)
  const prunedCount = kept.reduce((n, m) => m.reduce((sum, x) => sum + 1 - x, n), 0)
  const result = await prune(
    { shapes: maskedShapes, weights: (k) => weights(indices[k]!) },
    {
      pattern: {
        ...pattern,
        // A sparsity of 1 is not a valid target.
        sparsity: Math.min(prunedCount, elements - 1) / elements,
        minSparsity: 0,
        async masks({ scores }) {
          // Reading scores rejects weights that are not finite, as when masks are computed.
          for (const k of maskedShapes.keys()) await scores(k, 'given masks')
          return { kept, ...(tiles.length > 0 && { tiles }) }
        },
      },
      ...report,
    },
  )
  return {
    masks: shapes.map((s) => masks.get(s.name) ?? new Uint8Array(s.rows * s.cols).fill(1)),
    report: result.report,
  }
}
