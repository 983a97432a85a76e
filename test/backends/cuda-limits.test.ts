/** What no CUDA device holds, refused when texts are printed; what a compiler takes is not. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Kernel, load, SptError } from '../../src/node.ts'
import { runs } from '../support/cases.ts'

let layer: Kernel
beforeAll(async () => {
  layer = (await load('import "sparsetile/kernels/tile-wise.spt"')).kernel('pruned_linear_f16')
})

/** The first diagnostic of printing for cuda; none where there is a text. */
function refusal(schedule: string, args: readonly number[]): { code: string; message: string } | null {
  try {
    layer.schedule(schedule, ...args).emit('cuda')
    return null
  } catch (e) {
    expect(e).toBeInstanceOf(SptError)
    return (e as SptError).diagnostics[0]!
  }
}

describe('registers', () => {
  // Columns and rows of `dense`, and whether ptxas 13.0 compiled it for sm_90a or said C7602 (insufficient registers).
  test.each([
    [32, 512, true],
    [64, 512, true],
    [96, 512, false],
    [128, 512, false],
    [64, 448, true],
    [96, 448, false],
    [96, 384, true],
    [128, 384, false],
    [128, 320, true],
    [160, 320, false],
    [192, 256, true],
    [224, 256, false],
    [256, 256, false],
    [224, 192, true],
  ])('%d columns and %d rows, as ptxas says: %s', (cols, rows, compiles) => {
    expect(refusal('dense', [cols, rows, 2, 32])?.code).toBe(compiles ? undefined : 'emit/registers')
  })

  test('smaller tiles than accepted ones are accepted, larger tiles than rejected ones are rejected', () => {
    const line = fc.integer({ min: 1, max: 8 }).map((n) => 32 * n)
    const warpgroups = fc.integer({ min: 1, max: 8 }).map((n) => 64 * n)
    const refused = (cols: number, rows: number): boolean => {
      const why = refusal('wgmma', [rows, cols, 2, 32])
      if (why) expect(['emit/registers', 'plan/shared-too-large', 'schedule/too-large']).toContain(why.code)
      return why !== null
    }
    fc.assert(
      fc.property(line, warpgroups, line, warpgroups, (a, b, c, d) => {
        const [less, more] = [
          refused(Math.min(a, c), Math.min(b, d)),
          refused(Math.max(a, c), Math.max(b, d)),
        ]
        expect(less && !more).toBe(false)
      }),
      { numRuns: runs(4) },
    )
  })

  test('a spilling kernel is printed: 128', () => {
    expect(layer.schedule('mma', 128, 256, 128, 128).emit('cuda')).toHaveLength(1)
  })

  test('the message gives the required and the available number', () => {
    const why = refusal('dense', [224, 256, 2, 32])!
    expect(why.message).toMatch(/wgmma\(f16, 224, 32\) holds 112 .*128 × 4 × 1 threads leave 128/)
    expect(why).toMatchObject({ expected: expect.stringContaining('at most 102 registers'), span: {} })
  })
})

describe('shared memory', () => {
  test('more than any CUDA device has is rejected by name', () => {
    const why = refusal('dense', [128, 256, 8, 64])!
    expect(why.code).toBe('plan/shared-too-large')
    expect(why.message).toMatch(/Ws 262144.*no CUDA device has more than 232448/)
  })

  test('stages are added until shared memory is full', () => {
    // A stage of 128 × 128 takes 32 KiB, and results lie where its weights were.
    const fits = [4, 5, 6, 7, 8, 9].map((stages) => refusal('dense', [128, 128, stages, 64]) === null)
    expect(fits).toEqual(fits.toSorted().reverse())
    expect(fits).toContain(false)
    expect(fits[0]).toBe(true)
  })
})
