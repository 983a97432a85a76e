/** Prunes layers: selects kept elements in a pattern, at a sparsity over all layers. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord } from '../ast/diagnostics/expect-argument.ts'
import { checkMasks, countKept } from './layers.ts'
import { checkOptions, type PruneOptions, TOLERANCE } from './options.ts'
import { elementWise } from './patterns/element-wise.ts'
import { type CheckedOptions, scoreLayers, weightsOf } from './scores.ts'
import { targetOf } from './selection.ts'
import { keptRows } from './tiles.ts'
import type {
  LayerMasks,
  LayerReport,
  LayerScores,
  Layers,
  Mask,
  Pattern,
  PatternMasks,
  Pruned,
  PruneReport,
} from './types.ts'

/**
 * Selects the elements that layers keep, in a pattern and at a sparsity over all layers. Layers are read once for each pass of the
 * pattern, and once for the report. Memory holds the masks and a few layers.
 * @throws SptError `api/argument`, `api/unknown-option`, `prune/…`
 */
export async function prune(layers: Layers, options: PruneOptions): Promise<Pruned> {
  const checked = checkOptions(layers, options)
  const { pattern, sparsity, previousMasks } = checked
  const indices = new Map(checked.layers.map((layer, k) => [layer, k]))
  /** Extends a list over the pruned layers to all layers, with `other` for layers that were not pruned. */
  const byLayer = <T>(list: readonly T[], other: (elements: number, layer: number) => T): T[] =>
    layers.shapes.map(({ rows, cols }, layer) => {
      const k = indices.get(layer)
      return k === undefined ? other(rows * cols, layer) : list[k]!
    })
  const unpruned = (n: number, layer: number): Mask => previousMasks?.[layer] ?? new Uint8Array(n).fill(1)
  let scoredLayers = scoreLayers(layers, checked)
  if (checked.apriori !== undefined) {
    const { kept } = await elementWise().masks(scoredLayers, checked.apriori)
    scoredLayers = scoreLayers(layers, { ...checked, previousMasks: byLayer(kept, unpruned) })
  }
  const patternMasks = checkPatternMasks(pattern, await pattern.masks(scoredLayers, sparsity), scoredLayers)
  const masks = {
    masks: byLayer(patternMasks.kept, unpruned),
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
      failWith(
        'prune/mask',
        `${text} has row ${Math.floor(duplicate / cols)}, column ${duplicate % cols} of layer ${name} in kept and in rest`,
        { expected: 'single elements outside the kept tiles' },
      )
    const prunedCount = rows * cols - countKept(masks[k]!) - (rest ? countKept(rest[k]!) : 0)
    const maxPruned = targetOf(Math.min(1, limits[k]! + TOLERANCE), rows * cols)
    if (prunedCount > maxPruned)
      failWith(
        'prune/limit',
        `${text} cannot keep to the limit ${limits[k]} of layer ${name}: ${prunedCount} of ${rows * cols} elements would be pruned`,
        {
          expected: `at most ${maxPruned}`,
          hint: 'exclude the layer, raise its limit, or take tiles of another size',
        },
      )
  }
  return patternMasks
}

// Computes the report of a pruning.

/** The report; reads every pruned layer once. */
async function reportOf(
  layers: Layers,
  { pattern, sparsity, layers: included, normalise, warnBelow, onProgress }: CheckedOptions,
  { masks, rest, tiles }: Omit<Pruned, 'report'>,
): Promise<PruneReport> {
  const pruned = new Set(included)
  const total = { elements: 0, kept: 0, denseBytes: 0, patternBytes: 0 }
  const squares = { all: 0, kept: 0 }
  const reports: LayerReport[] = []
  let done = 0
  for (const [k, shape] of layers.shapes.entries()) {
    const { name, rows, cols, valueBytes = 4 } = shape
    const elements = rows * cols
    const denseBytes = elements * valueBytes
    const layerMasks: LayerMasks = {
      shape,
      kept: masks[k]!,
      rest: rest?.[k] ?? null,
      tiles: tiles?.[k] ?? null,
    }
    const base = { name, rows, cols, ...keptStatistics(layerMasks), denseBytes }
    if (!pruned.has(k)) {
      reports.push({ ...base, excluded: true, retainedNorm: 1, tiles: null, patternBytes: denseBytes })
      continue
    }
    const norms = squareSums(await weightsOf(layers, k), layerMasks)
    onProgress?.({ pass: 'report', layer: name, done: ++done, of: pruned.size })
    const patternBytes = pattern.bytes(layerMasks)
    reports.push({
      ...base,
      excluded: false,
      retainedNorm: ratio(norms),
      tiles: layerMasks.tiles?.length ?? null,
      patternBytes,
    })
    total.elements += elements
    total.kept += base.kept
    total.denseBytes += denseBytes
    total.patternBytes += patternBytes
    squares.all += norms.all
    squares.kept += norms.kept
  }
  return {
    pattern: pattern.text,
    target: sparsity,
    normalise,
    ...total,
    sparsity: 1 - total.kept / total.elements,
    retainedNorm: ratio(squares),
    layers: reports,
    sparseLayers: reports.filter((l) => !l.excluded && isSparse(l, warnBelow)).map((l) => l.name),
    warnBelow,
  }
}

const isSparse = ({ rows, cols, kept }: LayerReport, threshold: number): boolean =>
  rows * cols > 0 && kept < threshold * rows * cols

function keptStatistics({ shape: { rows, cols }, kept: mask, rest }: LayerMasks) {
  const n = countKept(mask) + (rest ? countKept(rest) : 0)
  const keptRowsOf = (layerMask: Mask): Int32Array => keptRows(layerMask, rows, cols)
  const keptOutputs = rest
    ? new Set([...keptRowsOf(mask), ...keptRowsOf(rest)]).size
    : keptRowsOf(mask).length
  return { kept: n, sparsity: 1 - n / (rows * cols), keptOutputs }
}

function squareSums(weights: Float32Array, { kept: mask, rest }: LayerMasks) {
  let all = 0
  let keptSum = 0
  for (let i = 0; i < weights.length; i++) {
    const square = weights[i]! * weights[i]!
    all += square
    if (mask[i] === 1 || rest?.[i] === 1) keptSum += square
  }
  return { all, kept: keptSum }
}

const ratio = (squares: { readonly all: number; readonly kept: number }): number =>
  squares.all === 0 ? 1 : Math.sqrt(squares.kept / squares.all)
