/**
 * Conditions that index arithmetic implies, under what is required of sizes: those that always hold are gone, and every stage
 * and the cpu compute what the reference does, whatever indices are, and whatever else the text asks.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { Choices } from '../support/choices.ts'
import { agreeOnAll } from './agree.ts'
import { numbers, parameters, runs } from './property-cases.ts'

/** An index over tiles of c, or a value of the same kind. */
function index(c: Choices, tile: number, depth = 1): string {
  const e = (): string => index(c, tile, depth - 1)
  const exact = `io * ${tile} + ii`
  if (depth === 0)
    return c.pick([
      exact,
      exact,
      `ii * ${c.pick([2, 3])} + io`,
      `io * ${c.pick([1, 2, tile + 1, 65_536])} + ii`,
      'b[ii]',
    ])
  return c.pick([
    e,
    e,
    () => `(${e()} + ${c.pick([0, 1, tile])})`,
    () => `(${e()} - ${c.pick([0, 1, tile])})`,
    () => `(${e()} / ${c.pick([1, 2, tile])})`,
    () => `((${e()}) % ${c.pick([2, tile, 8])})`,
    () => `min(${e()}, ${c.pick(['m - 1', '7', 'm'])})`,
    () => `select(${c.pick(['ii > 0', 'b[ii] > 1', `${exact} < m`])}, ${e()}, ${e()})`,
  ])()
}

const CASES = 50

test('exactly the implied conditions are removed', async () => {
  const seen = { all: 0, gone: 0, kept: 0 }
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const c = new Choices(choices)
      const tile = c.pick([2, 4, 8])
      const m = c.pick([8, 16, 12, 6, 1, 0])
      const exact = `io * ${tile} + ii`
      const at = (): string => index(c, tile, c.pick([0, 1, 1, 2]))
      const asked = `${at()} ${c.pick(['<', '>=', '<='])} ${c.pick(['m', '0', 'm - 1', at()])}`
      const place = at()
      // What is written nowhere would be reported.
      const kept = place === exact && m % tile === 0 ? 'i32(1) == 1' : `${place} >= 0 and ${place} < m`
      const text = `kernel k(m: size) {
  axis io = dense_fixed(ceildiv(m, ${tile}))
  axis ii = dense_fixed(${tile})
  axis i = dense_fixed(m)
  buffer b: i32[ii] in
  buffer X: i32[i] in fill 5
  buffer Y: i32[io, ii] out
  buffer Z: i32[io] out
  buffer h: i32[i] out
  iterate reads [io, ii] as SS { Y[io, ii] = X[${at()}] + select(${asked}, 1, 2) }
  iterate sums [io, ii] as SR { if (${asked}) { Z[io] += X[${at()}] } }
  iterate writes [io, ii] as RR { if (${kept}) { h[${place}] += X[io * ${tile} + ii] } }
}`
      const tensors = {
        b: dense(
          [tile],
          Int32Array.from({ length: tile }, () => c.pick([0, 1, 2, -1, 7, 2 ** 31 - 1])),
        ),
        X: dense(
          [m],
          Int32Array.from({ length: m }, (_, e) => 10 * e + 1),
        ),
      }
      const by = c.pick([
        { equal: m },
        { multiple: 2 },
        { multiple: tile },
        { multiple: tile },
        { multiple: 16 },
      ])
      if (by.multiple && m % by.multiple !== 0) return
      const split = c.chance(50)
      try {
        const plain = parseProgram(text).kernel()
        const relied = plain.require('m', by)
        seen.all++
        const count = (s: string): number => s.split(/\bselect\(|\bif |\bwhere /).length
        const [before, after] = [count(plain.show(2)), count(relied.show(2))]
        if (after < before) seen.gone++
        if (after > 1) seen.kept++
        const k = split ? relied.split('reads.ii', 2) : relied
        await agreeOnAll(k.compilation, { tensors, params: { m } })
      } catch (e) {
        if (e instanceof SptError && /^check\/|plan\/overflow/.test(e.diagnostics[0]!.code)) return
        throw new Error(
          `${e instanceof Error ? e.message : e}\n${text}\nrequire ${JSON.stringify(by)}, m = ${m}`,
        )
      }
    }),
    parameters(CASES),
  )
  if (runs(CASES) < CASES) return
  expect(seen.gone).toBeGreaterThan(seen.all / 10)
  expect(seen.kept).toBeGreaterThan(seen.all / 10)
}, 3_600_000)

const COPIED = `kernel k(m: size) {
  axis io = dense_fixed(ceildiv(m, 64))
  axis ii = dense_fixed(64)
  axis i = dense_fixed(m)
  buffer X: f32[i] in
  buffer Y: f32[i] out
  iterate s [io, ii] as SS { Y[io * 64 + ii] = X[io * 64 + ii] }
}`

test('copies use conditions implied by a requirement', async () => {
  const k = parseProgram(COPIED)
    .kernel()
    .require('m', { multiple: 64 })
    .cacheRead('X', 'io', 'shared')
    .cacheWrite('Y', 'io', 'register')
  expect(k.show(2)).not.toMatch(/\bif\b|select|where/)
  await agreeOnAll(k.compilation, {
    tensors: {
      X: dense(
        [128],
        Float32Array.from({ length: 128 }, (_, e) => e),
      ),
    },
  })
})

// Values that the text computes wrap at 32 bits, as an `if` and as a choice of values.
test.each(['i32(i) * 1073741824 >= 0', 'i32(i) + 2147483645 >= 0', 'i32(i) * 65536 * 65536 + i < m'])(
  '%s',
  async (condition) => {
    for (const body of [`if (${condition}) { Y[i] = 1 }`, `Y[i] = select(${condition}, 1, 2)`]) {
      const text = `kernel k(m: size) {
  axis i = dense_fixed(m)
  buffer Y: i32[i] out
  iterate s [i] as S { ${body} }
}`
      const k = parseProgram(text).kernel().require('m', { multiple: 2 })
      expect(k.show(2)).toMatch(/\bif\b|select/)
      await agreeOnAll(k.compilation, { params: { m: 6 } })
    }
  },
)
