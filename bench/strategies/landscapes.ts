/** Synthetic tables: spaces as searches meet them, with times that follow their decisions more or less. */
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import type { Point } from '../../src/search/types.ts'
import { type Row, Table } from './table.ts'

interface LandscapeOptions {
  readonly seed: number
  /** How much pairs of decisions matter beside single ones. */
  readonly interaction: number
  /** Logarithm of what no decision explains: standard deviation. */
  readonly noise: number
  /** Share of the points that are refused, by what two decisions are together. */
  readonly refused: number
}

const FORMATS = ['rows', 'blocks', 'slices', 'pieces', 'panels']
const SIZES = [1, 2, 4, 8, 16, 32]

/**
 * A format, which has one to three decisions of its own, and three that all have. Each size has a best value, away from which
 * time grows by squares of its logarithm; names differ at random.
 */
function landscape(name: string, { seed, interaction, noise, refused }: LandscapeOptions): Table {
  const random = new Random(seed)
  const cost = new Map<string, number>()
  const known = (key: string, draw: () => number): number => {
    const value = cost.get(key) ?? draw()
    cost.set(key, value)
    return value
  }
  const own = new Map(FORMATS.map((f) => [f, 1 + random.below(3)]))
  const single = (decision: string, value: number | string): number => {
    if (typeof value === 'string') return known(`${decision} ${value}`, () => 0.35 * random.normal())
    const best = known(`best ${decision}`, () => 5 * random.next())
    const steep = known(`steep ${decision}`, () => 0.01 + 0.05 * random.next())
    return steep * (Math.log2(value) - best) ** 2
  }
  const pair = (a: string, b: string): number => known(`${a} ${b}`, () => interaction * random.normal())
  const isRefused = (a: string, b: string): boolean =>
    known(`refused ${a} ${b}`, random.next.bind(random)) < refused
  const row = (point: Point): Row => {
    const entries = Object.entries(point)
    const places = entries.map(([d, v]) => `${d}=${v}`)
    let log = noise * random.normal()
    for (const [d, v] of entries) log += single(d, v)
    let bad = false
    for (let i = 1; i < places.length; i++) {
      log += pair(places[i - 1]!, places[i]!)
      bad ||= isRefused(places[0]!, places[i]!)
    }
    return bad ? { point, code: 'schedule/refused' } : { point, ms: Math.exp(log) }
  }
  const rows: Row[] = []
  for (const format of FORMATS) {
    const decisions: [string, readonly (number | string)[]][] = [
      ...Array.from({ length: own.get(format)! }, (_, k): [string, readonly number[]] => [
        `${format}.${k}`,
        SIZES,
      ]),
      ['lanes', SIZES],
      ['unroll', [1, 2, 4]],
      ['order', ['ij', 'ji']],
    ]
    const all = decisions.reduce<Point[]>(
      (ps, [d, vs]) => ps.flatMap((p) => vs.map((v) => ({ ...p, [d]: v }))),
      [{ format }],
    )
    rows.push(...all.map(row))
  }
  return new Table(name, rows)
}

/** Those that strategies are judged on. */
export const LANDSCAPES = (): readonly Table[] => [
  landscape('smooth', { seed: 1, interaction: 0.02, noise: 0.02, refused: 0 }),
  landscape('refused', { seed: 2, interaction: 0.05, noise: 0.03, refused: 0.15 }),
  landscape('rugged', { seed: 3, interaction: 0.25, noise: 0.1, refused: 0.05 }),
]
