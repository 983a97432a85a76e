/** Table of the patterns of `spt prune`: name, options and constructor. Help, checks and errors are derived from it. */
import {
  blockWise,
  elementWise,
  extractTiles,
  type LayerShape,
  type Mask,
  nOfM,
  type Pattern,
  type Tile,
  tileElementWise,
  tileVectorWise,
  tileWise,
  vectorNOfM,
} from '../../prune.ts'
import type { Call, OptionSpec } from '../arguments/command.ts'
import { rejectUsage } from '../arguments/usage.ts'

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

/** Patterns that support given masks. */
export const CHECKABLE = names.filter((n) => PATTERNS[n]!.check)

/** @throws UsageError, SptError `prune/parameter`, `prune/delta` */
export function patternOf(call: Call): SelectedPattern {
  const { command } = call
  const ratio = /^(\d+):(\d+)$/.exec(call.one('pattern') ?? '')
  if (ratio)
    rejectUsage({
      command,
      message: `--pattern ${ratio[0]} is the pattern nm with its parameters`,
      hint: `--pattern nm --n ${ratio[1]} --m ${ratio[2]}`,
    })
  const name = call.choice('pattern', names)
  if (name === undefined)
    return rejectUsage({
      command,
      message: 'a pattern is missing',
      expected: `--pattern ${names.join(', ')}`,
    })
  const { parameters: parameterNames, createPattern, check } = PATTERNS[name]!
  const options = parameterNames.map((p) => `--${p}`).join(' ')
  for (const p of parameters)
    if (call.one(p) !== undefined && !parameterNames.includes(p))
      rejectUsage({
        command,
        message: `--${p} is not an option of ${name}`,
        expected: options === '' ? `--pattern ${name} alone` : `${options}, which ${name} takes`,
      })
  const values: Values = Object.fromEntries(
    parameterNames.map((p) => [
      p,
      call.number(p) ??
        rejectUsage({
          command,
          message: `${name} needs --${p}`,
          expected: `${flags(p)}: ${PARAMETERS[p][1]}`,
        }),
    ]),
  )
  return {
    pattern: createPattern(values),
    check: check ? (mask, layer) => check(mask, layer, values) : null,
  }
}
