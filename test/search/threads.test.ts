/** Threads that run a script: answers, and threads that fail or do not answer. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type * as Evaluation from '../../src/search/evaluate/evaluation-threads.ts'
import { Threads, threadScript } from '../../src/search/threads.ts'
import { PRODUCT } from '../support/product.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparsetile-threads-'))
  await writeFile(
    join(folder, 'script.mjs'),
    `import { parentPort, threadId } from 'node:worker_threads'
    parentPort.on('message', (task) => {
      if (task === 'break') throw new Error('broken')
      if (task === 'exit') process.exit(3)
      if (task !== 'sleep') parentPort.postMessage([task, threadId])
    })`,
  )
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const PATIENCE = 60_000
const late = (): Error => new Error('late')
const threads = (idle = PATIENCE) => new Threads<unknown, [string, number]>(join(folder, 'script.mjs'), idle)

test('threads are reused while they live', async () => {
  const all = threads()
  const ask = async (k: number): Promise<number> => (await all.first(2)[k]!.request('a', PATIENCE, late))[1]
  const [first, second] = [await ask(0), await ask(1)]
  expect([await ask(0), await ask(1)]).toEqual([first, second])
  expect(first).not.toBe(second)
  await expect(all.first(1)[0]!.request(() => 0, PATIENCE, late)).rejects.toThrow(/could not be cloned/)
  expect(await ask(0)).toBe(first)
  const asleep = all.first(1)[0]!.request('sleep', PATIENCE, late)
  all.end()
  await expect(asleep).rejects.toThrow('closed')
})

test('requests of a thread are answered in their order, and all rejected if it ends', async () => {
  const all = threads()
  const ask = (...tasks: readonly string[]) => {
    const [thread] = all.first(1)
    return tasks.map((t) => thread!.request(t, PATIENCE, late))
  }
  expect((await Promise.all(ask('a', 'b', 'c'))).map(([task]) => task)).toEqual(['a', 'b', 'c'])
  const broken = await Promise.allSettled(ask('a', 'break', 'b'))
  expect(broken.map((r) => r.status)).toEqual(['fulfilled', 'rejected', 'rejected'])
  all.end()
})

test('a broken, ended or slow thread is replaced', async () => {
  const all = threads()
  for (const [task, patience, why] of [
    ['break', PATIENCE, 'broken'],
    ['exit', PATIENCE, 'the thread ended with 3'],
    ['sleep', 1, 'late'],
  ] as const) {
    const [thread] = all.first(1)
    await expect(thread!.request(task, patience, late)).rejects.toThrow(why)
    const [next] = all.first(1)
    expect(next).not.toBe(thread)
    expect((await next!.request('b', PATIENCE, late))[0]).toBe('b')
  }
  all.end()
})

test('idle threads end, unless they are needed before', async () => {
  const all = threads(1)
  const [thread] = all.first(1)
  const asleep = thread!.request('sleep', PATIENCE, late)
  all.rest()
  expect(all.first(1)[0]).toBe(thread)
  all.rest()
  await expect(asleep).rejects.toThrow('closed')
  expect(all.first(1)[0]).not.toBe(thread)
  all.end()
})

test.runIf(threadScript('thread-tasks') !== null)(
  'consecutive searches use the same thread, and an ended search does not affect the next ones',
  async () => {
    // An instance of the module of its own: other test files of this process leave threads in its pool.
    const path = '../../src/search/evaluate/evaluation-threads.ts?own'
    const { EvaluationThreads }: typeof Evaluation = await import(/* @vite-ignore */ path)
    const { loops: kernel } = parseProgram(PRODUCT).kernel('product').compilation
    const lowered = async (threads: Evaluation.EvaluationThreads) => {
      expect((await threads.plan({ loops: kernel, options: {} }, 'product')).steps.length).toBeGreaterThan(0)
    }
    /** Number of threads that `work` starts: thread ids are consecutive. */
    const begun = async (work: () => Promise<void>): Promise<number> => {
      const number = async (): Promise<number> => {
        const thread = new Worker('', { eval: true })
        const { threadId } = thread
        await thread.terminate()
        return threadId
      }
      const before = await number()
      await work()
      return (await number()) - before - 1
    }
    const once = async (): Promise<void> => {
      const threads = new EvaluationThreads()
      await lowered(threads)
      threads.close()
    }
    await once()
    expect(
      await begun(async () => {
        for (let k = 0; k < 3; k++) await once()
      }),
    ).toBe(0)
    // Two at the same time need one more, and closing a busy search ends only its own thread.
    const [first, second] = [new EvaluationThreads(), new EvaluationThreads()]
    expect(
      await begun(async () => {
        const closed = expect(first.plan({ loops: kernel, options: {} }, 'product')).rejects.toThrow('closed')
        const other = lowered(second)
        first.close()
        await Promise.all([closed, other])
        await lowered(second)
        await once()
      }),
    ).toBe(1)
    second.close()
  },
)
