/** Read-backs one at a time: what comes while one is under way is read after it, the latest of several alone. */
import { expect, test } from 'vitest'
import { SparsityReadback } from '../../src/api/dispatch/last-run.ts'

/** A read-back that ends when it is told to. */
function held(name: string, log: string[]) {
  let end = (): void => {}
  let fail = (_: Error): void => {}
  const read = (): Promise<void> => {
    log.push(name)
    return new Promise<void>((resolve, reject) => {
      end = resolve
      fail = reject
    })
  }
  return { read, end: () => end(), fail: () => fail(new Error(name)) }
}

test('a read-back during another is made after it', async () => {
  const log: string[] = []
  const readings = new SparsityReadback()
  const [a, b, c] = ['a', 'b', 'c'].map((n) => held(n, log)) as [
    ReturnType<typeof held>,
    ReturnType<typeof held>,
    ReturnType<typeof held>,
  ]
  readings.later(a.read)
  readings.later(b.read)
  readings.later(c.read)
  expect(log).toEqual(['a'])
  let known = false
  const waits = readings.known().then(() => {
    known = true
  })
  a.end()
  await new Promise((resolve) => setImmediate(resolve))
  expect(log).toEqual(['a', 'c'])
  expect(known).toBe(false)
  c.end()
  await waits
  readings.later(b.read)
  expect(log).toEqual(['a', 'c', 'b'])
  b.end()
  await readings.known()
})

test('a failed read-back does not prevent the next', async () => {
  const log: string[] = []
  const readings = new SparsityReadback()
  const [a, b] = [held('a', log), held('b', log)]
  readings.later(a.read)
  readings.later(b.read)
  a.fail()
  await new Promise((resolve) => setImmediate(resolve))
  expect(log).toEqual(['a', 'b'])
  b.end()
  await readings.known()
})
