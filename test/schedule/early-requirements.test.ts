/** `require` before steps on coordinates: the loops are those of the same steps with it after them, and traces keep its place. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'
import { refusal } from '../support/refusal.ts'

const TEXT = `${standard('csr', 'dcsr', 'bsr')}
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: i32[i, j] in
  buffer B: i32[jd, f] in
  buffer C: i32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}`
const plain = parseProgram(TEXT).kernel()
const scheduled = (steps: readonly string[]): Kernel =>
  parseProgram(`${TEXT}\nschedule k.s {\n${steps.join('\n')}\n}`)
    .kernel()
    .schedule('s')

const STEPS = [
  ...['require m % 2 == 0', 'require n == 6', 'require d % 2 == 0', 'require d == 4', 'require m % 4 == 0'],
  ...['A as csr', 'A as dcsr', 'A as bsr(2)', 'A as bsr(4)', 'fuse (i, j) -> e', 'reorder (i, f, j)'],
  ...['reorder (f, i, j)', 'fuse (io, jo) -> e', 'attach j to e', 'reorder (io, jo, f, ii, ji)'],
]
const isRequired = (s: string): boolean => s.startsWith('require')
const A = coords(
  [8, 6],
  [
    [0, 0, 2, 3, 3, 3, 7], // rows
    [1, 5, 0, 0, 2, 4, 5],
  ],
  Int32Array.of(1, 2, 3, -4, 5, 6, 7),
  'i32',
) // prettier-ignore
const B = dense(
  [6, 4],
  Int32Array.from({ length: 24 }, (_, e) => e - 11),
  'i32',
)

test('steps on coordinates after requirements', async () => {
  const seen = { mixed: 0, all: 0 }
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray(STEPS, { minLength: 3 }), async (order) => {
      const legal: string[] = []
      for (const step of order)
        try {
          scheduled([...legal, step]).show(2)
          legal.push(step)
        } catch (e) {
          expect(e).toBeInstanceOf(SptError)
        }
      const made = scheduled(legal)
      const last = scheduled([...legal.filter((s) => !isRequired(s)), ...legal.filter(isRequired)])
      for (const stage of [1, 2, 3] as const) expect(made.show(stage)).toBe(last.show(stage))
      expect(made.trace).toEqual(legal)
      const again = parseProgram(TEXT).kernel().replay(made.toJSON())
      expect(again.trace).toEqual(legal)
      expect(again.show(3)).toBe(made.show(3))
      let now = made
      for (let n = legal.length; n > 0; n--) {
        now = now.undo()
        expect(now.trace).toEqual(legal.slice(0, n - 1))
        expect(now.show(2)).toBe(scheduled(now.trace).show(2))
      }
      await agreeOnAll(made.compilation, { tensors: { A, B } })
      seen.all++
      const first = legal.findIndex(isRequired)
      if (first >= 0 && legal.slice(first).some((s) => !isRequired(s))) seen.mixed++
    }),
    { numRuns: runs(12) },
  )
  if (runs(12) >= 12) expect(seen.mixed).toBeGreaterThan(seen.all / 8)
})

test('methods equal program text', () => {
  const made = plain.require('d', { multiple: 2 }).as('A', 'csr').fuse(['io', 'jo'], 'e')
  expect(made.trace).toEqual(['require d % 2 == 0', 'A as csr', 'fuse (io, jo) -> e'])
  expect(made.show(2)).toBe(
    plain.as('A', 'csr').fuse(['io', 'jo'], 'e').require('d', { multiple: 2 }).show(2),
  )
  expect(refusal(() => made.split('e', 2).as('A', 'csr')).code).toBe('schedule/too-late')
  expect(refusal(() => scheduled(['require n == 6', 'split f by 2', 'A as csr'])).code).toBe(
    'schedule/too-late',
  )
  expect(scheduled(['require n == 6', 'split f by 2', 'require d == 4', 'fuse (fo, fi)']).trace).toHaveLength(
    4,
  )
})
