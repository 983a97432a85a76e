/** Layers → masks. */
import { fail } from '../ast/diagnostic.ts'
import { expectArgument, isRecord } from '../ast/expect-argument.ts'
import { checkMasks } from './layers.ts'
import { checked, NEAR, type PruneOptions } from './options.ts'
import { kept } from './patterns/parameters.ts'
import { reportOf } from './report.ts'
import { scored } from './scores.ts'
import { targetOf } from './selection.ts'
import type { Layers, Pattern, PatternMasks, Pruned, Scored } from './types.ts'

/**
 * Chooses the elements that layers keep, in a pattern and at a sparsity over all layers together. Layers are read once for
 * each pass of the pattern, and once for the report; memory is that of the masks and a few layers.
 * @throws SptError `api/argument`, `api/unknown-option`, `prune/…`
 */
export async function prune(layers: Layers, options: PruneOptions): Promise<Pruned> {
  const choice = checked(layers, options)
  const { pattern, sparsity, after } = choice
  const given = scored(layers, choice)
  const made = checkedMasks(pattern, await pattern.masks(given, sparsity), given)
  const place = new Map(choice.layers.map((layer, k) => [layer, k]))
  /** Extends a list over the pruned layers to all layers, with `other` for layers that were not pruned. */
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

/**
 * Validates the masks returned by a pattern, which may be user code: no element is in both masks, and the limits of layers
 * hold.
 * @throws SptError `api/argument`, `prune/shape`, `prune/mask`, `prune/limit`
 */
function checkedMasks({ text }: Pattern, made: PatternMasks, given: Scored): PatternMasks {
  const { shapes, limits } = given
  expectArgument(isRecord(made), `what ${text} gave`, made, '{ kept } and perhaps rest and tiles')
  const { kept: masks, rest, tiles } = made
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
    const twice = rest?.[k]?.findIndex((x, i) => x === 1 && masks[k]![i] === 1) ?? -1
    if (twice >= 0)
      fail({
        code: 'prune/mask',
        message: `${text} has row ${Math.floor(twice / cols)}, column ${twice % cols} of layer ${name} in kept and in rest`,
        expected: 'single elements outside the kept tiles',
      })
    const lost = rows * cols - kept(masks[k]!) - (rest ? kept(rest[k]!) : 0)
    const most = targetOf(Math.min(1, limits[k]! + NEAR), rows * cols)
    if (lost > most)
      fail({
        code: 'prune/limit',
        message: `${text} cannot keep to the limit ${limits[k]} of layer ${name}: ${lost} of ${rows * cols} elements would be pruned`,
        expected: `at most ${most}`,
        hint: 'exclude the layer, raise its limit, or take tiles of another size',
      })
  }
  return made
}
