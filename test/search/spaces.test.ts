/** Spaces of texts: what their points are, and what becomes of them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { print } from '../../src/ast/print/print.ts'
import { load } from '../../src/node.ts'
import { parse } from '../../src/schedule/steps/language.ts'
import { checkPoint, pointKey, points, samplePoint } from '../../src/search/spaces/points.ts'
import { count } from '../../src/search/spaces/survey.ts'
import { scheduleText } from '../../src/search/text.ts'
import type { KernelSpace, Point } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { property } from '../support/property.ts'
import { drawnSpaceText, KERNEL } from './space-gen.ts'

const drawn = choiceNumbers(80).map((numbers) => drawnSpaceText(new Choices(numbers), 'drawn'))
const keys = (list: Iterable<Point>): string[] => [...list].map(pointKey).sort()
/** Keys do not depend on the order of decisions here. */
const sorted = (p: Point): Point => Object.fromEntries(Object.entries(p).sort(([a], [b]) => (a < b ? -1 : 1)))

const codeOf = (e: unknown): string => {
  if (e instanceof SptError) return e.diagnostics[0]!.code
  throw e
}

// Both are false for every p if m is 1; the first names p only before it is simplified.
test.for(['m > 2 or p < p', 'm > 2 and p < 4'])(
  'the condition %s does not apply without a step that mentions p',
  async (condition) => {
    const items = `p in 1, 2\n  only where (${condition})\n  use refused(p) or tiled\n`
    const program = await load(`${KERNEL}schedule product.s choose by search {\n  ${items}}\n`)
    const space = await program.kernel('product').space('s').bind('cpu', { m: 1, d: 4 })
    expect([...points(space)]).toEqual([{ use: 'tiled' }])
  },
)

describe('generated spaces', () => {
  property([drawn], { numRuns: runs(30) })(
    'have the points of the enumerated list, and round-trip',
    async ({ text, sizes, all }) => {
      let space: KernelSpace<Kernel>
      try {
        const program = await load(KERNEL + text)
        space = await program.kernel('product').space('drawn').bind('cpu', sizes)
      } catch (e) {
        expect(['check/empty-space', 'space/empty']).toContain(codeOf(e))
        expect(all).toEqual([])
        return
      }
      expect(keys([...points(space)].map(sorted))).toEqual(keys(all.map(sorted)))
      expect(count(space)).toEqual({ points: all.length, isExact: true })
      // The formatter says the same.
      const formatted = print(parse({ name: 't', text: KERNEL + text }))
      const again = await (await load(formatted)).kernel('product').space('drawn').bind('cpu', sizes)
      expect(keys(points(again))).toEqual(keys(points(space)))
    },
  )

  property([drawn, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })], {
    numRuns: runs(30),
  })(
    'have points that are rejected with a code, or are schedules that round-trip to equal steps',
    async ({ text, sizes, all }, at) => {
      fc.pre(all.length > 0)
      const program = await load(KERNEL + text)
      const space = await program.kernel('product').space('drawn').bind('cpu', sizes)
      const point = samplePoint(space, () => at)!
      expect(checkPoint(space, point)).toEqual(point)
      let kernel: Kernel
      try {
        kernel = space.kernel(point)
      } catch (e) {
        expect(codeOf(e)).toMatch(/^[a-z]+\/[a-z-]+$/)
        return
      }
      const back = (await load(KERNEL + scheduleText(kernel, 'found'))).kernel('product').schedule('found')
      expect(back.trace).toEqual(kernel.trace)
      expect(back.show(2)).toBe(kernel.show(2))
    },
  )
})

test('the capacity of a selected format may be a number of the space', async () => {
  const program = await load(`import { bsr, csr } from "sparsetile/kernels/formats.spt"
kernel sums(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer C: f32[i] out
  iterate sum [i, q] as SR { C[i] += A[i, q] }
}
schedule sums.found choose by search {
  c in 1, 4
  format F in bsr(2), csr
  A as F live in place capacity c
}`)
  const space = await program.kernel().space('found').bind('cpu')
  const traces = [...points(space)].map((p) => space.kernel(p).trace.join())
  const expected = ['bsr(2)', 'csr'].flatMap((f) =>
    [1, 4].map((c) => `A as ${f} live in place capacity ${c}`),
  )
  expect(traces).toEqual(expected)
})
