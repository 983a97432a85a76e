/** Iterators that are declared `R` and name rows that differ: what they write is stored, and nothing else is computed. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'
import { SORTED_TILES } from '../support/tile-formats.ts'

/** Rows as they are, as a permutation has them, as a list without repeats has them; and places that do meet, in turn or at once. */
const FORMATS = {
  dense: '',
  sorted: 'A as sorted(2)',
  listed: 'A as dcsr',
  columns: '',
  rounds: '',
} as const
type What = keyof typeof FORMATS

const ROWS = 'iterate sum [i, p, f] as RRS { C[i, f] += A[i, p] * X[p, f] }'
const BODIES: Readonly<Record<What, string>> = {
  dense: ROWS,
  sorted: ROWS,
  listed: ROWS,
  columns: 'iterate sum [i, p, f] as RRR { C[p, f] += A[i, p] * Y[i, f] }',
  rounds: 'iterate sum [q, i, p, f] as RRRS { C[i, f] += A[i, p] * X[p, f] * X[q, f] }',
}

const program = (what: What): string => `${standard('dcsr')}
${SORTED_TILES}
kernel k(m: size, k: size, n: size) {
  axis i = dense_fixed(m)
  axis p = sparse_variable(i, k)
  axis pd = dense_fixed(k)
  axis f = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: i32[i, p] in
  buffer X: i32[pd, f] in
  buffer Y: i32[i, f] in
  buffer C: i32[${what === 'columns' ? 'pd' : 'i'}, f] out
  ${BODIES[what]}
}`

const cases = fc.record({
  what: fc.constantFrom<What>('dense', 'sorted', 'listed', 'columns', 'rounds'),
  m: fc.integer({ min: 0, max: 6 }),
  k: fc.integer({ min: 1, max: 5 }),
  n: fc.integer({ min: 1, max: 5 }),
  by: fc.constantFrom(1, 2, 4),
  on: fc.constantFrom('block.x', 'thread.x', null),
  kept: fc.boolean(),
  stored: fc.array(fc.tuple(fc.nat(5), fc.nat(4)), { maxLength: 12 }),
})

test('independent writes are not combined', async () => {
  const seen = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(cases, async ({ what, m, k, n, by, on, kept, stored }) => {
      const row = what === 'sorted' || what === 'listed' ? 'io' : 'i'
      const meets = what === 'columns' || what === 'rounds'
      const steps = [
        FORMATS[what],
        'atomic C',
        `split ${row} by ${by} -> (ro, ri)`,
        on === null
          ? ''
          : what === 'rounds'
            ? 'bind ri to thread.x'
            : `bind ro to ${on === 'block.x' ? 'block.x, ri to thread.x' : 'block.y'}`,
        kept && what === 'dense' ? 'reorder (ro, ri, f, p)  cache_write C at f in register' : '',
      ]
      const text = `${program(what)}\nschedule k.s { ${steps.join('  ')} }`
      const c = parseProgram(text).kernel().schedule('s').compilation
      // Where several threads may combine into an element, it is done atomically, and nowhere else.
      expect(
        /atomic/i.test(
          c
            .texts('wgsl')
            .map((x) => x.text)
            .join(),
        ),
      ).toBe(meets && on !== null)
      seen.set(what, (seen.get(what) ?? 0) + 1)
      const at = [...new Map(stored.filter(([i, j]) => i < m && j < k).map((x) => [`${x}`, x])).values()]
      const filled = (rows: number) =>
        dense(
          [rows, n],
          Int32Array.from({ length: rows * n }, (_, e) => (e % 7) - 3),
        )
      const A = coords(
        [m, k],
        [at.map((x) => x[0]), at.map((x) => x[1])],
        Int32Array.from(at, (_, e) => e - 5),
      )
      await agreeOnAll(c, { tensors: { A, X: filled(k), Y: filled(m) }, params: { m, k, n } })
    }),
    { numRuns: runs(30) },
  )
  if (runs(30) >= 30) expect(seen.size).toBe(5)
})
