/**
 * Two processes measure the same points, and are killed at any moment. The file always opens, what was acknowledged is in
 * it, and nobody who begins afterwards measures that again.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { openRecords, trialId } from '../../src/search/records/index.ts'
import { Folder } from '../cli/support.ts'
import { LONG, SEED } from '../support/cases.ts'
import { bundled } from './bundled.ts'
import { anyStudy } from './record-gen.ts'

const folder = new Folder()
afterAll(() => folder.remove())

/** Measures what is missing in an order of its own, and says so before and after each. */
const WRITER = `import { openRecords } from './src/search/records/index.ts'
import { writeSync } from 'node:fs'
const [path, text, points, own] = process.argv.slice(2)
const study = JSON.parse(text)
const records = await openRecords(path)
records.addStudy(study)
const all = Array.from({ length: Number(points) }, (_, k) => ({ k: own === '0' ? k : Number(points) - 1 - k }))
for (const point of records.missing(study.id, all)) {
  if (records.missing(study.id, [point]).length === 0) continue
  writeSync(1, 'measures ' + point.k + '\\n')
  const samples = Array.from({ length: 50 }, (_, s) => point.k + s)
  records.add({ study: study.id, point, outcome: { status: 'measured', timing: { median: point.k, interval: [0, point.k], samples } } })
  writeSync(1, 'kept ' + point.k + '\\n')
}
writeSync(1, 'done\\n')
records.close()`

test('kill -9 at any moment, with two writers', async () => {
  const script = await bundled(WRITER, folder.at('writer.mjs'))
  const path = folder.at('r.db')
  const [study] = fc.sample(anyStudy, { numRuns: 1, seed: SEED })
  const random = new Random(SEED)
  const kills = LONG ? 100 : 10
  // More than are done before the last is killed.
  const points = kills * 60
  const kept = new Set<number>()
  const faults: string[] = []
  let killed = 0

  /** One life of a writer; whether it came to the end. */
  async function life(own: number): Promise<boolean> {
    const before = new Set(kept)
    const child: ChildProcess = spawn(
      process.execPath,
      [script, path, JSON.stringify(study), String(points), String(own)],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    let done = false
    let complaint = ''
    let rest = ''
    child.stderr!.on('data', (text) => {
      complaint += text
    })
    // From the first lines on: starting a process takes longer than ten trials.
    const end = Math.floor(random.next() * 25)
    let lines = 0
    const kill = (): void => {
      if (child.killed || killed >= kills) return
      killed++
      child.kill('SIGKILL')
    }
    // Some die while they open the file.
    const early = random.next() < 0.2 ? setTimeout(kill, 30 + random.next() * 120) : undefined
    child.stdout!.on('data', (text) => {
      const parts = (rest + text).split('\n')
      rest = parts.pop()!
      for (const line of parts) {
        const [what, k] = line.split(' ') as [string, string]
        if (what === 'done') done = true
        if (what === 'measures' && before.has(Number(k))) faults.push(`${k} is measured again`)
        if (what === 'kept') kept.add(Number(k))
        if (lines++ === end) kill()
      }
    })
    await once(child, 'close')
    clearTimeout(early)
    if (complaint !== '') faults.push(complaint)
    return done
  }

  await Promise.all(
    [0, 1].map(async (own) => {
      for (let lives = 0; faults.length === 0 && lives < 10 * kills; lives++) if (await life(own)) break
    }),
  )
  expect(faults).toEqual([])
  expect(killed).toBe(kills)
  const records = await openRecords(path)
  const trials = records.query()
  expect(trials.length).toBe(points)
  for (const k of kept)
    expect(records.get(trialId(study!.id, { k }))?.outcome).toMatchObject({ timing: { median: k } })
  records.close()
})
