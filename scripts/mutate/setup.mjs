/** Switches one mutant on; or, with none, writes which are reached by each test file. */
import { writeFileSync } from 'node:fs'
import { afterAll, expect } from 'vitest'

const on = process.env.MUTANT === undefined ? -1 : Number(process.env.MUTANT)
const reached = new Set()
globalThis.mutant = (n) => {
  if (on < 0) reached.add(n)
  return n === on
}
if (on < 0)
  afterAll(() => {
    const file = expect.getState().testPath
    const name = file.slice(file.lastIndexOf('/test/') + 1).replaceAll('/', '+')
    writeFileSync(`${process.env.REACHED}/${name}`, JSON.stringify([...reached]))
  })
