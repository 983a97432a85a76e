/** Computes the report of a pruning. */
import type { CheckedOptions } from './options.ts'
import { countKept } from './patterns/parameters.ts'
import { weightsOf } from './scores.ts'
import { keptRows } from './tiles.ts'
import type { LayerMasks, LayerReport, Layers, Mask, Pruned, PruneReport } from './types.ts'

/** The report; reads every pruned layer once. */
export async function reportOf(
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
