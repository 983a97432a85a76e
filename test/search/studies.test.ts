/** Shared studies: each trial is done, and kept once, whatever dies meanwhile. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Diagnostic } from '../../src/ast/diagnostics/diagnostic.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { coords, devices, type Kernel, load, readTensor } from '../../src/node.ts'
import { compilerVersion, createStudy, deviceIdentity, openRecords } from '../../src/search/records/index.ts'
import {
  collectResults,
  publishStudy,
  rebuildStudy,
  runWorker,
  type SharedStudy,
  shareProgram,
  unpublishStudy,
} from '../../src/search/studies/index.ts'
import { addTrials, connectEngine, PREFIX, queueName } from '../../src/search/studies/queue.ts'
import { Folder, MATRIX, PROGRAM } from '../cli/support.ts'
import { LONG } from '../support/cases.ts'
import { bundled } from './bundled.ts'
import { HAS_REDIS, RedisServer } from './redis-server.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const device = { kind: 'cpu', name: 'of tests', driver: '1' } as const

const codeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
  } catch (e) {
    if (e instanceof SptError) return (e.diagnostics[0] as Diagnostic).code
    throw e
  }
  return 'nothing was refused'
}

/** A study of a program that imports another. */
async function some(): Promise<{ readonly shared: SharedStudy; readonly kernel: Kernel }> {
  folder.file(
    'base.spt',
    'format own over (i, j) {\n  axis io = dense_fixed(i)\n  axis jo = sparse_variable(io, j)\n  map (i, j) -> (i, j)\n  inverse (io, jo) -> (io, jo)\n}\n',
  )
  const program = await load(folder.file('mul.spt', `import "base.spt"\n${PROGRAM}`))
  const kernel = program.kernel('mul')
  const A = await readTensor(folder.file('a.mtx', MATRIX))
  const inputs = { tensors: { A }, params: { d: 2, alpha: 1 }, seed: 3 }
  const study = createStudy(kernel, inputs, device, { space: 'of tests', seed: 1 })
  const tensors = { A: { file: folder.at('a.mtx') } }
  const shared = {
    study,
    program: shareProgram(program),
    kernel: 'mul',
    tensors,
    params: inputs.params,
    seed: 3,
  }
  return { shared, kernel }
}

const trialsOf = (kernel: Kernel, count: number) =>
  Array.from({ length: count }, (_, k) => ({ point: { k }, trace: kernel.toJSON(), predicted: k }))

const WORKER = `import { runWorker } from './src/search/studies/index.ts'
const [url, name, device] = process.argv.slice(2)
const measured = async (study, trial) => {
  console.log(trial.point.k)
  await new Promise((r) => setTimeout(r, 10))
  return { outcome: { status: 'measured', timing: { median: trial.point.k, interval: [0, trial.point.k], samples: [trial.point.k] } } }
}
await runWorker(url, JSON.parse(device), measured, { name, lockMs: 1000, idleSeconds: 6 })`

describe('the contents of a study', () => {
  test('are its program and data, which workers reassemble, or reject', async () => {
    const { shared, kernel } = await some()
    const again = JSON.parse(JSON.stringify(shared)) as SharedStudy
    const rebuilt = await rebuildStudy(again, { instructions: false, dataRoot: folder.path })
    expect(rebuilt.kernel.show(1)).toBe(kernel.show(1))
    expect(rebuilt.program.format('own')).toBeDefined()
    const run = async (k: Kernel) => (await k.build(await devices.cpu()))(...flatInputs(rebuilt.inputs))
    expect((await run(rebuilt.kernel.replay(kernel.split('i', 2).toJSON()))).C).toEqual((await run(kernel)).C)

    expect(await codeOf(rebuildStudy(shared, { dataRoot: folder.at('below') }))).toBe('studies/outside-root')
    const [first, ...others] = shared.program.sources
    const without = { ...shared, program: { ...shared.program, sources: [first!] } }
    expect(await codeOf(rebuildStudy(without))).toBe('studies/incomplete')
    const text = first!.text.replace('A[i, j]', '2.0 * A[i, j]')
    const altered = { ...shared, program: { ...shared.program, sources: [{ ...first!, text }, ...others] } }
    expect(await codeOf(rebuildStudy(altered))).toBe('studies/other-kernel')
    const family = { ...shared, tensors: { A: { family: 'one' } } }
    expect(await codeOf(rebuildStudy(family))).toBe('studies/family')
    const one = coords([1, 1], [[0], [0]], [1])
    expect(await codeOf(rebuildStudy(family, { generate: () => one }))).toBe('studies/other-data')
  })

  test('addresses are checked, and never shown with their passwords', async () => {
    const { shared } = await some()
    for (const url of ['localhost:6379', 'http://x', 'redis://', ':secret@host'])
      expect(await codeOf(publishStudy(url, shared, []))).toBe('studies/address')
    const refused = publishStudy('redis://:secret@127.0.0.1:1', shared, [])
    expect(await codeOf(refused)).toBe('studies/unreachable')
    await refused.catch((e: Error) => expect(e.message).not.toContain('secret'))
  })
})

test('all trials are listed before the first is published, so that collectors wait for all', async () => {
  const { shared, kernel } = await some()
  const calls: string[] = []
  const redis = {
    set: async () => calls.push('study'),
    sadd: async (_: string, ...m: string[]) => calls.push(`${m.length} listed`),
  }
  const queue = {
    getJob: async () => undefined,
    addBulk: async (jobs: unknown[]) => calls.push(`${jobs.length} added`),
  }
  const trials = trialsOf(kernel, 700)
  expect(
    await addTrials({ redis } as never, queue as never, shared, [...trials, ...trials.slice(0, 9)]),
  ).toBe(700)
  expect(calls).toEqual(['study', '500 listed', '200 listed', '500 added', '200 added'])
})

describe.skipIf(!HAS_REDIS)(
  `on a server${HAS_REDIS ? '' : ' (skipped: there is no redis-server here)'}`,
  () => {
    test('if workers and the server are killed, each trial is kept exactly once', async () => {
      const { shared, kernel } = await some()
      // Whose version it is: a worker of another one has another queue.
      folder.file('package.json', readFileSync('package.json'))
      const script = await bundled(WORKER, folder.at('worker.mjs'))
      const server = await RedisServer.start(mkdtempSync(folder.at('redis-')))
      const count = LONG ? 600 : 120
      const trials = trialsOf(kernel, count)
      const workers: ChildProcess[] = []
      const done = new Map<number, number>()
      let finished = (_: number): void => {}
      function start(name: string): ChildProcess {
        const child = spawn(process.execPath, [script, server.url, name, JSON.stringify(device)], {
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        child.stdout.on('data', (text: Buffer) => {
          for (const k of String(text).trim().split('\n').map(Number)) done.set(k, (done.get(k) ?? 0) + 1)
          finished(done.size)
        })
        workers.push(child)
        return child
      }
      const reached = (n: number): Promise<void> =>
        new Promise((resolve) => {
          finished = (size) => size >= n && resolve()
          finished(done.size)
        })
      try {
        expect((await publishStudy(server.url, shared, trials)).added).toBe(count)
        // Twice is once.
        expect((await publishStudy(server.url, shared, trials.slice(0, 50))).added).toBe(0)
        start('first')
        const second = start('second')
        const records = await openRecords(folder.at('r.db'))
        const seen: number[] = []
        const collecting = collectResults(server.url, shared.study.id, records, {
          pollMs: 100,
          onTrial: (t) => void seen.push(t.point.k as number),
        })
        await reached(count / 4)
        second.kill('SIGKILL')
        await reached(count / 2)
        await server.kill()
        start('third')
        await server.start()
        start('fourth')
        expect(await collecting).toEqual({ kept: count, left: 0 })
        const kept = records.query()
        expect(kept.map((t) => t.point.k).sort((a, b) => Number(a) - Number(b))).toEqual(
          trials.map((t) => t.point.k),
        )
        for (const { point, outcome, predicted, worker } of kept) {
          expect(outcome).toMatchObject({ status: 'measured', timing: { median: point.k } })
          expect([predicted, ['first', 'second', 'third', 'fourth'].includes(worker!)]).toEqual([
            point.k,
            true,
          ])
        }
        expect(seen.length).toBe(count)
        // Those that a worker or the server was killed over, and no others.
        expect([...done.values()].reduce((a, b) => a + b)).toBeLessThanOrEqual(count + 4)
        expect(
          records.missing(
            shared.study.id,
            trials.map((t) => t.point),
          ),
        ).toEqual([])
        // Collected again, nothing is new; forgotten, it is not there.
        expect(await collectResults(server.url, shared.study.id, records)).toEqual({ kept: 0, left: 0 })
        await unpublishStudy(server.url, shared.study.id)
        expect(await codeOf(collectResults(server.url, shared.study.id, records))).toBe('studies/unknown')
        records.close()
      } finally {
        for (const w of workers) w.kill('SIGKILL')
        await server.kill()
      }
    })

    test('a worker ends on request, when nothing is left, and when it is broken', async () => {
      const server = await RedisServer.start(mkdtempSync(folder.at('redis-')))
      try {
        const { shared, kernel } = await some()
        const trials = trialsOf(kernel, 5)
        await publishStudy(server.url, shared, trials)
        const stop = new AbortController()
        const wrong = async () => {
          stop.abort()
          return { outcome: { status: 'wrong', message: 'of a test' } } as const
        }
        expect(await runWorker(server.url, device, wrong, { signal: stop.signal })).toBe(1)
        const fails = async () => Promise.reject(new Error('no device'))
        expect(await codeOf(runWorker(server.url, device, fails))).toBe('studies/broken-worker')
        // Of another driver there is nothing to do.
        expect(await runWorker(server.url, { ...device, driver: '2' }, wrong, { idleSeconds: 0 })).toBe(0)
        const rest = await runWorker(server.url, device, wrong, { idleSeconds: 0.5 })
        const records = await openRecords(folder.at('ends.db'))
        expect(await collectResults(server.url, shared.study.id, records, { wait: false })).toEqual({
          kept: 5,
          left: 0,
        })
        const failed = records.query({ status: 'failed' })
        expect([failed.length, rest]).toEqual([
          failed.filter((t) => t.outcome.status === 'failed' && t.outcome.code === 'studies/worker').length,
          4 - failed.length,
        ])
        records.close()
      } finally {
        await server.kill()
      }
    })

    test('a worker waits while a trial of its queue may have to be taken over', async () => {
      const server = await RedisServer.start(mkdtempSync(folder.at('redis-')))
      const engine = await connectEngine(server.url)
      try {
        const { shared, kernel } = await some()
        await publishStudy(server.url, shared, trialsOf(kernel, 1))
        // As a worker that dies: it takes the trial, and says nothing more.
        const name = queueName(device, compilerVersion())
        const options = { connection: engine.redis, prefix: PREFIX, lockDuration: 1000 }
        const dead = new engine.bullmq.Worker(name, null, options)
        expect(await dead.getNextJob('of a dead one')).toBeDefined()
        const evaluate = async () => ({ outcome: { status: 'wrong', message: 'of a test' } }) as const
        expect(await runWorker(server.url, device, evaluate, { lockMs: 1000, idleSeconds: 0.1 })).toBe(1)
        await dead.close(true)
      } finally {
        engine.close()
        await server.kill()
      }
    })
  },
)

test('times of different devices and compilers are separate', async () => {
  const { shared } = await some()
  expect(shared.study.compiler).toBe(compilerVersion())
  expect(deviceIdentity(await devices.cpu()).driver).toContain(process.versions.node)
})
