import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { int, search, variable } from '../../src/ir/expressions/expr.ts'
import { printBody } from '../../src/ir/print/print-stage2.ts'
import { readsOf, writesOf } from '../../src/ir/statements/accesses.ts'
import {
  boundVarsOf,
  freeVarsOf,
  renameBound,
  renameBuffer,
  substituteStmts,
} from '../../src/ir/statements/bindings.ts'
import { findLoop, loopsOf, replaceLoop } from '../../src/ir/statements/definitions.ts'
import { rewriteStmts, stmt } from '../../src/ir/statements/tree.ts'
import { runs } from '../support/cases.ts'
import { samples } from '../support/kernel2.ts'
import { loop } from '../support/stage2-builders.ts'
import { rowProduct, twoPhases } from '../support/stage2-samples.ts'

describe('rewriting keeps what it does not change', () => {
  test('a visitor that changes nothing gives the same tree', () => {
    fc.assert(
      fc.property(samples, ({ kernel: { body } }) => {
        expect(rewriteStmts(body, { stmt: () => undefined, expr: () => undefined })).toBe(body)
        expect(substituteStmts(body, new Map([['absent', int(1)]]))).toBe(body)
        expect(renameBuffer(body, 'absent', 'other')).toBe(body)
      }),
      { numRuns: runs(100) },
    )
  })

  test('siblings of a changed loop keep their identity', () => {
    const loops = loopsOf(twoPhases.body)
    const body = replaceLoop(twoPhases.body, 'k2', (l) => stmt({ ...l, extent: int(3) }))
    expect(findLoop(body, 'k')!.loop).toBe(loops.find((l) => l.var === 'k'))
    expect(findLoop(body, 'k2')!.loop.extent).toEqual(int(3))
  })

  test('a statement may be replaced by several, or by none', () => {
    const twice = rewriteStmts(rowProduct.body, { stmt: (s) => (s.kind === 'reduce' ? [s, s] : undefined) })
    expect(findLoop(twice, 'f')!.loop.body).toHaveLength(2)
    const none = rewriteStmts(rowProduct.body, { stmt: (s) => (s.kind === 'reduce' ? [] : undefined) })
    expect(findLoop(none, 'f')!.loop.body).toHaveLength(0)
  })
})

describe('names', () => {
  test('renaming bound names and back is the identity on the printed text', () => {
    fc.assert(
      fc.property(samples, ({ kernel: { body } }) => {
        const there = new Map([...boundVarsOf(body)].map((v) => [v, `${v}_x`]))
        const back = new Map([...there].map(([a, b]) => [b, a]))
        const renamed = renameBound(body, there)
        expect(boundVarsOf(renamed)).toEqual(new Set(there.values()))
        expect(freeVarsOf(renamed)).toEqual(freeVarsOf(body))
        expect(printBody(renameBound(renamed, back))).toBe(printBody(body))
      }),
      { numRuns: runs(100) },
    )
  })

  test('free, bound, read, written', () => {
    expect([...freeVarsOf(rowProduct.body)]).toEqual(['m'])
    expect([...boundVarsOf(rowProduct.body)]).toEqual(['i', 'j', 'f'])
    expect([...readsOf(rowProduct.body)].sort()).toEqual(['A', 'B', 'j_indices', 'j_indptr'])
    expect([...writesOf(rowProduct.body)]).toEqual(['C'])
  })

  test('a loop is found with the loops around it', () => {
    const found = findLoop(rowProduct.body, 'f')!
    expect(found.path.map((l) => l.var)).toEqual(['i', 'j'])
    expect(found.places.map((p) => p.list[p.index])).toEqual([...found.path, found.loop])
    expect(findLoop(rowProduct.body, 'q')).toBeUndefined()
  })

  test('substitution reaches extents, guards and targets', () => {
    const text = printBody(
      substituteStmts(
        rowProduct.body[0]!.kind === 'for' ? rowProduct.body[0]!.body : [],
        new Map([['i', variable('q')]]),
      ),
    )
    expect(text).not.toMatch(/\bi\b/)
    expect(text).toContain('C[q, f]')
  })

  test('substitution reaches what only the mode of a loop mentions', () => {
    const partition = { search: search('upper', 'starts', int(0), int(9), variable('x')), length: 4 }
    const marked = loop('p', 4, [], { mode: { kind: 'accumulate', by: 1, partition } })
    const [now] = substituteStmts([marked], new Map([['x', int(3)]]))
    expect([...freeVarsOf([marked])]).toEqual(['x'])
    expect([...freeVarsOf([now!])]).toEqual([])
  })
})
