/** Checks the options of `prune` before any layer is read. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, expectOptions, isRecord, show } from '../ast/diagnostics/expect-argument.ts'
import { checkLayers, checkMasks } from './layers.ts'
import { type CheckedOptions, NORMS } from './scores.ts'
import type { LayerShape, Layers, Mask, Normalise, Pattern, PruneProgress } from './types.ts'

/** Maximum sparsity of layers by name, with `*` and `?`; the smallest limit of a layer applies. */
export type SparsityLimits = Readonly<Record<string, number>>

export interface PruneSettings {
  readonly pattern: Pattern
  /** Names of layers, with `*` and `?`, that are not pruned and not counted in totals. */
  readonly exclude?: readonly string[]
  readonly limits?: SparsityLimits
  /** Normalisation of scores that makes vectors and blocks of different sizes comparable (default: root). */
  readonly normalise?: Normalise
  /** The report lists layers that keep a smaller share of their elements (default: a tenth of 1 − sparsity). */
  readonly warnBelow?: number | undefined
  readonly onProgress?: (progress: PruneProgress) => void
}

export interface PruneOptions extends PruneSettings {
  /** Sparsity in [0, 1) over all layers that are not excluded; optional if the pattern determines it. */
  readonly sparsity?: number
  /** Masks of an earlier stage, by layer: elements that it pruned count as 0. */
  readonly previousMasks?: readonly Mask[]
  /**
   * Apriori tuning (Guo et al., SC 2020, section 5.2): a sparsity in [0, 1), usually that of the last stage. Elements that
   * element-wise pruning at this sparsity would prune count as 0.
   */
  readonly apriori?: number | undefined
}

export const SETTINGS = ['pattern', 'exclude', 'limits', 'normalise', 'warnBelow', 'onProgress'] as const

/** Threshold relative to the average share of kept elements. */
const WARN_BELOW = 0.1

/** @throws SptError `api/argument`, `api/unknown-option`, `prune/…` */
export function checkOptions(layers: Layers, options: PruneOptions): CheckedOptions {
  checkLayers(layers)
  expectOptions('prune', options, [...SETTINGS, 'sparsity', 'previousMasks', 'apriori'])
  const { pattern, exclude = [], limits = {}, normalise = 'root', previousMasks, onProgress } = options
  checkPattern(pattern)
  expectArgument(Array.isArray(exclude), 'exclude', exclude, 'a list of names')
  for (const g of exclude) expectArgument(typeof g === 'string', 'a name in exclude', g, 'a string')
  expectArgument(
    typeof normalise === 'string' && Object.hasOwn(NORMS, normalise),
    'normalise',
    normalise,
    Object.keys(NORMS).join(' or '),
  )
  const sparsity = checkSparsity(pattern, options.sparsity)
  const { warnBelow = WARN_BELOW * (1 - sparsity) } = options
  expectArgument(warnBelow >= 0 && warnBelow <= 1, 'warnBelow', warnBelow, 'a number from 0 to 1')
  checkApriori(options.apriori)
  if (previousMasks !== undefined) checkMasks('after', previousMasks, layers.shapes)
  checkCallback('onProgress', onProgress)
  const names = layers.shapes.map((s) => s.name)
  const excluded = new Set(exclude.flatMap((glob) => matchingLayers('exclude', glob, names)))
  const allLimits = layerLimits(pattern, limits, layers.shapes)
  const included = names.flatMap((_, k) => (excluded.has(k) ? [] : [k]))
  if (included.length === 0)
    failWith('prune/layers', 'every layer is excluded', {
      expected: 'at least one layer that is not excluded',
    })
  return {
    pattern,
    sparsity,
    layers: included,
    limits: included.map((k) => allLimits[k]!),
    previousMasks,
    apriori: options.apriori,
    normalise,
    warnBelow,
    onProgress,
  }
}

/** @throws SptError `api/argument` */
export const checkApriori = (sparsity: unknown): void =>
  expectArgument(
    sparsity === undefined || (typeof sparsity === 'number' && sparsity >= 0 && sparsity < 1),
    'apriori',
    sparsity,
    'a sparsity of at least 0 and less than 1',
  )

/** @throws SptError `api/argument` */
export const checkPattern = (pattern: unknown): void =>
  expectArgument(
    isRecord(pattern) && typeof pattern.masks === 'function' && typeof pattern.bytes === 'function',
    'pattern',
    pattern,
    'a pattern, such as tileWise({ granularity: 128 })',
  )

/** @throws SptError `api/argument` */
export const checkCallback = (subject: string, callback: unknown): void =>
  expectArgument(callback === undefined || typeof callback === 'function', subject, callback, 'a function')

/** Tolerance of comparisons, because sparsities are written with few digits. */
export const TOLERANCE = 1e-9

export function checkSparsity(pattern: Pattern, sparsity: number | undefined): number {
  const { text, sparsity: fixed, minSparsity = 0 } = pattern
  const requested = sparsity ?? fixed
  const reject = (expected: string): never =>
    failWith(
      'prune/sparsity',
      requested === undefined ? `${text} needs a sparsity` : `a sparsity of ${show(requested)} with ${text}`,
      { expected },
    )
  if (typeof requested !== 'number' || !(requested >= 0 && requested < 1))
    return reject('at least 0 and less than 1')
  if (fixed !== undefined && Math.abs(requested - fixed) > TOLERANCE)
    return reject(`${fixed}, which follows from the pattern`)
  if (requested < minSparsity - TOLERANCE) return reject(`at least ${minSparsity}, which every layer gets`)
  return requested
}

/** Limit of each layer; by default a layer keeps a tile. @throws SptError `api/argument`, `prune/limit`, `prune/unknown-layer` */
export function layerLimits(
  { text, minSparsity = 0, leastKept = 0 }: Pattern,
  limits: SparsityLimits,
  shapes: readonly LayerShape[],
): readonly number[] {
  const names = shapes.map((s) => s.name)
  expectArgument(isRecord(limits), 'limits', limits, 'an object of numbers by name')
  const named = new Map<number, number>()
  for (const [glob, limit] of Object.entries(limits)) {
    if (!(limit >= minSparsity - TOLERANCE && limit <= 1))
      failWith('prune/limit', `a limit of ${show(limit)} for ${glob} with ${text}`, {
        expected: `a number from ${minSparsity} to 1`,
        hint: minSparsity > 0 ? 'exclude layers that are to keep more' : 'limits are sparsities',
      })
    for (const k of matchingLayers('limits', glob, names)) named.set(k, Math.min(named.get(k) ?? 1, limit))
  }
  return shapes.map(({ rows, cols }, k) => named.get(k) ?? 1 - Math.min(1, leastKept / (rows * cols || 1)))
}

// Glob patterns for layer names: `*` matches any text, `?` any one character, `\` quotes the next character;
// all others match themselves.

/** True if the pattern matches the complete name. */
export function matches(glob: string, name: string): boolean {
  const expression = glob.replace(/\\(.)|./gs, (c, quoted: string | undefined) =>
    c === '*' ? '.*' : c === '?' ? '.' : (quoted ?? c).replace(/[^\w\s]/, '\\$&'),
  )
  return new RegExp(`^${expression}$`, 's').test(name)
}

/** The pattern that matches one name; control characters, which command lines do not show, become `?`. */
export const globOf = (name: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is meant.
  name.replace(/[\\*?]/g, '\\$&').replace(/[\u0000-\u001f\u007f-\u009f]/g, '?')

/** Indices of the matching names. @throws SptError `prune/unknown-layer` if none matches */
function matchingLayers(option: string, glob: string, names: readonly string[]): readonly number[] {
  const indices = names.flatMap((name, k) => (matches(glob, name) ? [k] : []))
  if (indices.length === 0)
    failWith('prune/unknown-layer', `${option}: no layer is called ${glob}`, {
      lookup: { name: glob, candidates: names },
    })
  return indices
}
