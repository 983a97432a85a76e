/** What counts as one to one is: accepted targets are enumerated. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Assign, Iteration, Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { runs, scaled } from '../support/cases.ts'
import { kernelOf } from './support.ts'

const names = ['a', 'b', 'c'] as const
const factor = fc.constantFrom(0, 1, 1, 2, 3, 4, 6, 8, 12, -1)
const term = fc.oneof(
  fc
    .tuple(factor, factor, factor, fc.integer({ min: -3, max: 3 }))
    .map(([p, q, r, s]) => `a * ${p} + b * ${q} + c * ${r} + ${s}`),
  fc
    .tuple(fc.constantFrom(...names), fc.constantFrom('/', '%'), fc.integer({ min: 1, max: 4 }))
    .map((t) => t.join(' ')),
  fc
    .tuple(fc.constantFrom(...names), fc.integer({ min: -4, max: 4 }), fc.constantFrom(...names), factor)
    .map(([x, by, y, c]) => `${x} * ${by} + ${y} / 2 - c % 2 * ${c}`),
  fc.constantFrom(...names),
  fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names)).map(([x, y]) => `${x} * ${y}`),
)
const programs = fc.record({
  extents: fc.tuple(...names.map(() => fc.integer({ min: 0, max: 4 }))),
  index: fc.array(term, { minLength: 1, maxLength: 3 }),
})

function build(extents: readonly number[], index: readonly string[]): Kernel1 | null {
  try {
    return kernelOf(`kernel k() {
      ${names.map((n, k) => `axis ${n} = dense_fixed(${extents[k]})`).join('\n')}
      ${index.map((_, k) => `axis t${k} = dense_fixed(1000)`).join('\n')}
      buffer y: i32[${index.map((_, k) => `t${k}`).join(', ')}] out
      iterate it [a, b, c] as SSS { y[${index.join(', ')}] = 1 }
    }`)
  } catch (e) {
    if (e instanceof SptError && e.diagnostics.every((d) => d.code === 'check/spatial')) return null
    throw e
  }
}

test('an accepted target writes each element once', () => {
  let accepted = 0
  fc.assert(
    fc.property(programs, ({ extents, index }) => {
      const kernel = build(extents, index)
      if (!kernel) return
      accepted++
      const [target] = ((kernel.body[0] as Iteration).body[0] as Assign).targets
      const seen = new Set<string>()
      const [p, q, r] = extents as [number, number, number]
      for (let a = 0; a < p; a++)
        for (let b = 0; b < q; b++)
          for (let c = 0; c < r; c++) {
            const at = new Map(Object.entries({ a, b, c }))
            seen.add(target!.index.map((e) => evaluate(e, at)).join())
          }
      expect(seen.size).toBe(p * q * r)
    }),
    {
      numRuns: runs(200),
      examples: [
        [{ extents: [3, 2, 4], index: ['a * 8 + b * 4 + c'] }],
        [{ extents: [3, 4, 1], index: ['a * 2 + b / 2', 'b'] }],
      ],
    },
  )
  expect(accepted).toBeGreaterThan(scaled(4))
})

test.each([
  [['a * 12 + b * 4 + c'], [3, 3, 4]],
  [['b * 12 + c * 3 + a + 7'], [3, 2, 4]],
  [
    ['a / 2', 'a % 2', 'c', 'b - 1'],
    [4, 4, 4],
  ],
  [
    ['2 * a', 'c * 5 + b'],
    [4, 5, 4],
  ],
])('%j is accepted', (index, extents) => {
  expect(build(extents, index)).not.toBeNull()
})
