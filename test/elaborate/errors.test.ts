/**
 * Programs with one mistake each, and what is said about it. `UPDATE_GOLDEN=1 npx vitest run test/elaborate/errors`
 * writes the golden files anew; read the difference before committing it.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { readPackaged } from '../../src/ast/imports/resolve-path.ts'
import { packagedFormatsNamed } from '../../src/io/package/package.ts'
import { complaint, errors } from './support.ts'

// As in Node, whose package has these files.
readPackaged(packagedFormatsNamed)

const FOLDER = new URL('./errors/', import.meta.url)
const names = readdirSync(FOLDER)
  .filter((f) => f.endsWith('.spt'))
  .sort()
const textOf = (name: string): string => readFileSync(new URL(name, FOLDER), 'utf8')

describe('one mistake', () => {
  test.each(names)('%s', (name) => {
    const said = `${complaint(textOf(name), name)}\n`
    const golden = new URL(name.replace(/\.spt$/, '.golden'), FOLDER)
    if (process.env.UPDATE_GOLDEN) writeFileSync(golden, said)
    expect(existsSync(golden), 'no golden file; run with UPDATE_GOLDEN=1').toBe(true)
    expect(said).toBe(readFileSync(golden, 'utf8'))
  })

  test('one mistake is one diagnostic, and the files cover forty kinds of them', () => {
    const codes = new Set<string>()
    for (const name of names) {
      const list = errors(textOf(name), name)
      expect(
        list.map((d) => d.code),
        name,
      ).toHaveLength(1)
      codes.add(list[0]!.code)
    }
    expect(codes.size).toBeGreaterThanOrEqual(40)
  })

  test('no golden file is left over', () => {
    const golden = readdirSync(FOLDER).filter((f) => f.endsWith('.golden'))
    expect(golden.map((f) => f.replace(/\.golden$/, '.spt')).sort()).toEqual(names)
  })
})

test('several mistakes are all reported, in source order', () => {
  const list = errors(`
    kernel k(m: size, m: size) {
      axis i = dense_fixed(q)
      axis j = sparse_variable(ii, m)
      axis r = dense_fixed(m)
      buffer x: f32[r] in
      buffer y: f32[r] out
      iterate a [r] as S { y[r] = x[r, r] + z }
      iterate b [r] as R { y[r] = x[r] }
      iterate c [i] as S { y[i] = 1 }
    }`)
  expect(list.map((d) => d.code)).toEqual([
    'check/duplicate',
    'check/unknown-size',
    'check/unknown-axis',
    'check/index-count',
    'check/unknown-name',
    'check/assign-in-reduction',
  ])
})
