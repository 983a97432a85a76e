/** Threads that run a script: what they answer, and what comes of one that does not. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Threads } from '../../src/search/threads.ts'

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

test('they stay the same ones as long as they live', async () => {
  const all = threads()
  const ask = async (k: number): Promise<number> => (await all.first(2)[k]!.ask('a', PATIENCE, late))[1]
  const [first, second] = [await ask(0), await ask(1)]
  expect([await ask(0), await ask(1)]).toEqual([first, second])
  expect(first).not.toBe(second)
  await expect(all.first(1)[0]!.ask(() => 0, PATIENCE, late)).rejects.toThrow(/could not be cloned/)
  expect(await ask(0)).toBe(first)
  const asleep = all.first(1)[0]!.ask('sleep', PATIENCE, late)
  all.end()
  await expect(asleep).rejects.toThrow('closed')
})

test('another one takes the place of one that broke, ended, or took too long', async () => {
  const all = threads()
  for (const [task, patience, why] of [
    ['break', PATIENCE, 'broken'],
    ['exit', PATIENCE, 'the thread ended with 3'],
    ['sleep', 1, 'late'],
  ] as const) {
    const [thread] = all.first(1)
    await expect(thread!.ask(task, patience, late)).rejects.toThrow(why)
    const [next] = all.first(1)
    expect(next).not.toBe(thread)
    expect((await next!.ask('b', PATIENCE, late))[0]).toBe('b')
  }
  // Nobody waits for this one.
  const [told] = all.first(1)
  told!.tell('break')
  await expect.poll(() => all.first(1)[0] === told, { timeout: PATIENCE }).toBe(false)
  all.end()
})

test('those that rest end, unless they are needed before', async () => {
  const all = threads(1)
  const [thread] = all.first(1)
  const asleep = thread!.ask('sleep', PATIENCE, late)
  all.rest()
  expect(all.first(1)[0]).toBe(thread)
  all.rest()
  await expect(asleep).rejects.toThrow('closed')
  expect(all.first(1)[0]).not.toBe(thread)
  all.end()
})
