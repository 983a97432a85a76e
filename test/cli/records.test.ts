import { existsSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { openRecords } from '../../src/search/records/index.ts'
import { anyStudy, anyTrial } from '../search/record-gen.ts'
import { SEED } from '../support/cases.ts'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

test('spt records lists, shows, exports and forgets what is in a file', async () => {
  const db = folder.at('r.db')
  const records = await openRecords(db)
  const studies = fc.uniqueArray(anyStudy, { selector: (s) => s.id, minLength: 2, maxLength: 2 })
  const [given] = fc.sample(studies, { numRuns: 1, seed: SEED })
  for (const s of given!) records.addStudy(s)
  records.add(...fc.sample(anyTrial(given!), { numRuns: 30, seed: SEED }))
  const kept = records.query()
  const said = async (...argv: string[]): Promise<string> => {
    const { code, out, err } = await spt(['records', ...argv, '--db', db])
    expect([code, err]).toEqual([0, ''])
    return out
  }

  const listed = await said('list')
  for (const s of given!) {
    expect(listed).toContain(s.id.slice(0, 10))
    for (const { shape } of s.data?.tensors.filter((t) => t.stored !== null) ?? [])
      expect(listed).toContain(shape.join(' × '))
  }
  // The columns of trials add up to all of them.
  const [head, ...rows] = listed.trimEnd().split('\n')
  const columns = ['measured', 'bounded', 'rejected', 'failed', 'wrong'].map((c) => head!.indexOf(c))
  const counts = rows.flatMap((r) => columns.map((at) => Number.parseInt(r.slice(at), 10)))
  expect(counts.reduce((a, b) => a + b, 0)).toBe(kept.length)
  expect(JSON.parse(await said('list', '--json')).studies).toEqual(records.studies())
  const [first] = given!
  expect(JSON.parse(await said('list', '--json', '--study', first!.id.slice(0, 12))).studies).toEqual(
    records.studies({ studies: [first!.id] }),
  )
  const shown = JSON.parse(await said('show', first!.id, '--json', '--limit', '3'))
  expect(shown.fastest).toEqual(records.best({ studies: [first!.id], limit: 3 }))
  expect(await said('show', first!.id)).toContain(first!.kernel)
  for (const t of kept.slice(0, 6)) {
    expect(JSON.parse(await said('show', t.id.slice(0, 20), '--json'))).toEqual(t)
    expect(await said('show', t.id)).toContain(t.outcome.status)
  }
  for (const format of ['csv', 'json', 'optuna'] as const) {
    expect(await said('export', '--format', format, '--status', 'wrong')).toBe(
      records.export(format, { status: 'wrong' }),
    )
    expect(await said('export', '--format', format, '--out', folder.at('out'))).toBe('')
    expect(readFileSync(folder.at('out'), 'utf8')).toBe(records.export(format))
  }
  expect((await spt(['records', 'prune', '--db', db])).err).toContain('--older-than, --keep-best or --study')
  const wrong = kept.filter((t) => t.outcome.status === 'wrong').length
  expect(await said('prune', '--older-than', '0', '--json')).toBe(`{"removed":${kept.length - wrong}}\n`)
  expect(records.query({ status: ['rejected', 'failed', 'measured'] })).toEqual([])
  records.close()
})

test('an empty file has no studies', async () => {
  const db = folder.file('empty.db', '')
  const { code, out, err } = await spt(['records', 'list', '--db', db])
  expect([code, out, err]).toEqual([0, `no studies in ${db}\n`, ''])
})

test('studies of different data are separate', async () => {
  const db = folder.at('data.db')
  const program = folder.file(
    'mul.spt',
    `${PROGRAM}schedule mul.cpu_space choose by search { by in 2, 4 split f by by }\n`,
  )
  const argv = ['--size', 'd=8', '--size', 'alpha=2', '--trials', '1', '--strategy', 'random', '--db', db]
  const other = MATRIX.replace('3 4 4', '9 4 4')
  for (const [name, text] of Object.entries({ 'one.mtx': MATRIX, 'two.mtx': other }))
    await spt(['tune', program, '--bind', `A=${folder.file(name, text)}`, ...argv])
  // Of several cases as of one.
  const both = ['one.mtx', 'two.mtx'].flatMap((name) => ['--bind', `A=${folder.at(name)}`])
  await spt(['tune', program, ...both, ...argv, '--size', 'd=4'])
  const { out } = await spt(['records', 'list', '--db', db])
  expect(out.split('A=one.mtx')).toHaveLength(3)
  expect(out).toMatch(/A=one\.mtx: A 3 × 4, 4 stored .*\n.*A=two\.mtx: A 9 × 4, 4 stored/)
})

test('the default file is in the cache, and reading does not create it', async () => {
  const env = { SPT_CACHE_DIR: folder.at('cache') }
  const { code, err } = await spt(['records', 'list'], { env })
  expect([code, err.includes('records/missing-folder')]).toEqual([1, true])
  expect(existsSync(env.SPT_CACHE_DIR)).toBe(false)
  const off = await spt(['records', 'list'], { env: { SPT_CACHE_DIR: 'off' } })
  expect([off.code, off.err.includes('records/no-place')]).toEqual([1, true])
})
