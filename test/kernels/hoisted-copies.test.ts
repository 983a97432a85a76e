/** Copies that stand outside of loops whose bounds they do not need, on sizes where those bounds cut. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Device, devices, type Kernel, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { integers, matrix, patterns } from '../support/kernels.ts'
import { property } from '../support/property.ts'

const spmm = (await load('kernels/spmm.spt')).kernel('spmm')
const gemm = (await load('kernels/gemm.spt')).kernel('gemm')

/** A's row is read under loops over features, whose bound the copy has to repeat for the gather's sake. */
const outsideFeatures = (cols: number, tile: number, scope: 'register' | 'shared'): Kernel =>
  spmm
    .split('f', cols, ['fo', 'fi'])
    .split('j', tile, ['jo', 'ji'])
    .reorder('i', 'fo', 'jo', 'fi', 'ji')
    .cacheRead('A', 'jo', scope)

/** Tiles of both matrices under loops over the other one's rest. */
const tiles = (block: number, depth: number, scope: 'register' | 'shared'): Kernel =>
  gemm
    .tile(['product.i', 'product.j'], [block, block], ['io', 'jo', 'ii', 'ji'])
    .split('p', depth, ['po', 'pi'])
    .reorder('io', 'jo', 'po', 'pi', 'ii', 'ji')
    .cacheRead('A', 'po', scope)
    .cacheRead('B', 'po', scope)

const scopes = fc.constantFrom('register' as const, 'shared' as const)
const small = fc.integer({ min: 1, max: 9 })

describe('guards of shared-memory copies in bounded loops', () => {
  let cpu: Device
  beforeAll(async () => {
    cpu = await devices.cpu()
  })
  afterAll(() => cpu.dispose())

  property([fc.nat(9), small, small, fc.nat(20), scopes], { numRuns: runs(20) })(
    'of gathered rows',
    async (which, cols, tile, d, scope) => {
      const p = patterns()[which]!
      const prepared = await (await outsideFeatures(cols, tile, scope).build(cpu)).bind({
        A: matrix(p, integers(p.rows.length, 2)),
        B: integers(p.n * d, 3),
        d,
        n: p.n,
      })
      const v = await prepared.verify()
      expect([v.problems, v.maxAbsoluteError]).toEqual([[], 0])
    },
  )

  property([small, small, scopes, fc.nat(20), fc.nat(20), fc.nat(20)], { numRuns: runs(20) })(
    'of directly addressed rows',
    async (block, depth, scope, m, n, k) => {
      const prepared = await (await tiles(block, depth, scope).build(cpu)).bind({
        A: integers(m * k, 2),
        B: integers(k * n, 3),
        m,
        n,
        k,
        alpha: 2,
      })
      const v = await prepared.verify()
      expect([v.problems, v.maxAbsoluteError]).toEqual([[], 0])
    },
  )

  test('a copy is not predicated on loops that its address does not use', () => {
    const inThrees = spmm
      .split('f', 12, ['fo', 'fr'])
      .split('fr', 4, ['fm', 'fi'])
      .split('j', 8, ['jo', 'ji'])
      .reorder('i', 'fo', 'fm', 'jo', 'fi', 'ji')
      .cacheRead('A', 'jo', 'register')
    expect(inThrees.show(2)).not.toMatch(/if .*< d/)
    expect(outsideFeatures(4, 8, 'register').show(2)).not.toMatch(/if .*< d/)
  })
})

describe('updates of elements that several threads own', () => {
  test('are rejected unless they are atomic', () => {
    const share = (k: Kernel): Kernel => k.split('ij', 8, ['o', 's']).bind({ s: 'thread.x' })
    const fused = spmm.fuse(['i', 'j'], 'ij')
    expect(() => share(fused)).toThrow(/schedule\/scattered/)
    expect(share(fused.atomic('C')).emit('cuda')[0]!.text).toContain('atomicAdd')
  })
})
