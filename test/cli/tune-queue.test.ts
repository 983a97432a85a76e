/** `spt tune --queue` and `--worker`: trials that another process does, once, and nothing that waits without an end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import type { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { devices } from '../../src/node.ts'
import { openRecords } from '../../src/search/records/index.ts'
import { runWorker, unpublishStudy } from '../../src/search/studies/index.ts'
import { bundled } from '../search/bundled.ts'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const program = folder.file(
  'mul.spt',
  `${PROGRAM}
schedule mul.cpu_space choose by search {
  by in 1, 2, 4, 8
  either { split f by by -> (fo, fi) } or { split nowhere by by -> (a, b) }
}
`,
)
const matrix = folder.file('a.mtx', MATRIX)
const study = [program, '--bind', `A=${matrix}`, '--size', 'd=8', '--size', 'alpha=2', '--seed', '5']
const asked = [...study, '--strategy', 'exhaustive', '--trials', '8', '--json']

/** A process of the command line itself, bundled once. */
let bundle: Promise<string> | undefined
function script(): Promise<string> {
  // Whose version it is: a worker of another one has another queue.
  folder.file('package.json', readFileSync('package.json'))
  bundle ??= bundled(
    `import { main } from './src/cli/index.ts'
import { processIo } from './src/cli/output/io.ts'
process.exitCode = await main(process.argv.slice(2), processIo())`,
    folder.at('spt.mjs'),
  )
  return bundle
}

class Worker {
  readonly process: ChildProcess
  out = ''
  err = ''
  #told = (): void => {}

  constructor(file: string, args: readonly string[]) {
    this.process = spawn(process.execPath, [file, 'tune', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.process.stdout!.on('data', (text: Buffer) => {
      this.out += text
    })
    this.process.stderr!.on('data', (text: Buffer) => {
      this.err += text
      this.#told()
    })
  }

  /** Once standard error has some text. */
  said(text: string): Promise<void> {
    return new Promise((resolve) => {
      this.#told = () => this.err.includes(text) && resolve()
      this.#told()
    })
  }

  async ended(): Promise<number | null> {
    if (this.process.exitCode === null) await once(this.process, 'exit')
    return this.process.exitCode
  }
}

describe('the file of a queue', () => {
  test('is a diagnostic if it cannot be used, for publisher and workers', async () => {
    for (const [file, code] of [
      [folder.at('nowhere/q.db'), 'records/missing-folder'],
      [folder.file('text.db', 'no database'.repeat(99)), 'records/not-a-database'],
    ] as const)
      for (const argv of [
        ['--worker', file],
        [...study, '--queue', file],
      ]) {
        const { code: exit, err } = await spt(['tune', ...argv])
        expect([exit, err]).toEqual([1, expect.stringContaining(`[${code}]`)])
      }
    expect(
      await unpublishStudy(folder.at('empty.db'), 'a study').catch((e: SptError) => e.diagnostics[0]!.code),
    ).toBe('studies/unknown')
  })

  test('options of workers and of studies are separate', async () => {
    const said = async (...argv: string[]): Promise<string> => (await spt(['tune', ...argv])).err
    expect(await said()).toContain('a file is missing')
    expect(await said(program, '--worker', 'x.db')).toContain('--worker takes no file')
    expect(await said('--worker', 'x.db', '--trials', '3')).toContain('--trials is not possible')
    expect(await said(program, '--data-root', '.')).toContain('--data-root has no effect without --worker')
    expect(await said(program, '--idle', '3')).toContain('--idle has no effect without --queue or --worker')
  })
})

describe('workers', () => {
  test('workers run each trial once, and stop after the current one', async () => {
    const queue = folder.at('once.db')
    const worker = new Worker(await script(), ['--worker', queue])
    try {
      const db = folder.at('r.db')
      const first = await spt(['tune', ...asked, '--queue', queue, '--db', db])
      expect([first.code, first.err.replace(/^no worker .*\n/, '')]).toEqual([0, ''])
      const found = JSON.parse(first.out)
      const alone = folder.at('alone.db')
      const here = await spt(['tune', ...asked, '--db', alone])
      const statuses = (json: string): string[] =>
        JSON.parse(json).trials.map((t: { outcome: { status: string } }) => t.outcome.status)
      expect(statuses(first.out)).toEqual(statuses(here.out))
      const measured = found.trials.filter(
        (t: { outcome: { status: string } }) => t.outcome.status === 'measured',
      )
      expect(measured).toHaveLength(4)
      const by = new RegExp(`:${worker.process.pid}$`)
      for (const t of measured) {
        expect(t.worker).toMatch(by)
        expect([t.sampled, t.relativeError < 1e-5, t.bytes > 0]).toEqual([false, true, true])
      }
      expect([found.best.outcome.status, found.defaultSchedule.outcome.status]).toEqual([
        'measured',
        'measured',
      ])

      const records = await openRecords(db)
      expect(records.query({ status: 'measured' }).every((t) => by.test(t.worker ?? ''))).toBe(true)
      const [kept] = records.studies()
      records.close()
      // The study is the one that this process alone has of the same.
      const own = await openRecords(alone)
      expect(own.studies()[0]!.id).toBe(kept!.id)
      own.close()

      // Another one that publishes the same gets what is done.
      const again = JSON.parse((await spt(['tune', ...asked, '--queue', queue])).out)
      expect(again.trials.map((t: { outcome: unknown }) => t.outcome)).toEqual(
        found.trials.map((t: { outcome: unknown }) => t.outcome),
      )
      // Several files are a study each, which candidates of all belong to.
      const other = folder.file('b.mtx', MATRIX.replace('3 4 0.5', '2 4 0.5'))
      const both = JSON.parse((await spt(['tune', ...asked, '--bind', `A=${other}`, '--queue', queue])).out)
      expect(both.candidates.length).toBeGreaterThan(2)
      for (const { timings } of both.candidates) expect(timings.every((t: unknown) => t !== null)).toBe(true)
      worker.process.kill('SIGINT')
      const count = 4 + 4 + 2 * both.candidates.length
      expect([await worker.ended(), worker.out]).toEqual([0, `${count} trials done\n`])
      expect(worker.err).toContain('ends after the present trial')
    } finally {
      worker.process.kill('SIGKILL')
    }
  })

  test('a trial that no worker can run is retried, then ends the search', async () => {
    const queue = folder.at('retried.db')
    const file = await script()
    const barred = new Worker(file, ['--worker', queue, '--data-root', mkdtempSync(folder.at('data-'))])
    const workers = [barred]
    try {
      await barred.said('waits for trials')
      const refused = await spt(['tune', ...asked, '--queue', queue])
      expect(refused.code).toBe(1)
      expect(refused.err).toContain('[studies/worker]')
      expect(refused.err).toContain('which is outside of')
      // It is not what broke.
      expect(barred.process.exitCode).toBe(null)
      barred.process.kill('SIGTERM')
      expect([await barred.ended(), barred.out]).toEqual([0, '0 trials done\n'])
      workers.push(new Worker(file, ['--worker', queue]))
      expect((await spt(['tune', ...asked, '--queue', queue])).code).toBe(0)
      // Shares of a measurement are trials of their own.
      const short = [...study, '--strategy', 'halving', '--trials', '4', '--json', '--queue', queue]
      const { trials } = JSON.parse((await spt(['tune', ...short])).out) as {
        trials: { share?: number; outcome: { status: string } }[]
      }
      const shares = trials.filter((t) => t.outcome.status === 'measured').map((t) => t.share ?? 1)
      expect(new Set(shares)).toEqual(new Set([0.25, 0.5, 1]))
      const whole = 4 + shares.filter((s) => s < 1).length
      workers[1]!.process.kill('SIGINT')
      expect([await workers[1]!.ended(), workers[1]!.out]).toEqual([0, `${whole} trials done\n`])
    } finally {
      for (const w of workers) w.process.kill('SIGKILL')
    }
  })

  test('missing workers and workers of other devices are reported after a delay', async () => {
    const queue = folder.at('missing.db')
    const stop = new AbortController()
    const other = { kind: 'cuda', name: 'another chip', driver: '1' } as const
    const listening = runWorker(queue, other, () => Promise.reject(new Error('not for it')), {
      signal: stop.signal,
    })
    const { code, err } = await spt(['tune', ...asked, '--queue', queue, '--idle', '1'])
    expect(code).toBe(1)
    expect(err).toContain('[studies/no-workers]')
    expect(err).toContain('there is one for cuda another chip (1)')
    expect(err).toContain('waits for one')
    stop.abort()
    expect(await listening).toBe(0)
  })

  test('results that came before the study is removed are reported', async () => {
    const queue = folder.at('gone.db')
    const leaving = new AbortController()
    let count = 0
    let [entered, removed] = [() => {}, () => {}]
    const second = new Promise<void>((r) => (entered = r))
    const removal = new Promise<void>((r) => (removed = r))
    const one = { median: 3, interval: null, samples: [3] }
    let id = ''
    const doing = runWorker(
      queue,
      await devices.cpu(),
      async ({ study }) => {
        id = study.id
        if (count++ > 0) {
          entered()
          await removal
        }
        return { outcome: { status: 'measured', timing: one } }
      },
      { signal: leaving.signal },
    )
    const found = spt(['tune', ...asked, '--queue', queue, '--db', folder.at('left.db')])
    await second
    // Until the search has read the first result.
    const records = await openRecords(folder.at('left.db'))
    while (records.query({ status: 'measured' }).length < 1) await new Promise((r) => setTimeout(r, 20))
    records.close()
    await unpublishStudy(queue, id)
    const gone = await found
    expect(gone.code).toBe(1)
    expect(gone.err).toMatch(/^note: until then, the best of 5 trials took 3 ms/m)
    expect(gone.err).toMatch(/^schedule mul\.tuned \{/m)
    expect(gone.err).toContain('[studies/unknown]')
    leaving.abort()
    removed()
    await doing
  })
})
