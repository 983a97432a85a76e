/** Dispatch tables that searches write: new rules come first, for their kind of device, and rules for other devices stay. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { load, SptError } from '../../src/node.ts'
import { checkTable, dispatchTable, staleChoices } from '../../src/search/choice/table-text.ts'
import { PRODUCT } from '../support/product.ts'

const PROGRAM = `${PRODUCT}schedule product.tiled(rows = 8) { split i by rows -> (io, ii) }
schedule product.auto choose from "product-table.spt"
`
const kernel = parseProgram(PRODUCT, 'product.spt').kernel('product')
const origin = {
  name: 'cuda-2026-11-29',
  status: 'measured',
  device: 'NVIDIA H200',
  matrices: ['cora'],
  date: '2026-11-29',
  trials: 64,
} as const
const program = (table: string, text = PROGRAM) =>
  load(text, { name: 'product.spt', read: async () => table }).then((p) => p.kernel())
const by = { ...origin, name: 'hand', status: 'transferred', note: 'by hand' } as const
const first = dispatchTable({
  kernel,
  rules: [
    { when: 'cuda or d > 4', calls: 'tiled(2)' },
    { when: 'cuda and d > 2', calls: 'tiled(3)' },
    { calls: 'tiled' },
  ],
  device: 'cpu',
  origin: by,
})
const searched = (rules: Parameters<typeof dispatchTable>[0]['rules'], before = first): string =>
  dispatchTable({ kernel, rules, device: 'cuda', origin }, before)
const chosen = async (table: string, kind: 'cpu' | 'cuda', d: number) => {
  const { selection } = await (await program(table)).schedule('auto').choose(kind, { m: 8, n: 8, d })
  return [selection.text, selection.origin?.name]
}

describe('a table that a search writes', () => {
  test('has the rules as found, and the search', async () => {
    expect(await chosen(first, 'cpu', 2)).toEqual(['tiled', 'hand'])
    expect(await chosen(first, 'cuda', 2)).toEqual(['tiled(2)', 'hand'])
    expect(staleChoices(await program(first))).toEqual([])
  })

  test('keeps rules for other devices, and replaces rules for its own device that can no longer hold', async () => {
    const table = searched([
      { when: 'd > 2 or m > 9', calls: ['tiled(4)', 'tiled(5)'] },
      { calls: 'tiled(6)' },
    ])
    expect(await chosen(table, 'cuda', 4)).toEqual(['tiled(4)', origin.name])
    expect(await chosen(table, 'cuda', 1)).toEqual(['tiled(6)', origin.name])
    expect(await chosen(table, 'cpu', 5)).toEqual(['tiled(2)', 'hand'])
    expect(table).toContain('when (cuda and (d > 2 or m > 9))')
    expect(table).not.toContain('tiled(3)')
    // Written again, it has each rule and each search once.
    expect(searched([{ calls: 'tiled(6)' }], table).match(/tiled\(6\)/g)).toHaveLength(1)
    expect(searched([{ calls: 'tiled(6)' }], table)).not.toContain('tiled(4)')
    // Rules that hold for some data only do not replace others.
    expect(searched([{ when: 'd > 99', calls: 'tiled(6)' }])).toContain('tiled(3)')
  })

  test('is rejected if it belongs to another kernel', () => {
    expect(() => checkTable(first, 'a.spt', 'product')).not.toThrow()
    expect(() => checkTable(first, 'a.spt', 'sum')).toThrow('`a.spt` holds a dispatch of kernel product')
    expect(() => checkTable('{', 'a.spt', 'product')).toThrow(SptError)
    expect(() => checkTable(PROGRAM, 'a.spt', 'product')).toThrow('`a.spt` is a program')
  })

  test('keeps the comments of a table that it extends', () => {
    const remark = first.replace('  otherwise', '  // All others.\n  otherwise')
    expect(searched([{ calls: 'tiled(6)' }], remark)).toContain(
      '  // All others.\n  otherwise tiled from "hand"',
    )
  })

  test('is out of date after a change of the kernel, and not after a change of its text', async () => {
    const changed = PROGRAM.replace('A[i, j] *', '2 * A[i, j] *')
    expect(changed).not.toBe(PROGRAM)
    const [warning] = staleChoices(await program(first, changed))
    expect([warning!.code, warning!.severity]).toEqual(['table/stale', 'warning'])
    expect(warning!.hint).toContain('--generalise product-table.spt')
    expect(staleChoices(await program(first, `// a remark\n${PROGRAM}`))).toEqual([])
  })

  test('is out of date after a change of a called schedule or of one that it uses', async () => {
    const steps = `schedule rows(a: loop, rows = 4) { split a by rows -> (ao, ai) }
${PROGRAM.replace('split i by rows -> (io, ii)', 'use rows(i, rows)')}schedule product.other { unroll j by 4 }
`
    const declared = parseProgram(steps.replace(/schedule product.auto.*\n/, '')).kernel()
    const table = dispatchTable({ kernel: declared, rules: [{ calls: 'tiled' }], device: 'cpu', origin: by })
    const isStale = async (text: string) => staleChoices(await program(table, text)).length > 0
    expect(await isStale(steps)).toBe(false)
    expect(await isStale(steps.replace('unroll j by 4', 'unroll j by 8'))).toBe(false)
    for (const [from, to] of [
      ['use rows(i, rows)', 'use rows(i, 2 * rows)'],
      ['tiled(rows = 8)', 'tiled(rows = 16)'],
      ['split a by rows', 'split a by 2 * rows'],
    ] as const) {
      expect(steps).toContain(from)
      expect(await isStale(steps.replace(from, to))).toBe(true)
    }
  })

  test('that serves all types is compared with the kernel of each type', async () => {
    const typed = (factor: number) => `kernel scale<T: f16 or bf16>(n: size) {
  axis i = dense_fixed(n)
  buffer X: T[i] in
  buffer Y: T[i] out
  iterate s [i] as S { Y[i] = X[i] * ${factor} }
}
schedule scale.rows { unroll i by 4 }
`
    const of = parseProgram(typed(2)).kernel('scale<f16>')
    const table = dispatchTable({ kernel: of, rules: [{ calls: 'rows' }], device: 'cpu', origin: by })
    const all = async (factor: number) => {
      const text = `${typed(factor)}schedule scale.auto choose from "scale-table.spt"\n`
      const p = await load(text, { read: async () => table.replace('scale<f16>', 'scale') })
      return staleChoices(...p.kernels.map((name) => p.kernel(name)))
    }
    expect(await all(2)).toEqual([])
    expect(await all(3)).toHaveLength(1)
  })
})

test('each table of the package belongs to a kernel', () => {
  const texts = readdirSync('kernels').flatMap((f) =>
    f.endsWith('.spt') ? [readFileSync(`kernels/${f}`, 'utf8')] : [],
  )
  const named = texts.flatMap((t) =>
    [...t.matchAll(/choose from "\.\.\/data\/choices\/(.*)"/g)].map((m) => m[1]!),
  )
  expect([...new Set(named)].sort()).toEqual(readdirSync('data/choices').sort())
})
