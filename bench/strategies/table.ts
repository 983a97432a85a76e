/** Spaces of which every point was measured: what strategies can be judged on without a device. */
import { readFileSync } from 'node:fs'
import { pointKey } from '../../src/search/spaces/points.ts'
import type { DecisionValue, Outcome, Point, PointSpace } from '../../src/search/types.ts'

/** A point, and its milliseconds or the code of what refused it. */
export interface Row {
  readonly point: Point
  readonly ms?: number
  readonly code?: string
}

/** A line of a file of tables. */
export interface Line extends Row {
  readonly table: string
}

export class Table {
  readonly name: string
  readonly rows: readonly Row[]
  readonly space: PointSpace
  /** Milliseconds of the fastest point. */
  readonly best: number
  readonly #byPoint: ReadonlyMap<string, Row>

  constructor(name: string, rows: readonly Row[]) {
    this.name = name
    this.rows = rows
    this.space = spaceOf(name, rows)
    this.best = Math.min(...rows.map((r) => r.ms ?? Number.POSITIVE_INFINITY))
    this.#byPoint = new Map(rows.map((r) => [pointKey(r.point), r]))
  }

  /** `undefined`: it was refused. */
  ms(point: Point): number | undefined {
    return this.#byPoint.get(pointKey(point))!.ms
  }

  /** What a measurement would tell, with `factor` for its noise. */
  outcome(point: Point, factor: number): Outcome {
    const { ms, code = 'unknown' } = this.#byPoint.get(pointKey(point))!
    if (ms === undefined) return { status: 'rejected', code, message: code }
    const median = ms * factor
    return { status: 'measured', timing: { median, interval: [median, median], samples: [median] } }
  }
}

interface Node {
  name: string
  readonly children: Map<DecisionValue, Node>
}

/** The decisions of points in the order in which they have them. */
function spaceOf(name: string, rows: readonly Row[]): PointSpace {
  const root: Node = { name: '', children: new Map() }
  for (const { point } of rows) {
    let at = root
    for (const [decision, value] of Object.entries(point)) {
      if (at.name !== '' && at.name !== decision)
        throw new Error(`${name}: ${decision} and ${at.name} after the same values`)
      at.name = decision
      const child = at.children.get(value) ?? { name: '', children: new Map() }
      at.children.set(value, child)
      at = child
    }
  }
  return {
    name,
    next(partial) {
      let at: Node | undefined = root
      for (const value of Object.values(partial)) at = at?.children.get(value)
      if (!at || at.name === '') return null
      const values = [...at.children.keys()]
      const ordered = values.every((v) => typeof v === 'number')
      return {
        name: at.name,
        values: ordered ? values.sort((a, b) => Number(a) - Number(b)) : values,
        ordered,
      }
    },
    // As long as the points themselves: they are counted, and drawn uniformly.
    remainderKey: pointKey,
  }
}

/** What `collect` writes of a kernel on a matrix. */
interface Collected {
  readonly device: string
  readonly chip: string
  readonly suite: string
  readonly data: string
  readonly width: number
  readonly candidate: string
  readonly status: string
  /** Microseconds. */
  readonly median?: number
}

/** The schedule of a candidate, and its arguments by their place; nothing for what is none of ours. */
export function pointOf(candidate: string): Point | undefined {
  const [, schedule, list] = /^[^:]+:([^(]+)(?:\((.*)\))?$/.exec(candidate) ?? []
  if (schedule === undefined) return undefined
  const numbers = (list ?? '').split(',').filter((a) => a !== '')
  return Object.fromEntries([
    // Points of a schedule have as many decisions, also where others leave arguments out.
    ['schedule', `${schedule}/${numbers.length}`],
    ...numbers.map((a, k): [string, DecisionValue] => [`${schedule}.${k}`, Number(a)]),
  ])
}

/** @param least points of a table that is worth searching */
export function readTables(path: string, least: number): Table[] {
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line): Line[] => {
      if (line.trim() === '') return []
      const of = JSON.parse(line) as Line | Collected
      if (!('candidate' in of)) return [of]
      const point = pointOf(of.candidate)
      if (!point || of.median === undefined) return []
      return [{ table: `${of.suite} ${of.data} ${of.width} ${of.device}`, point, ms: of.median / 1000 }]
    })
  const tables = new Map<string, Map<string, Line>>()
  for (const line of lines) {
    const rows = tables.get(line.table) ?? new Map<string, Line>()
    // The last of a point counts: it was measured again.
    tables.set(line.table, rows.set(pointKey(line.point), line))
  }
  return [...tables]
    .map(([name, rows]) => [name, [...rows.values()]] as const)
    .flatMap(([name, rows]) => (rows.length < least ? [] : [new Table(name, rows)]))
}
