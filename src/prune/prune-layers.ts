/** Prunes layers: selects kept elements in a pattern, at a sparsity over all layers. */
import { fail } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord } from '../ast/diagnostics/expect-argument.ts'
import { checkMasks } from './layers.ts'
import { checkOptions, type PruneOptions, TOLERANCE } from './options.ts'
import { countKept } from './patterns/parameters.ts'
import { reportOf } from './report.ts'
import { scoreLayers } from './scores.ts'
import { targetOf } from './selection.ts'
import type { LayerScores, Layers, Pattern, PatternMasks, Pruned } from './types.ts'

/**
 * Selects the elements that layers keep, in a pattern and at a sparsity over all layers. Layers are read once for each pass of the
 * pattern, and once for the report. Memory holds the masks and a few layers.
 * @throws SptError `api/argument`, `api/unknown-option`, `prune/…`
 */
export async function prune(layers: Layers, options: PruneOptions): Promise<Pruned> {
  const checked = checkOptions(layers, options)
  const { pattern, sparsity, previousMasks } = checked
  const scoredLayers = scoreLayers(layers, checked)
  const patternMasks = checkPatternMasks(pattern, await pattern.masks(scoredLayers, sparsity), scoredLayers)
  const indices = new Map(checked.layers.map((layer, k) => [layer, k]))
  /** Extends a list over the pruned layers to all layers, with `other` for layers that were not pruned. */
  const byLayer = <T>(list: readonly T[], other: (elements: number, layer: number) => T): T[] =>
    layers.shapes.map(({ rows, cols }, layer) => {
      const k = indices.get(layer)
      return k === undefined ? other(rows * cols, layer) : list[k]!
    })
  const masks = {
    masks: byLayer(patternMasks.kept, (n, layer) => previousMasks?.[layer] ?? new Uint8Array(n).fill(1)),
    ...(patternMasks.rest && { rest: byLayer(patternMasks.rest, (n) => new Uint8Array(n)) }),
    ...(patternMasks.tiles && { tiles: byLayer(patternMasks.tiles, () => []) }),
  }
  return { ...masks, report: await reportOf(layers, checked, masks) }
}

/**
 * Validates the masks returned by a pattern, which may be user code: no element is in both masks, and the limits of layers
 * hold.
 * @throws SptError `api/argument`, `prune/shape`, `prune/mask`, `prune/limit`
 */
function checkPatternMasks(
  { text }: Pattern,
  patternMasks: PatternMasks,
  scoredLayers: LayerScores,
): PatternMasks {
  const { shapes, limits } = scoredLayers
  expectArgument(
    isRecord(patternMasks),
    `what ${text} gave`,
    patternMasks,
    '{ kept } and perhaps rest and tiles',
  )
  const { kept: masks, rest, tiles } = patternMasks
  checkMasks(`kept of ${text}`, masks, shapes)
  if (rest !== undefined) checkMasks(`rest of ${text}`, rest, shapes)
  if (tiles !== undefined)
    expectArgument(
      Array.isArray(tiles) && tiles.length === shapes.length && tiles.every(Array.isArray),
      `tiles of ${text}`,
      tiles,
      'a list of tiles for each layer',
    )
  for (const [k, { name, rows, cols }] of shapes.entries()) {
    const duplicate = rest?.[k]?.findIndex((x, i) => x === 1 && masks[k]![i] === 1) ?? -1
    if (duplicate >= 0)
      fail({
        code: 'prune/mask',
        message: `${text} has row ${Math.floor(duplicate / cols)}, column ${duplicate % cols} of layer ${name} in kept and in rest`,
        expected: 'single elements outside the kept tiles',
      })
    const prunedCount = rows * cols - countKept(masks[k]!) - (rest ? countKept(rest[k]!) : 0)
    const maxPruned = targetOf(Math.min(1, limits[k]! + TOLERANCE), rows * cols)
    if (prunedCount > maxPruned)
      fail({
        code: 'prune/limit',
        message: `${text} cannot keep to the limit ${limits[k]} of layer ${name}: ${prunedCount} of ${rows * cols} elements would be pruned`,
        expected: `at most ${maxPruned}`,
        hint: 'exclude the layer, raise its limit, or take tiles of another size',
      })
  }
  return patternMasks
}
