/** What is exported says all that is kept, in the other tool's own words. */
import { afterAll, describe, expect } from 'vitest'
import { EXPORT_FORMATS, type ExportFormat, openRecords } from '../../src/search/records/index.ts'
import type { StoredTrial, Study, TrialRecord } from '../../src/search/records/types.ts'
import { Folder } from '../cli/support.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { studiesAndTrials } from './record-gen.ts'

const folder = new Folder()
afterAll(() => folder.remove())
let files = 0

/** RFC 4180. */
function csvRows(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    rows.at(-1)!.push(quoted === undefined ? plain! : quoted.replaceAll('""', '"'))
    if (end === '\r\n') rows.push([])
    if (end === '') break
  }
  return rows.slice(0, -1)
}

interface Distribution {
  readonly name: string
  readonly attributes: {
    readonly choices?: readonly (number | string)[]
    readonly low: number
    readonly high: number
    readonly step: number
  }
}

/** All that Optuna could draw. */
function valuesOf({ attributes: { choices, low, high, step } }: Distribution): readonly (number | string)[] {
  return choices ?? Array.from({ length: (high - low) / step + 1 }, (_, k) => low + k * step)
}

interface OptunaTrial {
  readonly params: Record<string, number | string>
  readonly state: number
  readonly value: number | null
  readonly distributions: readonly (readonly [name: string, Distribution])[]
  readonly user_attrs: Record<string, unknown>
  readonly datetime_complete: string
}

/** What Optuna's storage makes of a journal: studies by number, with attributes and trials. */
function replayed(text: string) {
  const studies: { name: string; attributes: Record<string, unknown>; trials: OptunaTrial[] }[] = []
  for (const line of text.split('\n').slice(0, -1)) {
    const op = JSON.parse(line)
    expect(typeof op.worker_id).toBe('string')
    if (op.op_code === 0) {
      expect(op.directions).toEqual([1])
      expect(studies.some((s) => s.name === op.study_name)).toBe(false)
      studies.push({ name: op.study_name, attributes: {}, trials: [] })
    } else if (op.op_code === 2) {
      expect(Object.keys(op.user_attr).length).toBe(1)
      Object.assign(studies[op.study_id]!.attributes, op.user_attr)
    } else {
      expect(op.op_code).toBe(4)
      const params: Record<string, number | string> = {}
      for (const [name, inner] of Object.entries<number>(op.params)) {
        const { name: kind, attributes } = JSON.parse(op.distributions[name])
        if (kind === 'CategoricalDistribution') params[name] = attributes.choices[inner]
        else {
          expect(attributes.low <= inner && inner <= attributes.high).toBe(true)
          expect((inner - attributes.low) % attributes.step).toBe(0)
          params[name] = inner
        }
      }
      expect(op.datetime_start <= op.datetime_complete).toBe(true)
      const distributions = Object.entries<string>(op.distributions).map(([n, d]) => [n, JSON.parse(d)])
      studies[op.study_id]!.trials.push({ ...op, params, distributions })
    }
  }
  return studies
}

describe('exports', () => {
  property([studiesAndTrials], { numRuns: runs(8) })('contain all stored data', async ([studies, given]) => {
    const records = await openRecords(folder.at(`r${files++}.db`))
    for (const s of studies) records.addStudy(s)
    records.add(...(given as TrialRecord[]))
    const trials = records.query()
    const of = (s: Study) => trials.filter((t) => t.study === s.id)
    const text = Object.fromEntries(EXPORT_FORMATS.map((f) => [f, records.export(f)])) as Record<
      ExportFormat,
      string
    >

    const json = JSON.parse(text.json) as { studies: Study[]; trials: StoredTrial[] }
    expect(json.trials).toEqual(trials)
    expect(json.studies).toMatchObject(records.studies())

    const [names, ...rows] = csvRows(text.csv)
    expect(rows.map((r) => r.length)).toEqual(rows.map(() => names!.length))
    const said = rows.map((r) => Object.fromEntries(r.map((value, k) => [names![k]!, value])))
    for (const [k, t] of trials.entries()) {
      const row = said[k]!
      expect([row.trial, row.study, row.status, JSON.parse(row.point!)]).toEqual([
        t.id,
        t.study,
        t.outcome.status,
        t.point,
      ])
      if (t.outcome.status === 'measured') {
        expect(Number(row.median_ms)).toBe(t.outcome.timing.median)
        expect(JSON.parse(row.samples!)).toEqual(t.outcome.timing.samples)
      } else if (t.outcome.status === 'bounded') {
        expect([row.at_most_ms, row.median_ms, row.samples]).toEqual([String(t.outcome.atMost), '', ''])
      } else expect(row.message).toBe(t.outcome.message)
      expect([row.bytes, row.relative_error, row.sampled, row.steps && JSON.parse(row.steps)]).toEqual([
        String(t.bytes ?? ''),
        String(t.relativeError ?? ''),
        String(t.sampled ?? ''),
        t.steps ?? '',
      ])
    }

    const told = replayed(text.optuna)
    const kept = records.studies()
    expect(told.map((s) => s.attributes.id)).toEqual(kept.map((s) => s.id))
    for (const [k, s] of kept.entries())
      for (const [n, t] of of(s).entries()) {
        const o = told[k]!.trials[n]!
        expect([o.params, o.user_attrs.status, o.state === 1]).toEqual([
          t.point,
          t.outcome.status,
          t.outcome.status === 'measured',
        ])
        expect(o.value).toBe(t.outcome.status === 'measured' ? t.outcome.timing.median : null)
        expect(Date.parse(`${o.datetime_complete}Z`)).toBe(t.time)
      }
    // Of a parameter nothing can be drawn that was not tried.
    for (const { trials } of told)
      for (const [name, d] of trials[0]?.distributions ?? []) {
        const tried = new Set(trials.map((t) => t.params[name]!))
        expect(new Set(valuesOf(d))).toEqual(tried)
      }
    const [first] = studies as [Study]
    expect(
      (JSON.parse(records.export('json', { studies: [first.id], status: 'wrong' })) as typeof json).trials,
    ).toEqual(of(first).filter((t) => t.outcome.status === 'wrong'))
    records.close()
  })
})
