/** Records give back what was acknowledged, pick what a filter says, and refuse what they cannot use without touching it. */

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import fc from 'fast-check'
import Database from 'libsql'
import { afterAll, describe, expect, test } from 'vitest'
import { type Diagnostic, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { APPLICATION, makeTables, VERSION, withDiagnostics } from '../../src/search/records/connection.ts'
import { traceHash, trialId } from '../../src/search/records/identity.ts'
import { openRecords, Records } from '../../src/search/records/index.ts'
import { defaultRecordsPath, openFile } from '../../src/search/records/open.ts'
import { STATUSES, type StoredTrial, type Study, type TrialRecord } from '../../src/search/records/types.ts'
import { Folder } from '../cli/support.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { bundled } from './bundled.ts'
import { anyStudy, studiesAndTrials } from './record-gen.ts'

const folder = new Folder()
afterAll(() => folder.remove())
let files = 0
const fresh = (): string => folder.at(`r${files++}.db`)

/** What a map would hold. */
class Model {
  readonly trials = new Map<string, StoredTrial>()

  add(t: TrialRecord & { readonly time: number }): void {
    const id = trialId(t.study, t.point)
    const before = this.trials.get(id)
    const rank = (x: TrialRecord) =>
      ({ failed: 0, bounded: 1, rejected: 2, measured: 2, wrong: 3 })[x.outcome.status]
    const samples = (x: TrialRecord) =>
      x.outcome.status === 'measured' ? x.outcome.timing.samples.length : 0
    const more = (a: TrialRecord, b: TrialRecord) =>
      (a.share ?? 1) === (b.share ?? 1) ? samples(a) > samples(b) : (a.share ?? 1) > (b.share ?? 1)
    const both = before && samples(before) > 0 && samples(t) > 0
    const others =
      before?.trace && t.trace && JSON.stringify(before.trace) !== JSON.stringify(t.trace) && rank(before) < 3
    const better = !before || others || rank(t) > rank(before) || (both && more(t, before))
    if (better) this.trials.set(id, { ...t, id })
  }

  /** By time, then by when they came first. */
  list(which: (t: StoredTrial) => boolean = () => true): StoredTrial[] {
    return [...this.trials.values()].filter(which).sort((a, b) => a.time - b.time)
  }
}

function filled(
  records: Records,
  studies: readonly Study[],
  trials: readonly (TrialRecord & { time: number })[],
): Model {
  const model = new Model()
  for (const s of studies) records.addStudy(s)
  records.add(...trials)
  for (const t of trials) model.add(t)
  return model
}

const diagnosticOf = async (work: () => unknown): Promise<Diagnostic> => {
  try {
    await work()
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!
    throw e
  }
  throw new Error('nothing was refused')
}

describe('stored trials', () => {
  property([studiesAndTrials, fc.array(fc.nat({ max: 2 }))], { numRuns: runs(12) })(
    'equal a map, through several connections and after each is reopened',
    async ([studies, trials], turns) => {
      const path = fresh()
      const open: Records[] = [await openRecords(path), await openRecords(path)]
      const model = new Model()
      for (const s of studies) open[0]!.addStudy(s)
      for (const [k, t] of trials.entries()) {
        const turn = turns[k] ?? 0
        if (turn === 2) {
          open[0]!.close()
          open[0] = await openRecords(path)
        }
        open[turn % 2]!.add(t)
        model.add(t)
      }
      for (const records of [...open, await openRecords(path, { readonly: true })]) {
        expect(records.query()).toEqual(model.list())
        for (const t of trials)
          expect(records.get(trialId(t.study, t.point))).toEqual(model.trials.get(trialId(t.study, t.point)))
        const [s] = studies as [Study]
        expect(records.study(s.id)).toEqual(studies.find((x) => x.id === s.id))
        const points = [...trials.map((t) => t.point), { format: 'none' }]
        expect(records.missing(s.id, points)).toEqual(
          points.filter(
            (p) => (model.trials.get(trialId(s.id, p))?.outcome.status ?? 'bounded') === 'bounded',
          ),
        )
        records.close()
      }
    },
  )

  property([studiesAndTrials, fc.nat({ max: 1000 }), fc.nat({ max: 3 })], { numRuns: runs(12) })(
    'are selected by filters, fastest first without wrong ones, and deleted on request',
    async ([studies, trials], time, most) => {
      const records = await openRecords(fresh())
      const model = filled(records, studies, trials)
      const study = new Map(studies.map((s) => [s.id, s]))
      const of = (t: StoredTrial): Study => study.get(t.study)!
      for (const s of studies) {
        const { kernel, compiler, fingerprint } = s
        const same = model.list(
          (t) => of(t).kernel === kernel && of(t).compiler === compiler && of(t).fingerprint === fingerprint,
        )
        expect(records.query({ kernel, compiler, fingerprint })).toEqual(same)
        expect(records.query({ kernel: s.kernelName, limit: most })).toEqual(
          model.list((t) => of(t).kernel === kernel).slice(0, most),
        )
        expect(records.query({ device: s.device.name, status: ['wrong', 'failed'] })).toEqual(
          model.list(
            (t) => of(t).device.name === s.device.name && ['wrong', 'failed'].includes(t.outcome.status),
          ),
        )
        const median = (t: StoredTrial) =>
          t.outcome.status === 'measured' ? t.outcome.timing.median : Number.NaN
        const disqualified = (t: StoredTrial) =>
          model
            .list()
            .some(
              (w) =>
                w.outcome.status === 'wrong' &&
                w.trace &&
                t.trace &&
                traceHash(w.trace) === traceHash(t.trace) &&
                of(w).kernel === of(t).kernel &&
                of(w).device.kind === of(t).device.kind &&
                of(w).compiler === of(t).compiler,
            )
        const best = model
          .list((t) => t.study === s.id && median(t) >= 0 && !disqualified(t))
          .map(median)
          .sort((a, b) => a - b)
        expect(records.best({ studies: [s.id], limit: 99 }).map(median)).toEqual(best)
        expect(records.studies({ studies: [s.id] })[0]!.trials).toEqual(
          Object.fromEntries(
            STATUSES.map((status) => [
              status,
              model.list((t) => t.study === s.id && t.outcome.status === status).length,
            ]),
          ),
        )
      }
      const fastest = new Set(
        [...study.keys()].flatMap((id) =>
          records.query({ studies: [id], status: 'measured' }).length === 0
            ? []
            : fastestOf(records, id, most),
        ),
      )
      const ever = await openRecords(fresh())
      filled(ever, studies, trials)
      ever.prune({ keepBest: most })
      expect(ever.query()).toEqual(model.list((t) => fastest.has(t.id) || t.outcome.status === 'wrong'))
      ever.close()
      const stays = model.list((t) => t.time >= time || fastest.has(t.id) || t.outcome.status === 'wrong')
      expect(records.prune({ olderThan: time, keepBest: most })).toBe(trialsOf(model) - stays.length)
      expect(records.query()).toEqual(stays)
      const emptied = (s: Study) =>
        trials.some((t) => t.study === s.id) && !stays.some((t) => t.study === s.id)
      expect(new Set(records.studies().map((s) => s.id))).toEqual(
        new Set(studies.filter((s) => !emptied(s)).map((s) => s.id)),
      )
      const [first] = stays
      if (first) {
        records.prune({ studies: [first.study] })
        expect(records.query()).toEqual(stays.filter((t) => t.study !== first.study))
        expect(records.study(first.study)).toBeUndefined()
      }
      records.close()
    },
  )

  property([anyStudy], { numRuns: 3 })('are written atomically, to existing studies', async (study) => {
    const records = await openRecords(fresh())
    records.addStudy(study)
    const right: TrialRecord = {
      study: study.id,
      point: { a: 1 },
      outcome: { status: 'wrong', message: 'a\0b' },
    }
    expect((await diagnosticOf(() => records.add(right, { ...right, study: 'none' }))).code).toBe(
      'records/unknown-study',
    )
    const endless = {
      status: 'measured',
      timing: { median: Number.POSITIVE_INFINITY, interval: [0, 1], samples: [1] },
    } as const
    expect((await diagnosticOf(() => records.add(right, { ...right, outcome: endless }))).code).toBe(
      'api/argument',
    )
    expect(records.query()).toEqual([])
    expect(records.add(right, right)).toBe(1)
    expect(records.query()[0]!.outcome).toEqual({ status: 'wrong', message: 'a\ufffdb' })
    expect((await diagnosticOf(() => records.prune({}))).code).toBe('records/prune')
    records.close()
    expect((await diagnosticOf(() => records.query())).code).toBe('records/closed')
  })
})

const trialsOf = (model: Model): number => model.trials.size
/** By the file's own order, since equal times have another in the model. */
function fastestOf(records: Records, study: string, most: number): string[] {
  const measured = records.query({ studies: [study], status: 'measured' })
  const place = new Map([...records.best({ studies: [study], limit: 99 })].map((t, k) => [t.id, k]))
  const median = (t: StoredTrial) => (t.outcome.status === 'measured' ? t.outcome.timing.median : 0)
  return measured
    .toSorted((a, b) => median(a) - median(b) || (place.get(a.id) ?? 0) - (place.get(b.id) ?? 0))
    .slice(0, most)
    .map((t) => t.id)
}

describe('unusable files', () => {
  const bytes = (path: string): Buffer => readFileSync(path)
  const refused = async (path: string, code: string, readonly = false): Promise<void> => {
    const before = existsSync(path) && statSync(path).isFile() ? bytes(path) : null
    const d = await diagnosticOf(() => openRecords(path, { readonly }))
    expect([d.code, d.hint !== undefined, d.message.includes(folder.path)]).toEqual([code, true, true])
    if (before) expect(bytes(path).equals(before)).toBe(true)
    else expect(existsSync(path) && statSync(path).isFile()).toBe(false)
  }
  /** A file with records, and nothing beside it. */
  async function some(trials = 3): Promise<string> {
    const path = fresh()
    const records = await openRecords(path)
    const study = { ...fc.sample(anyStudy, 1)[0]!, seed: 1 }
    records.addStudy(study)
    const point = (k: number) =>
      ({ study: study.id, point: { k }, outcome: { status: 'wrong', message: 'x'.repeat(200) } }) as const
    records.add(...Array.from({ length: trials }, (_, k) => point(k)))
    records.close()
    return path
  }

  test('are rejected when opened, and unchanged', async () => {
    for (const readonly of [false, true]) {
      await refused(folder.path, 'records/not-a-file', readonly)
      await refused(folder.at('none/r.db'), 'records/missing-folder', readonly)
      await refused(folder.file('short', 'hello'), 'records/not-a-database', readonly)
      await refused(folder.file('long', 'hello '.repeat(3000)), 'records/not-a-database', readonly)
      await refused(folder.at('long/r.db'), 'records/missing-folder', readonly)
      const cut = await some(100)
      truncateSync(cut, statSync(cut).size - 5000)
      await refused(cut, 'records/corrupt', readonly)
      const torn = await some(100)
      const altered = bytes(torn)
      altered.fill(0xa5, 4096, altered.length - 4096)
      writeFileSync(torn, altered)
      await refused(torn, 'records/corrupt', readonly)
      const foreign = fresh()
      const other = new Database(foreign)
      other.exec('CREATE TABLE t (a)')
      other.close()
      await refused(foreign, 'records/not-records', readonly)
      const newer = await some()
      const later = new Database(newer)
      later.exec(`PRAGMA user_version = ${VERSION + 1}; PRAGMA wal_checkpoint(TRUNCATE)`)
      later.close()
      await refused(newer, 'records/newer-schema', readonly)
      const older = await some()
      const earlier = new Database(older)
      earlier.exec(`PRAGMA user_version = ${VERSION - 1}; PRAGMA wal_checkpoint(TRUNCATE)`)
      earlier.close()
      await refused(older, 'records/older-schema', readonly)
    }
    await refused(folder.at('absent.db'), 'records/missing', true)
    await refused(folder.file('empty', ''), 'records/older-schema', true)
    expect(defaultRecordsPath({ SPT_CACHE_DIR: folder.path })).toBe(folder.at('records.db'))
    expect((await diagnosticOf(() => defaultRecordsPath({ SPT_CACHE_DIR: 'off' }))).code).toBe(
      'records/no-place',
    )
  })

  test('several processes make the tables of one file, once', () => {
    const path = fresh()
    const [first, second] = [new Database(path), new Database(path)]
    for (const db of [first, second, first]) makeTables(db, path)
    for (const db of [first, second])
      expect(db.prepare('PRAGMA application_id').raw().get()).toEqual([APPLICATION])
    expect(second.prepare('SELECT count(*) FROM trials').raw().get()).toEqual([0])
  })

  test('a full disk keeps acknowledged trials, and accepts more once there is space', async () => {
    const path = await some(0)
    const { db } = await openFile(path, false)
    const records = new Records(db, path)
    const [study] = records.studies()
    const pages = (db.prepare('PRAGMA page_count').raw().get() as [number])[0]
    db.prepare(`PRAGMA max_page_count = ${pages + 4}`).get()
    const trial = (k: number): TrialRecord => ({
      study: study!.id,
      point: { k },
      outcome: { status: 'wrong', message: 'x'.repeat(1500) },
    })
    let kept = 0
    const d = await diagnosticOf(() => {
      for (; kept < 100; kept++) records.add(trial(kept))
    })
    expect([d.code, kept > 0]).toEqual(['records/full', true])
    expect(records.query().length).toBe(kept)
    db.prepare('PRAGMA max_page_count = 100000').get()
    expect(records.add(trial(kept), trial(kept + 1))).toBe(2)
    records.close()
    expect((await openRecords(path, { readonly: true })).query().length).toBe(kept + 2)
  })

  test('without write permission, records are read and nothing is written', async () => {
    const closed = new Folder()
    const path = await some()
    const copy = closed.file('r.db', bytes(path))
    chmodSync(copy, 0o444)
    chmodSync(closed.path, 0o555)
    const before = readdirSync(closed.path)
    const script = await bundled(
      `import { openRecords } from './src/search/records/index.ts'
const [path, usable] = process.argv.slice(2)
const code = async (work) => { try { return await work() } catch (e) { return e.diagnostics[0].code } }
// Loaded before, since others may not read where it lies.
await openRecords(usable, { readonly: true }).then((r) => r.close())
if (process.getuid() === 0) process.setuid(65534)
const said = [await code(() => openRecords(path))]
const records = await openRecords(path, { readonly: true })
const trials = records.query()
const { study, point, outcome } = trials[0]
said.push(trials.length, await code(() => records.add({ study, point, outcome })))
records.close()
console.log(JSON.stringify(said))`,
      folder.at('reader.mjs'),
    )
    const { stdout, stderr } = spawnSync(process.execPath, [script, copy, path], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toEqual(['records/read-only', 3, 'records/read-only'])
    expect(readdirSync(closed.path)).toEqual(before)
    expect(bytes(copy).equals(bytes(path))).toBe(true)
    chmodSync(closed.path, 0o755)
    closed.remove()
  })

  test('errors of SQLite name the file, and bugs are not hidden', () => {
    const says = (rawCode: number) => {
      const error = Object.assign(new Error('words'), { rawCode })
      try {
        return withDiagnostics('r.db', () => {
          throw error
        })
      } catch (e) {
        return e instanceof SptError ? e.diagnostics[0]!.code : e === error
      }
    }
    expect([5, 8, 778, 11, 13, 14, 26, 261].map(says)).toEqual(
      ['busy', 'read-only', 'io', 'corrupt', 'full', 'unreadable', 'not-a-database', 'busy'].map(
        (c) => `records/${c}`,
      ),
    )
    expect(says(1)).toBe(true)
  })
})

test('records are one file, without a write-ahead log', async () => {
  const path = fresh()
  const beside = (): boolean[] => ['-wal', '-shm'].map((end) => existsSync(`${path}${end}`))
  const records = await openRecords(path)
  expect(beside()).toEqual([false, false])
  records.close()
  expect(beside()).toEqual([false, false])
  const reader = await openRecords(path, { readonly: true })
  expect(reader.studies()).toEqual([])
  reader.close()
  expect(beside()).toEqual([false, false])
  // Opened twice in one process, closed in either order, used in between.
  for (const last of [0, 1]) {
    const two = [await openRecords(path), await openRecords(path)]
    for (const r of two) expect(r.studies()).toEqual([])
    two[1 - last]!.close()
    two[1 - last]!.close()
    expect(two[last]!.studies()).toEqual([])
    expect(() => two[1 - last]!.studies()).toThrow('records/closed')
    two[last]!.close()
    expect(beside()).toEqual([false, false])
  }
})

test('a process that exits without closing leaves no log', async () => {
  const path = fresh()
  const script = await bundled(
    `import { openRecords } from './src/search/records/index.ts'
const records = await openRecords(process.argv[2])
console.log(records.studies().length)
process.exit(0)`,
    folder.at('exits.mjs'),
  )
  const { stdout } = spawnSync(process.execPath, [script, path], { encoding: 'utf8' })
  expect(stdout).toBe('0\n')
  expect(['', '-wal', '-shm'].map((end) => existsSync(`${path}${end}`))).toEqual([true, false, false])
})
