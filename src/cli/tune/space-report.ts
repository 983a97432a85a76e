/** Report of `spt show --space`: decisions of a space, number of points, and reasons for rejection. */

import { runSync } from '../../ast/work.ts'
import { Random } from '../../run/bind/sources/random-tensors.ts'
import { type Outline, type OutlinedDecision, outline } from '../../search/spaces/outline/sampling.ts'
import { rejectionCode, survey } from '../../search/spaces/survey.ts'
import { anyPoint } from '../../search/strategies/untaken-points.ts'
import type { DecisionValue, KernelSpace } from '../../search/types.ts'
import { DEFAULT_SURVEY } from '../arguments/schedule-call.ts'
import { count, type Lines, linesText } from '../output/figures.ts'
import { byFrequency } from './tune-report.ts'

/** Maximum number of values listed on a line. */
const MAX_NUMBERS = 16
/** Maximum number of listed values of an earlier decision, and maximum length of each. */
const MAX_NAMED_VALUES = 3
const MAX_LETTERS = 32
/** Significant digits of an estimate. */
const DIGITS = 2
/** Seed of random points, fixed for reproducible reports. */
const SEED = 1

/** Limit for decisions with thousands of values, about a second in total: a random point evaluates every value. */
const SURVEYED_VALUES = 1_000_000
const MIN_POINTS = 10

/**
 * @param requested - Maximum number of points to apply; `undefined`: as many as take about a second
 * @param progress - Receives a description of the current work, for a terminal
 */
export function spaceReport(
  space: KernelSpace<unknown>,
  name: string,
  deviceName: string,
  requested: number | undefined,
  progress: (line: string) => void = () => {},
): string {
  progress('counting points …')
  const outlined = outline(space)
  progress('trying points …')
  const generator = new Random(SEED)
  const random = (): number => generator.next()
  const head = {
    space: `${name} on ${deviceName}`,
    points: pointsText(outlined),
    ...(!outlined.isExact && outlined.points === 0
      ? { rare: rarePoint(space, random) }
      : surveyLines(space, outlined, requested, random)),
  }
  progress('')
  const names = [...Object.keys(head), ...outlined.decisions.map((d) => d.name)]
  const width = Math.max(...names.map((n) => n.length))
  return [
    linesText(head, { width }),
    '\n',
    ...outlined.decisions.map((d) => decisionText(d, outlined, width)),
  ].join('')
}

const pointsText = ({ points, isExact }: Outline): string =>
  isExact
    ? count(points)
    : points === 0
      ? 'few (none in a sample)'
      : `about ${count(Number(points.toPrecision(DIGITS)))}, estimated from a sample`

/** Finds a legal point if all random walks failed. @throws SptError `search/dead-ends` if a search fails, too */
function rarePoint(space: KernelSpace<unknown>, random: () => number): string | null {
  const point = runSync(anyPoint(space, random))
  if (!point) return null
  const rejection = rejectionCode(space, point)
  const text = Object.entries(point).map(([name, value]) => `${name} = ${abbreviate(value)}`)
  return `${text.join(', ')}${rejection ? ` (rejected: ${rejection})` : ''}`
}

function surveyLines(
  space: KernelSpace<unknown>,
  { decisions, isExact, points }: Outline,
  requested: number | undefined,
  random: () => number,
): Lines {
  if (requested === 0) return {}
  const values = decisions.reduce((n, d) => n + d.values.length + d.unconfirmed.length, 0)
  const affordable = Math.max(MIN_POINTS, Math.floor(SURVEYED_VALUES / Math.max(values, 1)))
  const sampleSize = requested ?? Math.min(DEFAULT_SURVEY, affordable)
  const isExhaustive = isExact && points <= sampleSize
  const { legal, rejectedByCode } = survey(space, { limit: sampleSize, ...(isExhaustive ? {} : { random }) })
  const rejected = byFrequency(rejectedByCode)
  const total = Object.values(rejectedByCode).reduce((n, x) => n + x, legal)
  const isReduced = requested === undefined && sampleSize < DEFAULT_SURVEY && !isExhaustive
  const note = isReduced
    ? ` (fewer than ${DEFAULT_SURVEY}: each has ${count(values)} values to sample; --survey ${DEFAULT_SURVEY})`
    : ''
  return {
    legal: `${count(legal)} of ${isExhaustive ? `all ${count(total)}` : `${count(total)} sampled points`}${note}`,
    ...(rejected && { rejected }),
  }
}

/** Numbers on one line; texts on a line each, after their number of points. */
function decisionText(d: OutlinedDecision, { decisions }: Outline, width: number): string {
  const dependencies = d.dependsOn.map((a) =>
    dependencyText(a, decisions.find((o) => o.name === a.name)!.values),
  )
  const suffix = dependencies.length > 0 ? `, with ${dependencies.join(' and ')}` : ''
  const head = d.name.padEnd(width)
  if ([...d.values, ...d.unconfirmed].every((v) => typeof v === 'number')) {
    // With thousands of values, a sample covers few of them.
    if (d.unconfirmed.length > MAX_NUMBERS) {
      const sorted = [...d.values, ...d.unconfirmed].sort((a, b) => Number(a) - Number(b))
      return `${head}  ${numbersText(sorted)}${suffix}; the sample has points with ${count(d.values.length)} of them\n`
    }
    const legalText = d.values.length > 0 ? `${numbersText(d.values)}${suffix}` : ''
    const unsureText = d.unconfirmed.length > 0 ? `no sampled point has ${numbersText(d.unconfirmed)}` : ''
    return `${head}  ${[legalText, unsureText].filter((text) => text).join('; ')}\n`
  }
  const numbers = [...(d.points ?? []).map(count), ...(d.unconfirmed.length > 0 ? [UNSURE] : [])]
  const numberWidth = Math.max(0, ...numbers.map((n) => n.length))
  const line = (number: string, v: DecisionValue): string =>
    `  ${numberWidth > 0 ? `${number.padStart(numberWidth)}  ` : ''}${v === '' ? '(nothing)' : v}\n`
  const notes = [
    ...(d.points ? [', with the points of each'] : []),
    suffix,
    ...(d.unconfirmed.length > 0 ? [`; ${UNSURE}: no sampled point has this value`] : []),
  ]
  const lines = [
    ...d.values.map((v, k) => line(d.points ? numbers[k]! : '', v)),
    ...d.unconfirmed.map((v) => line(UNSURE, v)),
  ]
  return `${head}  one of ${d.values.length + d.unconfirmed.length}${notes.join('')}\n${lines.join('')}`
}

const UNSURE = '?'

function numbersText(values: readonly DecisionValue[]): string {
  const ellipsis = values.length > MAX_NUMBERS ? `, … ${values.at(-1)} (${values.length} values)` : ''
  return `${values.slice(0, MAX_NUMBERS).join(', ')}${ellipsis}`
}

function dependencyText(
  { name, values }: OutlinedDecision['dependsOn'][number],
  allValues: readonly DecisionValue[],
): string {
  if (values.length > MAX_NAMED_VALUES) return `${values.length} of the ${allValues.length} values of ${name}`
  return `${name} = ${values.map(abbreviate).join(' or ')}`
}

/** Abbreviates a long value to `name(…)` or its first letters. */
function abbreviate(value: DecisionValue): string {
  const text = String(value)
  if (text.length <= MAX_LETTERS) return text
  const call = /^(\w+)\([^()]*\)$/.exec(text)
  return call ? `${call[1]}(…)` : `${text.slice(0, MAX_LETTERS)}…`
}
