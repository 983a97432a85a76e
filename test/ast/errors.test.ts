/**
 * Programs with one mistake each, and what is said about it. `UPDATE_GOLDEN=1 npx vitest run test/ast/errors` writes
 * the golden files anew; read the difference before committing it.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { complaint } from './support.ts'

const FOLDER = new URL('./errors/', import.meta.url)
const names = readdirSync(FOLDER)
  .filter((f) => f.endsWith('.spt'))
  .sort()

describe('one mistake', () => {
  test.each(names)('%s', (name) => {
    const text = readFileSync(new URL(name, FOLDER), 'utf8')
    const said = `${complaint(text, name)}\n`
    const golden = new URL(name.replace(/\.spt$/, '.golden'), FOLDER)
    if (process.env.UPDATE_GOLDEN) writeFileSync(golden, said)
    expect(existsSync(golden), 'no golden file; run with UPDATE_GOLDEN=1').toBe(true)
    expect(said).toBe(readFileSync(golden, 'utf8'))
  })

  test('no golden file is left over', () => {
    const golden = readdirSync(FOLDER).filter((f) => f.endsWith('.golden'))
    expect(golden.map((f) => f.replace(/\.golden$/, '.spt')).sort()).toEqual(names)
  })
})
