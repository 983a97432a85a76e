/** Shared studies: each trial is done, and kept once, whatever dies meanwhile. */

import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
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
import { TrialQueue } from '../../src/search/studies/queue.ts'
import { Folder, MATRIX, PROGRAM } from '../cli/support.ts'
import { LONG } from '../support/cases.ts'
import { bundled } from './bundled.ts'

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
})

test('if workers are killed, each trial is kept exactly once', async () => {
  const { shared, kernel } = await some()
  // Whose version it is: a worker of another one has another queue.
  folder.file('package.json', readFileSync('package.json'))
  const script = await bundled(WORKER, folder.at('worker.mjs'))
  const file = folder.at('killed.db')
  const count = LONG ? 600 : 120
  const trials = trialsOf(kernel, count)
  const workers: ChildProcess[] = []
  const done = new Map<number, number>()
  let finished = (_: number): void => {}
  function start(name: string): ChildProcess {
    const child = spawn(process.execPath, [script, file, name, JSON.stringify(device)], {
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
    expect((await publishStudy(file, shared, trials)).added).toBe(count)
    // Twice is once.
    expect((await publishStudy(file, shared, trials.slice(0, 50))).added).toBe(0)
    start('first')
    const second = start('second')
    const records = await openRecords(folder.at('r.db'))
    const seen: number[] = []
    const collecting = collectResults(file, shared.study.id, records, {
      pollMs: 100,
      onTrial: (t) => void seen.push(t.point.k as number),
    })
    await reached(count / 4)
    second.kill('SIGKILL')
    await reached(count / 2)
    start('third').kill('SIGKILL')
    start('fourth')
    expect(await collecting).toEqual({ kept: count, left: 0 })
    const kept = records.query()
    expect(kept.map((t) => t.point.k).sort((a, b) => Number(a) - Number(b))).toEqual(
      trials.map((t) => t.point.k),
    )
    for (const { point, outcome, predicted, worker } of kept) {
      expect(outcome).toMatchObject({ status: 'measured', timing: { median: point.k } })
      expect([predicted, ['first', 'second', 'third', 'fourth'].includes(worker!)]).toEqual([point.k, true])
    }
    expect(seen.length).toBe(count)
    // Those that a worker was killed over, and no others.
    expect([...done.values()].reduce((a, b) => a + b)).toBeLessThanOrEqual(count + 2)
    expect(
      records.missing(
        shared.study.id,
        trials.map((t) => t.point),
      ),
    ).toEqual([])
    // Collected again, nothing is new; forgotten, it is not there.
    expect(await collectResults(file, shared.study.id, records)).toEqual({ kept: 0, left: 0 })
    await unpublishStudy(file, shared.study.id)
    expect(await codeOf(collectResults(file, shared.study.id, records))).toBe('studies/unknown')
    records.close()
  } finally {
    for (const w of workers) w.kill('SIGKILL')
  }
})

test('a worker ends on request, when nothing is left, and when it is broken', async () => {
  const file = folder.at('ending.db')
  const { shared, kernel } = await some()
  const trials = trialsOf(kernel, 5)
  await publishStudy(file, shared, trials)
  const stop = new AbortController()
  const wrong = async () => {
    stop.abort()
    return { outcome: { status: 'wrong', message: 'of a test' } } as const
  }
  expect(await runWorker(file, device, wrong, { signal: stop.signal })).toBe(1)
  const fails = async () => Promise.reject(new Error('no device'))
  expect(await codeOf(runWorker(file, device, fails))).toBe('studies/broken-worker')
  // Of another driver there is nothing to do.
  expect(await runWorker(file, { ...device, driver: '2' }, wrong, { idleSeconds: 0 })).toBe(0)
  const rest = await runWorker(file, device, wrong, { idleSeconds: 0.5 })
  const records = await openRecords(folder.at('ends.db'))
  expect(await collectResults(file, shared.study.id, records, { wait: false })).toEqual({
    kept: 5,
    left: 0,
  })
  const failed = records.query({ status: 'failed' })
  expect([failed.length, rest]).toEqual([
    failed.filter((t) => t.outcome.status === 'failed' && t.outcome.code === 'studies/worker').length,
    4 - failed.length,
  ])
  records.close()
})

test('a worker waits while a trial of its device may have to be taken over', async () => {
  const file = folder.at('taken-over.db')
  const { shared, kernel } = await some()
  await publishStudy(file, shared, trialsOf(kernel, 1))
  // As a worker that dies: it takes the trial, and says nothing more.
  const queue = await TrialQueue.open(file)
  expect(queue.take('a dead one', shared.study, Date.now() + 1000)).toMatchObject({
    trial: { point: { k: 0 } },
  })
  const evaluate = async () => ({ outcome: { status: 'wrong', message: 'of a test' } }) as const
  expect(await runWorker(file, device, evaluate, { lockMs: 1000, idleSeconds: 0.1 })).toBe(1)
  queue[Symbol.dispose]()
})

test('a trial that kills its workers fails after the third', async () => {
  const file = folder.at('killing.db')
  const { shared, kernel } = await some()
  await publishStudy(file, shared, trialsOf(kernel, 1))
  const queue = await TrialQueue.open(file)
  for (const worker of ['first', 'second', 'third'])
    expect(queue.take(worker, shared.study, Date.now() - 1)).toBeDefined()
  expect(queue.take('fourth', shared.study, Date.now() - 1)).toBe(undefined)
  const records = await openRecords(':memory:')
  await collectResults(file, shared.study.id, records, { wait: false })
  expect(records.query().map((t) => t.outcome)).toEqual([
    { status: 'failed', code: 'studies/worker', message: 'the worker sent no result' },
  ])
  // Published again, it is attempted again.
  expect(await publishStudy(file, shared, trialsOf(kernel, 1))).toEqual({ added: 1 })
  expect(queue.take('fourth', shared.study, Date.now() + 1000)).toBeDefined()
  queue[Symbol.dispose]()
  records.close()
})

test('times of different devices and compilers are separate', async () => {
  const { shared } = await some()
  expect(shared.study.compiler).toBe(compilerVersion())
  expect(deviceIdentity(await devices.cpu()).driver).toContain(process.versions.node)
})
