/** Layers → masks. */
import { checked, type PruneOptions } from './options.ts'
import { reportOf } from './report.ts'
import { scored } from './scores.ts'
import type { Layers, Pruned } from './types.ts'

/**
 * Which elements of layers are kept, in a pattern and at a sparsity over all of them. Layers are read once for each pass
 * of the pattern, and once for the report; memory is that of the masks and a few layers.
 * @throws SptError `api/argument`, `api/unknown-option`, `prune/…`
 */
export async function prune(layers: Layers, options: PruneOptions): Promise<Pruned> {
  const choice = checked(layers, options)
  const { pattern, sparsity, after } = choice
  const made = await pattern.masks(scored(layers, choice), sparsity)
  const place = new Map(choice.layers.map((layer, k) => [layer, k]))
  /** What a layer that was not pruned has. */
  const byLayer = <T>(of: readonly T[], other: (elements: number, layer: number) => T): T[] =>
    layers.shapes.map(({ rows, cols }, layer) => {
      const k = place.get(layer)
      return k === undefined ? other(rows * cols, layer) : of[k]!
    })
  const masks = {
    masks: byLayer(made.kept, (n, layer) => after?.[layer] ?? new Uint8Array(n).fill(1)),
    ...(made.rest && { rest: byLayer(made.rest, (n) => new Uint8Array(n)) }),
    ...(made.tiles && { tiles: byLayer(made.tiles, () => []) }),
  }
  return { ...masks, report: await reportOf(layers, choice, masks) }
}
