/**
 * With a mutant switched on, runs the tests that were chosen for it and skips the others. With none, writes for each test
 * file which mutants are reached while it is loaded and by each of its tests, and how long these took.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeEach, expect } from 'vitest'

const on = process.env.MUTANT === undefined ? -1 : Number(process.env.MUTANT)
/** A test's name within its file. */
const nameOf = (task) => (task.suite?.name ? `${nameOf(task.suite)} > ${task.name}` : task.name)
const fileOf = (path) => path.slice(path.lastIndexOf('/test/') + 1)

if (on < 0) {
  const reached = new Uint8Array(Number(process.env.MUTANT_COUNT))
  globalThis.mutant = (n) => {
    reached[n] = 1
    return false
  }
  const took = () => {
    const all = [...reached.keys()].filter((n) => reached[n])
    reached.fill(0)
    return all
  }
  let start = performance.now()
  let loaded
  const tests = []
  beforeEach((cx) => {
    const before = took()
    loaded ??= { seconds: (performance.now() - start) / 1000, reached: before }
    start = performance.now()
    const test = { name: nameOf(cx.task), passed: true }
    tests.push(test)
    cx.onTestFailed(() => {
      test.passed = false
    })
  })
  afterEach(() => {
    Object.assign(tests.at(-1), { seconds: (performance.now() - start) / 1000, reached: took() })
  })
  afterAll(() => {
    const file = fileOf(expect.getState().testPath)
    writeFileSync(
      `${process.env.REACHED}/${file.replaceAll('/', '+')}`,
      JSON.stringify({ file, loaded, tests }),
    )
  })
} else {
  globalThis.mutant = (n) => n === on
  const chosen = new Map(JSON.parse(readFileSync(process.env.CHOSEN, 'utf8')))
  beforeEach((cx) => {
    const names = chosen.get(fileOf(cx.task.file.filepath))
    if (names && !names.includes(nameOf(cx.task))) cx.skip()
  })
}
