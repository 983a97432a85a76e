/** Table of the patterns of `spt prune`: name, options and constructor. Help, checks and errors are derived from it. */

import { checkMasks } from '../../prune/layers.ts'
import {
  blockWise,
  elementWise,
  extractTiles,
  type LayerShape,
  type Layers,
  type Mask,
  nOfM,
  type Pattern,
  type Pruned,
  type PruneOptions,
  prune,
  type Tile,
  tileElementWise,
  tileVectorWise,
  tileWise,
  vectorNOfM,
} from '../../prune.ts'
import type { Call, OptionSpec } from '../arguments/command.ts'

const PARAMETERS = {
  granularity: ['G', 'outputs of a tile'],
  delta: ['D', 'share of all elements that are kept outside the tiles, such as 0.01'],
  rows: ['R', 'outputs of a block'],
  cols: ['C', 'inputs of a block'],
  n: ['N', 'kept inputs of each group'],
  m: ['M', 'size of a group of neighbouring inputs'],
  v: ['V', 'outputs that keep the same four of every m inputs'],
} as const

type Parameter = keyof typeof PARAMETERS
type Values = Readonly<Partial<Record<Parameter, number>>>
/** Tiles of a given mask. @throws SptError if the pattern has no such masks */
type MaskCheck = (mask: Mask, layer: LayerShape, values: Values) => readonly Tile[] | null

interface PatternSpec {
  readonly about: string
  readonly parameters: readonly Parameter[]
  readonly createPattern: (values: Values) => Pattern
  readonly check?: MaskCheck
}

const patternSpec = <P extends Parameter>(
  about: string,
  parameterNames: readonly P[],
  createPattern: (values: Readonly<Record<P, number>>) => Pattern,
  check?: MaskCheck,
): PatternSpec => ({
  about,
  parameters: parameterNames,
  createPattern: (values) => createPattern(values as Readonly<Record<P, number>>),
  ...(check && { check }),
})

const PATTERNS: Readonly<Record<string, PatternSpec>> = {
  ew: patternSpec(
    'single elements',
    [],
    () => elementWise(),
    () => null,
  ),
  tw: patternSpec(
    'tiles: whole outputs, then inputs of each group of G remaining outputs',
    ['granularity'],
    tileWise,
    (mask, { name, rows, cols }, { granularity }) => extractTiles(mask, rows, cols, granularity!, name),
  ),
  tew: patternSpec('tiles, and single elements outside the tiles', ['granularity', 'delta'], tileElementWise),
  tvw: patternSpec(
    'tiles with 2:4 sparsity along the inputs of each output',
    ['granularity'],
    tileVectorWise,
  ),
  bw: patternSpec('blocks', ['rows', 'cols'], blockWise),
  nm: patternSpec('n:m sparsity along the inputs of each output', ['n', 'm'], nOfM),
  vnm: patternSpec(
    'v outputs keep the same four of every m inputs, and each output n of the four',
    ['v', 'n', 'm'],
    vectorNOfM,
  ),
}

const names = Object.keys(PATTERNS)
const parameters = Object.keys(PARAMETERS) as Parameter[]
const flags = (p: Parameter): string => `--${p} <${PARAMETERS[p][0]}>`

export const PATTERN: OptionSpec = {
  flags: '--pattern <P>',
  about: `Pattern of kept elements: ${names.join(', ')}`,
}

export const PARAMETER_OPTIONS: readonly OptionSpec[] = parameters.map((p) => ({
  flags: flags(p),
  about: `For ${names.filter((n) => PATTERNS[n]!.parameters.includes(p)).join(', ')}: ${PARAMETERS[p][1]}`,
}))

/** For help: a pattern on each line. */
export const PATTERN_NOTE = `Patterns:\n${names
  .map(
    (n) =>
      `  ${n.padEnd(5)}${PATTERNS[n]!.about} (${PATTERNS[n]!.parameters.map(flags).join(' ') || 'no options'})`,
  )
  .join('\n')}`

export interface SelectedPattern {
  readonly pattern: Pattern
  /** Validates given masks; `null` if the pattern cannot be checked. */
  readonly check: ((mask: Mask, layer: LayerShape) => readonly Tile[] | null) | null
}

const CHECKABLE = names.filter((n) => PATTERNS[n]!.check)

/** @throws UsageError, SptError `prune/parameter`, `prune/delta` */
export function patternOf(call: Call): SelectedPattern {
  const ratio = /^(\d+):(\d+)$/.exec(call.one('pattern') ?? '')
  if (ratio)
    call.reject(`--pattern ${ratio[0]} is the pattern nm with its parameters`, {
      hint: `--pattern nm --n ${ratio[1]} --m ${ratio[2]}`,
    })
  const name = call.choice('pattern', names)
  if (name === undefined)
    return call.reject('a pattern is missing', { expected: `--pattern ${names.join(', ')}` })
  const { parameters: parameterNames, createPattern, check } = PATTERNS[name]!
  const options = parameterNames.map((p) => `--${p}`).join(' ')
  for (const p of parameters)
    if (call.one(p) !== undefined && !parameterNames.includes(p))
      call.reject(`--${p} is not an option of ${name}`, {
        expected: options === '' ? `--pattern ${name} alone` : `${options}, which ${name} takes`,
      })
  const values: Values = Object.fromEntries(
    parameterNames.map((p) => [
      p,
      call.number(p) ?? call.reject(`${name} needs --${p}`, { expected: `${flags(p)}: ${PARAMETERS[p][1]}` }),
    ]),
  )
  return { pattern: createPattern(values), check: check ? (mask, layer) => check(mask, layer, values) : null }
}

// Validates masks given by the user (`--masks`), and reports them like computed masks.

/** @throws UsageError */
export function checkMaskOptions(call: Call, { pattern, check }: SelectedPattern): void {
  if (call.one('masks') === undefined) return
  if (!check)
    call.reject(`given masks cannot be checked against ${pattern.text}`, {
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
