/** Report of `spt show --space`: decisions of a space, number of points, and reasons for rejection. */
import { Random } from '../../run/bind/random-tensors.ts'
import { type Outline, type OutlinedDecision, outline } from '../../search/outline/index.ts'
import { atOnce } from '../../search/stepwise.ts'
import { anyPoint } from '../../search/strategies/unseen.ts'
import { refusalOf, survey } from '../../search/survey.ts'
import type { DecisionValue, KernelSpace } from '../../search/types.ts'
import { count } from '../figures.ts'
import { USUAL_SURVEY } from './space-option.ts'
import { byFrequency } from './tuned.ts'

/** Numbers on a line. */
const SHOWN = 16
/** Values of an earlier decision that are named, and letters of each. */
const NAMED = 3
const LETTERS = 32
/** Significant digits of an estimate. */
const DIGITS = 2
/** Seed of random points, fixed for reproducible reports. */
const SEED = 1

type Row = readonly [string, string]

/** Limit for decisions with thousands of values: a random point evaluates all of them, about a second's worth in total. */
const SURVEYED_VALUES = 1_000_000
const FEWEST = 10

/**
 * @param tried maximum number of points to apply; 0: none; `undefined`: about a second's worth
 * @param progress description of
 * the current work, for a terminal
 */
export function spaceReport(
  space: KernelSpace<unknown>,
  name: string,
  on: string,
  tried: number | undefined,
  progress: (line: string) => void = () => {},
): string {
  progress('counting points …')
  const found = outline(space)
  progress('trying points …')
  const generator = new Random(SEED)
  const random = (): number => generator.next()
  const head: Row[] = [
    ['space', `${name} on ${on}`],
    ['points', pointsOf(found)],
    ...(!found.isExact && found.points === 0
      ? rarePoint(space, random)
      : surveyRows(space, found, tried, random)),
  ]
  progress('')
  const width = Math.max(
    ...[...head.map(([n]) => n), ...found.decisions.map((d) => d.name)].map((n) => n.length),
  )
  const lines = head.map(([n, text]) => `${n.padEnd(width)}  ${text}\n`)
  return [...lines, '\n', ...found.decisions.map((d) => decisionText(d, found, width))].join('')
}

const pointsOf = ({ points, isExact }: Outline): string =>
  isExact
    ? count(points)
    : points === 0
      ? 'few: a sample found none'
      : `about ${count(Number(points.toPrecision(DIGITS)))}, estimated from a sample`

/** Finds a legal point if all random walks failed. @throws SptError `search/dead-ends` if a search would find none either */
function rarePoint(space: KernelSpace<unknown>, random: () => number): Row[] {
  const point = atOnce(anyPoint(space, random))
  if (!point) return []
  const refused = refusalOf(space, point)
  const text = Object.entries(point).map(([name, value]) => `${name} = ${shortened(value)}`)
  return [['rare', `one is ${text.join(', ')}${refused ? `, which is refused: ${refused}` : ''}`]]
}

function surveyRows(
  space: KernelSpace<unknown>,
  { decisions, isExact, points }: Outline,
  asked: number | undefined,
  random: () => number,
): Row[] {
  if (asked === 0) return []
  const values = decisions.reduce((n, d) => n + d.values.length + d.unsure.length, 0)
  const affordable = Math.max(FEWEST, Math.floor(SURVEYED_VALUES / Math.max(values, 1)))
  const tried = asked ?? Math.min(USUAL_SURVEY, affordable)
  const isAll = isExact && points <= tried
  const { legal, rejectedByCode } = survey(space, { limit: tried, ...(isAll ? {} : { random }) })
  const rejected = byFrequency(rejectedByCode)
  const all = Object.values(rejectedByCode).reduce((n, x) => n + x, legal)
  const isScaled = asked === undefined && tried < USUAL_SURVEY && !isAll
  const more = isScaled
    ? ` (fewer than ${USUAL_SURVEY}: each has ${count(values)} values to draw from; --survey ${USUAL_SURVEY})`
    : ''
  return [
    ['legal', `${count(legal)} of ${isAll ? `all ${count(all)}` : `${count(all)} that were drawn`}${more}`],
    ...(rejected === '' ? [] : [['rejected', rejected] as const]),
  ]
}

/** Numbers on a line, texts on one each, after how many points they are. */
function decisionText(d: OutlinedDecision, { decisions }: Outline, width: number): string {
  const after = d.after.map((a) => afterText(a, decisions.find((o) => o.name === a.name)!.values))
  const tail = after.length > 0 ? `, with ${after.join(' and ')}` : ''
  const head = d.name.padEnd(width)
  if ([...d.values, ...d.unsure].every((v) => typeof v === 'number')) {
    // A sample of thousands finds points with a few of them.
    if (d.unsure.length > SHOWN) {
      const all = [...d.values, ...d.unsure].sort((a, b) => Number(a) - Number(b))
      return `${head}  ${numbersText(all)}${tail}; the sample has points with ${count(d.values.length)} of them\n`
    }
    const found = d.values.length > 0 ? `${numbersText(d.values)}${tail}` : ''
    const unsure = d.unsure.length > 0 ? `no point was found with ${numbersText(d.unsure)}` : ''
    return `${head}  ${[found, unsure].filter((text) => text).join('; ')}\n`
  }
  const numbers = [...(d.points ?? []).map(count), ...(d.unsure.length > 0 ? [UNSURE] : [])]
  const high = Math.max(0, ...numbers.map((n) => n.length))
  const line = (number: string, v: DecisionValue): string =>
    `  ${high > 0 ? `${number.padStart(high)}  ` : ''}${v === '' ? '(nothing)' : v}\n`
  const about = [
    ...(d.points ? [', with the points of each'] : []),
    tail,
    ...(d.unsure.length > 0 ? [`; ${UNSURE}: no point was found with it`] : []),
  ]
  const lines = [
    ...d.values.map((v, k) => line(d.points ? numbers[k]! : '', v)),
    ...d.unsure.map((v) => line(UNSURE, v)),
  ]
  return `${head}  one of ${d.values.length + d.unsure.length}${about.join('')}\n${lines.join('')}`
}

const UNSURE = '?'

function numbersText(values: readonly DecisionValue[]): string {
  const more = values.length > SHOWN ? `, … ${values.at(-1)} (${values.length} values)` : ''
  return `${values.slice(0, SHOWN).join(', ')}${more}`
}

function afterText(
  { name, values }: OutlinedDecision['after'][number],
  all: readonly DecisionValue[],
): string {
  if (values.length > NAMED) return `${values.length} of the ${all.length} values of ${name}`
  return `${name} = ${values.map(shortened).join(' or ')}`
}

/** `ahead(…)`, or how the text begins. */
function shortened(value: DecisionValue): string {
  const text = String(value)
  if (text.length <= LETTERS) return text
  const call = /^(\w+)\([^()]*\)$/.exec(text)
  return call ? `${call[1]}(…)` : `${text.slice(0, LETTERS)}…`
}
