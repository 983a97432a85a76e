/** Loops as data: names that steps take, roles that follow from what a nest writes. */
import { beforeAll, describe, expect, test } from 'vitest'
import { type Kernel, load } from '../../src/node.ts'
import type { Nest } from '../../src/types.ts'

let spmm: Kernel
beforeAll(async () => {
  spmm = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
})

const roles = (nests: readonly Nest[]): readonly string[] =>
  nests.map((n) => `${n.name} -> ${n.writes}: ${n.loops.map((l) => `${l.name} ${l.role}`).join(', ')}`)

describe('nests', () => {
  test('have roles in any format', () => {
    expect(roles(spmm.inspect.nests)).toEqual(['sum -> C: i rows, j reduction, f contiguous'])
    expect(roles(spmm.as('A', 'sell', 4, 16).inspect.nests)).toEqual([
      'sum -> C: so rows, k reduction, ii rows, jo reduction, f contiguous',
    ])
    expect(roles(spmm.as('A', 'rows_by_length', 8).inspect.nests)).toEqual([
      'sum_short -> C: io_short rows, jo_short reduction, sum_short.f contiguous',
      'sum_long -> C: io_long rows, jo_long reduction, sum_long.f contiguous',
    ])
    expect(roles(spmm.as('A', 'csc').inspect.nests)).toEqual(['sum -> C: jo scatter, io rows, f contiguous'])
  })

  test('report modes, extents and nesting of loops', () => {
    const [nest] = spmm
      .as('A', 'sell', 4, 16)
      .split('f', 4, ['fo', 'fi'])
      .unroll('fi')
      .bind({ so: 'block.x' }).inspect.nests
    expect(nest!.loops.map((l) => [l.name, l.kind, l.constant, l.dependsOn])).toEqual([
      ['so', 'block.x', null, []],
      ['k', 'serial', null, ['so']],
      ['ii', 'serial', 4, ['so']],
      ['jo', 'serial', 1, ['so', 'k', 'ii']],
      ['fo', 'serial', null, []],
      ['fi', 'unroll', 4, ['fo']],
    ])
    expect(nest!.loops.map((l) => l.enclosingLoops.length)).toEqual([0, 1, 2, 3, 4, 5])
    expect(Object.isFrozen(nest!.loops[0])).toBe(true)
  })

  test('names and handles are what steps take; a split keeps the role', () => {
    for (const format of [
      ['csr'],
      ['csc'],
      ['coo'],
      ['bsr', 2],
      ['sell', 2, 8],
      ['hyb', 1, 2],
      ['dia'],
    ] as const) {
      const [name, ...args] = format
      const k = spmm.as('A', name, ...args)
      for (const { loops } of k.inspect.nests)
        for (const l of loops) {
          expect(k.loop(l.name)).toEqual(l.handle)
          const halves = k.split(l.handle, 2, ['outer', 'inner']).inspect.nests.flatMap((n) => n.loops)
          const made = halves.filter((h) => /(^|\.)(outer|inner)$/.test(h.name))
          expect(made.map((h) => h.role)).toEqual([l.role, l.role])
        }
    }
  })
})
