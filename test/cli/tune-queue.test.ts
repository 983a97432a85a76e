/** `spt tune --queue` and `--worker`: trials that another process does, once, and nothing that waits without an end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import type { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { devices } from '../../src/node.ts'
import { openRecords } from '../../src/search/records/index.ts'
import { runWorker, unpublishStudy } from '../../src/search/studies/index.ts'
import { bundled } from '../search/bundled.ts'
import { HAS_REDIS, RedisServer } from '../search/redis-server.ts'
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

/** A server that is no Redis, or none that can be used: what it answers to each command. */
async function pretended(
  answer: (command: string) => string | undefined,
): Promise<{ server: Server; url: string }> {
  const open: Socket[] = []
  const server = createServer((socket) => {
    open.push(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const command of String(data).split(/^(?=\*)/m)) {
        const text = answer(command)
        if (text !== undefined) socket.write(text)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.on('close', () => {
    for (const socket of open) socket.destroy()
  })
  return { server, url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`

describe('an unusable server', () => {
  test('is a diagnostic, for publisher and workers', async () => {
    const silent = await pretended(() => undefined)
    const web = await pretended(() => 'HTTP/1.1 400 Bad Request\r\n\r\n')
    const old = await pretended((c) =>
      /info/i.test(c) ? bulk('redis_version:3.2.1\r\nloading:0\r\n') : '+OK\r\n',
    )
    const locked = await pretended(() => '-NOAUTH Authentication required.\r\n')
    const refusals = [
      [silent.url, 'studies/unreachable'],
      [web.url, 'studies/unreachable'],
      [old.url, 'studies/version'],
      [locked.url, 'studies/unreachable'],
    ] as const
    const refused = async (work: Promise<unknown>): Promise<string> =>
      work.then(
        () => 'nothing was refused',
        (e: SptError) => e.diagnostics[0]!.code,
      )
    const device = { kind: 'cpu', name: 'of tests', driver: '1' } as const
    const nothing = () => Promise.reject(new Error('no trial comes'))
    try {
      const found = refusals.flatMap(([url]) => [
        refused(runWorker(url, device, nothing)),
        refused(unpublishStudy(url, 'a study')),
      ])
      expect(await Promise.all(found)).toEqual(refusals.flatMap(([, code]) => [code, code]))
      for (const url of ['redis://127.0.0.1:1', '127.0.0.1:6379', 'http://127.0.0.1'])
        for (const argv of [
          ['--worker', url],
          [...study, '--queue', url],
        ]) {
          const { code, err } = await spt(['tune', ...argv])
          expect(code).toBe(1)
          expect(err).toContain(url.startsWith('redis:') ? '[studies/unreachable]' : '[studies/address]')
        }
    } finally {
      for (const { server } of [silent, web, old, locked]) server.close()
    }
  })

  test('options of workers and of studies are separate', async () => {
    const said = async (...argv: string[]): Promise<string> => (await spt(['tune', ...argv])).err
    expect(await said()).toContain('a file is missing')
    expect(await said(program, '--worker', 'redis://x')).toContain('--worker takes no file')
    expect(await said('--worker', 'redis://x', '--trials', '3')).toContain('--trials is not possible')
    expect(await said(program, '--data-root', '.')).toContain('--data-root has no effect without --worker')
    expect(await said(program, '--idle', '3')).toContain('--idle has no effect without --queue or --worker')
  })
})

describe.skipIf(!HAS_REDIS)(
  `on a server${HAS_REDIS ? '' : ' (skipped: there is no redis-server here)'}`,
  () => {
    test('workers run each trial once, and stop after the current one', async () => {
      const server = await RedisServer.start(mkdtempSync(folder.at('redis-')))
      const worker = new Worker(await script(), ['--worker', server.url])
      try {
        const db = folder.at('r.db')
        const first = await spt(['tune', ...asked, '--queue', server.url, '--db', db])
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
        const again = JSON.parse((await spt(['tune', ...asked, '--queue', server.url])).out)
        expect(again.trials.map((t: { outcome: unknown }) => t.outcome)).toEqual(
          found.trials.map((t: { outcome: unknown }) => t.outcome),
        )
        // Several files are a study each, which candidates of all belong to.
        const other = folder.file('b.mtx', MATRIX.replace('3 4 0.5', '2 4 0.5'))
        const both = JSON.parse(
          (await spt(['tune', ...asked, '--bind', `A=${other}`, '--queue', server.url])).out,
        )
        expect(both.candidates.length).toBeGreaterThan(2)
        for (const { timings } of both.candidates)
          expect(timings.every((t: unknown) => t !== null)).toBe(true)
        worker.process.kill('SIGINT')
        const count = 4 + 4 + 2 * both.candidates.length
        expect([await worker.ended(), worker.out]).toEqual([0, `${count} trials done\n`])
        expect(worker.err).toContain('ends after the present trial')
      } finally {
        worker.process.kill('SIGKILL')
        await server.kill()
      }
    })

    test('a trial that no worker can run is retried, then ends the search', async () => {
      const server = await RedisServer.start(mkdtempSync(folder.at('redis-')))
      const file = await script()
      const barred = new Worker(file, [
        '--worker',
        server.url,
        '--data-root',
        mkdtempSync(folder.at('data-')),
      ])
      const workers = [barred]
      try {
        await barred.said('waits for trials')
        const refused = await spt(['tune', ...asked, '--queue', server.url])
        expect(refused.code).toBe(1)
        expect(refused.err).toContain('[studies/worker]')
        expect(refused.err).toContain('which is outside of')
        // It is not what broke.
        expect(barred.process.exitCode).toBe(null)
        barred.process.kill('SIGTERM')
        expect([await barred.ended(), barred.out]).toEqual([0, '0 trials done\n'])
        workers.push(new Worker(file, ['--worker', server.url]))
        expect((await spt(['tune', ...asked, '--queue', server.url])).code).toBe(0)
        // Shares of a measurement are trials of their own.
        const short = [...study, '--strategy', 'halving', '--trials', '4', '--json', '--queue', server.url]
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
        await server.kill()
      }
    })

    test('missing workers, workers of other devices and a lost server are reported after a delay', async () => {
      const data = mkdtempSync(folder.at('redis-'))
      const server = await RedisServer.start(data)
      const [stop, leaving] = [new AbortController(), new AbortController()]
      const other = { kind: 'cuda', name: 'another chip', driver: '1' } as const
      const listening = runWorker(server.url, other, () => Promise.reject(new Error('not for it')), {
        signal: stop.signal,
      })
      try {
        const { code, err } = await spt(['tune', ...asked, '--queue', server.url, '--idle', '1'])
        expect(code).toBe(1)
        expect(err).toContain('[studies/no-workers]')
        expect(err).toContain('there is one for cuda another chip (1)')
        expect(err).toContain('waits for one')
        stop.abort()
        expect(await listening).toBe(0)

        const waiting = spt(['tune', ...asked, '--queue', server.url, '--idle', '1'])
        await new Promise((r) => setTimeout(r, 300))
        await server.kill()
        const lost = await waiting
        expect(lost.code).toBe(1)
        expect(lost.err).toContain('[studies/unreachable]')
        expect(lost.err).toContain('has not answered for 1 s')

        // What came before it went away is told.
        await server.start()
        let count = 0
        const one = { median: 3, interval: null, samples: [3] }
        const doing = runWorker(
          server.url,
          await devices.cpu(),
          async () => {
            if (count++ > 0) await new Promise((r) => setTimeout(r, 3000))
            return { outcome: { status: 'measured', timing: one } }
          },
          { signal: leaving.signal },
        )
        const found = spt([
          'tune',
          ...asked,
          '--queue',
          server.url,
          '--idle',
          '2',
          '--db',
          folder.at('gone.db'),
        ])
        while (count < 2) await new Promise((r) => setTimeout(r, 50))
        await new Promise((r) => setTimeout(r, 500))
        await server.kill()
        const gone = await found
        expect(gone.code).toBe(1)
        expect(gone.err).toMatch(/^note: until then, the best of 5 trials took 3 ms/m)
        expect(gone.err).toMatch(/^schedule mul\.tuned \{/m)
        expect(gone.err).toContain('[studies/unreachable]')
        leaving.abort()
        await doing
      } finally {
        stop.abort()
        leaving.abort()
        await server.kill()
        rmSync(data, { recursive: true, force: true })
      }
    })
  },
)
