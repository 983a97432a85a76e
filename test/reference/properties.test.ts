import fc from 'fast-check'
import { expect, test } from 'vitest'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { type RefOutputs, reference } from '../../src/reference/index.ts'
import { verify1 } from '../../src/verifiers/stage1.ts'
import { kernelOf } from '../elaborate/support.ts'
import { LONG, runs } from '../support/cases.ts'
import { brute } from './brute.ts'
import { samples } from './programs.ts'

/** Results as coordinates → value; -0 counts as 0. */
function table(out: RefOutputs): Record<string, Map<string, number>> {
  const entries = Object.entries(out.buffers).map(([name, r]) => {
    const t = new Map<string, number>()
    r.values.forEach((v, e) => {
      let at = e
      const coords =
        r.kind === 'sparse'
          ? r.coords.map((c) => c[e]!)
          : r.shape
              .toReversed()
              .map((extent) => {
                const c = at % extent
                at = Math.floor(at / extent)
                return c
              })
              .reverse()
      t.set(coords.join(), v + 0)
    })
    return [name, t] as const
  })
  return Object.fromEntries(entries)
}

const sorted = (t: ReadonlyMap<string, number>): unknown =>
  [...t].map(([k, v]) => [k, v + 0] as const).sort((a, b) => (a[0] < b[0] ? -1 : 1))

test('the reference agrees with brute force', () => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(samples, ({ text, inputs, uses }) => {
      const kernel = kernelOf(text)
      verify1(kernel)
      const expected = brute(kernel, inputs)
      for (const [name, t] of Object.entries(table(reference(kernel, inputs))))
        expect(sorted(t), name).toEqual(sorted(expected[name]!))
      for (const u of uses) seen.set(u, (seen.get(u) ?? 0) + 1)
    }),
    { numRuns: runs(40) },
  )
  // Fewer cases may lack some.
  if (LONG)
    expect([...seen.keys()].sort()).toEqual(
      [
        '*',
        '+',
        'assign',
        'attached',
        'chain',
        'dense_fixed(i, n)',
        'dense_fixed(j, p)',
        'dense_fixed(m)',
        'dense_variable(i, n)',
        'dense_variable(j, p)',
        'f32',
        'fused',
        'gathered',
        'i32',
        'max',
        'min',
        'prefix',
        'sparse output',
        'sparse_fixed(i, n, n)',
        'sparse_fixed(j, p, p)',
        'sparse_variable(i, n)',
        'sparse_variable(j, p)',
        'sparse_variable(m)',
        'two levels',
      ].sort(),
    )
})

test('printed kernels parse to the same meaning', () => {
  fc.assert(
    fc.property(samples, ({ text, inputs }) => {
      const kernel = kernelOf(text)
      const again = kernelOf(print1(kernel))
      expect(print1(again)).toBe(print1(kernel))
      expect(table(reference(again, inputs))).toEqual(table(reference(kernel, inputs)))
    }),
    { numRuns: runs(40) },
  )
})

test('samples agree with the full result if they claim exactness', () => {
  fc.assert(
    fc.property(samples, fc.integer({ min: 0, max: 99 }), ({ text, inputs }, seed) => {
      const kernel = kernelOf(text)
      const whole = table(reference(kernel, inputs))
      const part = reference(kernel, inputs, { sample: { fraction: 0.5, seed } })
      for (const [name, t] of Object.entries(table(part)))
        for (const [at, v] of t) {
          const dim = part.sampled?.dims[name]
          const inside = dim === undefined || part.sampled!.coordinates.includes(Number(at.split(',')[dim]))
          if (part.sampled === null || (dim !== undefined && inside)) expect(v).toBe(whole[name]!.get(at))
        }
    }),
    { numRuns: runs(40) },
  )
})
