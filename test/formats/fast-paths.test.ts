/** What fast paths take for granted: arrays that come back, proofs, ranges, look-ups. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { borrow, borrowExact, release, withScratchPool } from '../../src/columns/allocate.ts'
import { provedOf } from '../../src/formats/proof/prove.ts'
import { add, binary, type Expr, int, select, variable } from '../../src/ir/expressions/expr.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { convertTensor, type StoredParts } from '../../src/storage/entries/stored-parts.ts'
import { runs } from '../support/cases.ts'
import { mapped } from '../support/host-frame.ts'
import { remapParts } from '../support/remap-parts.ts'
import * as texts from './programs.ts'
import { givenFor, matrices, written } from './user-formats.ts'

const FORMATS = [
  written(texts.HYB, 3, 2),
  written(texts.HYB, 1, 1),
  written(texts.BSR, 3),
  written(texts.SELL, 2, 4),
  written(texts.SR_BCRS, 3, 2),
  written(texts.DENSE_BLOCKS, 2, 0.5),
  written(texts.NESTED, 2, 2),
  written(texts.TOP, 2),
  written(texts.BITMAP),
]

/** All arrays of a tensor, by value. */
const content = (t: StoredParts): unknown =>
  t.parts.map((p) => [
    [...p.values],
    [...p.tables].map(([name, x]) => [name, [...x]]),
    [...p.storage.levels].map(([name, l]) => [name, l.indptr?.join(), l.indices?.join(), l.mask?.join()]),
    p.entries?.positions?.join(),
  ])

describe('arrays of a conversion', () => {
  it('are not shared: later conversions leave earlier results and inputs unchanged', () => {
    fc.assert(
      fc.property(
        fc.array(matrices, { minLength: 1, maxLength: 4 }),
        fc.shuffledSubarray(FORMATS),
        (all, formats) => {
          const before = all.map((t) => t.coords.map((c) => c.join()))
          const convert = () =>
            all.flatMap((t) =>
              formats.map((f) => {
                const given = givenFor(t.shape)
                const tensor = convertTensor(t, f, given)
                const split = remapParts(f, t.coords, { values: t.values!, dtype: t.dtype }, given)
                return { tensor, split }
              }),
            )
          const look = (made: ReturnType<typeof convert>) =>
            made.map((m) => [content(m.tensor), m.split.map((s) => s.entries?.join())])
          const expected = look(convert())
          withScratchPool(() => {
            for (let n = 1; n < 100; n++) release(new Int32Array(n).fill(77))
            expect(look(convert())).toEqual(expected)
            const made = convert()
            convert()
            expect(look(made)).toEqual(expected)
          })
          expect(all.map((t) => t.coords.map((c) => c.join()))).toEqual(before)
        },
      ),
      { numRuns: runs(15) },
    )
  })

  it('are reused only within one conversion, and only if they fit', () => {
    const a = borrow(10, 'test')
    release(a)
    expect(borrow(10, 'test')).not.toBe(a)
    withScratchPool(() => {
      release(new Int32Array(100))
      expect(borrowExact(10, 'test').buffer.byteLength).toBe(40)
      const b = borrow(10, 'test')
      expect([b.length, b.buffer.byteLength]).toEqual([10, 400])
      release(b)
      expect(borrowExact(90, 'test').buffer).toBe(b.buffer)
      expect(borrow(10, 'test').buffer).not.toBe(b.buffer)
    })
  })
})

describe('proofs replace checks of the data', () => {
  const proved = (text: string, ...args: number[]) => {
    const f = written(text, ...args)
    return provedOf(f.parts[0]!.instance, f.over)
  }
  it('for the common formats, and never with lists from the data', () => {
    expect(proved(texts.BSR, 16)).toEqual({ inverse: true, range: true })
    expect(proved(texts.SELL, 4, 8).inverse).toBe(true)
    expect(proved(texts.SR_BCRS, 8, 4).inverse).toBe(true)
    const vbr = written(texts.VBR, 'rows', 'cols')
    expect(provedOf(vbr.parts[0]!.instance, vbr.over)).toEqual({ inverse: false, range: false })
  })
})

it('sums of comparisons are evaluated correctly', () => {
  const x = variable('x')
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -3, max: 40 }), { minLength: 1, maxLength: 6 }),
      fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 1, maxLength: 30 }),
      (bounds, xs) => {
        const e = bounds.map((b): Expr => select(binary('gt', x, int(b)), int(1), int(0))).reduce(add, int(0))
        const [found] = mapped([e], { x: Int32Array.from(xs) })
        expect([...found!]).toEqual(xs.map((v) => evaluate(e, new Map([['x', v]]))))
      },
    ),
  )
})
