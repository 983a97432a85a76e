/** Statistics of a pruning. */
import type { Checked } from './options.ts'
import { kept } from './patterns/parameters.ts'
import { weightsOf } from './scores.ts'
import { keptRows } from './tiles.ts'
import type { LayerMasks, LayerReport, Layers, Mask, Pruned, PruneReport } from './types.ts'

/** Reads every layer that was pruned once. */
export async function reportOf(
  layers: Layers,
  { pattern, sparsity, layers: chosen, normalise, warnBelow, onProgress }: Checked,
  { masks, rest, tiles }: Omit<Pruned, 'report'>,
): Promise<PruneReport> {
  const pruned = new Set(chosen)
  const total = { elements: 0, kept: 0, denseBytes: 0, patternBytes: 0 }
  const squares = { all: 0, kept: 0 }
  const out: LayerReport[] = []
  let done = 0
  for (const [k, shape] of layers.shapes.entries()) {
    const { name, rows, cols, valueBytes = 4 } = shape
    const elements = rows * cols
    const denseBytes = elements * valueBytes
    const of: LayerMasks = { shape, kept: masks[k]!, rest: rest?.[k] ?? null, tiles: tiles?.[k] ?? null }
    const base = { name, rows, cols, ...heldOf(of), denseBytes }
    if (!pruned.has(k)) {
      out.push({ ...base, excluded: true, retainedNorm: 1, tiles: null, patternBytes: denseBytes })
      continue
    }
    const norms = squaresOf(await weightsOf(layers, k), of)
    onProgress?.({ pass: 'report', layer: name, done: ++done, of: pruned.size })
    const patternBytes = pattern.bytes(of)
    out.push({
      ...base,
      excluded: false,
      retainedNorm: ratio(norms),
      tiles: of.tiles?.length ?? null,
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
    layers: out,
    sparseLayers: out.filter((l) => !l.excluded && isSparse(l, warnBelow)).map((l) => l.name),
    warnBelow,
  }
}

const isSparse = ({ rows, cols, kept }: LayerReport, least: number): boolean =>
  rows * cols > 0 && kept < least * rows * cols

function heldOf({ shape: { rows, cols }, kept: mask, rest }: LayerMasks) {
  const n = kept(mask) + (rest ? kept(rest) : 0)
  const both = (at: Mask): Int32Array => keptRows(at, rows, cols)
  const keptOutputs = rest ? new Set([...both(mask), ...both(rest)]).size : both(mask).length
  return { kept: n, sparsity: 1 - n / (rows * cols), keptOutputs }
}

function squaresOf(weights: Float32Array, { kept: mask, rest }: LayerMasks) {
  let all = 0
  let held = 0
  for (let i = 0; i < weights.length; i++) {
    const square = weights[i]! * weights[i]!
    all += square
    if (mask[i] === 1 || rest?.[i] === 1) held += square
  }
  return { all, kept: held }
}

const ratio = (squares: { readonly all: number; readonly kept: number }): number =>
  squares.all === 0 ? 1 : Math.sqrt(squares.kept / squares.all)
