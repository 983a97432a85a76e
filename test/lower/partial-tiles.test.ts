/** Loops over tiles whose last one may be cut off, and register arrays that become scalars. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, devices, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'

const TEXT = `
kernel product(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule product.tiles(c) { split f by c -> (fo, fi) }
schedule product.registers(c) {
  split f by c -> (fo, fi)
  reorder (i, fo, j, fi)
  cache_write C at fo in register
  unroll fi
}
schedule product.array(c) {
  split f by c -> (fo, fi)
  reorder (i, fo, j, fi)
  cache_write C at fo in register
}
schedule product.segments(c) { split j by c -> (jo, ji) }
schedule product.both(c) {
  split i by 2 -> (io, ii)
  split f by c -> (fo, fi)
}
schedule product.nested(c) {
  split f by 2 * c -> (fo, fi)
  split fi by c -> (fm, fk)
  reorder (i, fo, j, fm, fk)
  unroll fk
}
schedule product.vectors {
  split f by 4 -> (fo, fi)
  reorder (i, j, fo, fi)
  vectorize fi
}
schedule product.unrolled(c) { unroll f by c }
`
const SCHEDULES = ['tiles', 'registers', 'array', 'segments', 'both', 'nested', 'vectors', 'unrolled']
const program = await load(TEXT)
const text = (schedule: string, ...args: number[]): string =>
  program
    .kernel()
    .schedule(schedule, ...args)
    .emit('js')[0]!.text

test('full and partial tiles agree with the reference', async () => {
  const device = await devices.cpu()
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...SCHEDULES),
      fc.integer({ min: 1, max: 5 }),
      fc.record({ m: fc.nat(5), n: fc.integer({ min: 1, max: 9 }), d: fc.nat(13), seed: fc.nat(1000) }),
      async (schedule, c, { m, n, d, seed }) => {
        const args = schedule === 'vectors' ? [] : [schedule === 'unrolled' ? c + 1 : c]
        const compiled = await program
          .kernel()
          .schedule(schedule, ...args)
          .build(device)
        const cells = Array.from({ length: m * n }, (_, e) => e).filter((e) => (e * 31 + seed) % 3 === 0)
        const A = coords([m, n], [cells.map((e) => Math.floor(e / n)), cells.map((e) => e % n)], cells)
        const prepared = await compiled.bind({ A, m, n, d }, { seed })
        const v = await prepared.verify()
        prepared.free()
        expect(v.problems).toEqual([])
      },
    ),
    { numRuns: runs(75) },
  )
})

test('full tiles have no conditions, and scalar accumulators', () => {
  expect(text('registers', 2)).toMatchInlineSnapshot(`
    "export function product_0(A, B, C, j_indptr, j_indices, m, d) {
      const C_register_2 = new Float64Array(2);
      const part = ((d / 2) | 0);
      const test = part < (((d + 1) / 2) | 0);
      const rest = (d % 2 | 0);
      const at_8 = Math.imul(part, 2);
      for (let i = 0; i < m; i++) {
        const j_indptr_at = j_indptr[i];
        const length = j_indptr[i + 1] - j_indptr_at;
        const at_4 = Math.imul(i, d);
        for (let fo = 0; fo < part; fo++) {
          const at_2 = Math.imul(fo, 2);
          let C_register_0 = 0;
          let C_register_1 = 0;
          C_register_0 = 0;
          C_register_1 = 0;
          for (let j = 0; j < length; j++) {
            const at = j_indptr_at + j;
            const A_at = A[at];
            const at_3 = Math.imul(j_indices[at], d) + at_2;
            C_register_0 = C_register_0 + A_at * B[at_3];
            C_register_1 = C_register_1 + A_at * B[at_3 + 1];
          }
          const at_5 = at_4 + at_2;
          C[at_5] = C_register_0;
          C[at_5 + 1] = C_register_1;
        }
        if (test) {
          for (let fi_3_2 = 0; fi_3_2 < rest; fi_3_2++) {
            C_register_2[fi_3_2] = 0;
          }
          for (let j_2 = 0; j_2 < length; j_2++) {
            const at_6 = j_indptr_at + j_2;
            const A_at_2 = A[at_6];
            const at_7 = Math.imul(j_indices[at_6], d);
            for (let fi_4 = 0; fi_4 < rest; fi_4++) {
              C_register_2[fi_4] = C_register_2[fi_4] + A_at_2 * B[at_7 + (at_8 + fi_4)];
            }
          }
          for (let fi_2_2 = 0; fi_2_2 < rest; fi_2_2++) {
            C[at_4 + (at_8 + fi_2_2)] = C_register_2[fi_2_2];
          }
        }
      }
    }"
  `)
})

test('a guard around loops of unknown length is cheap, and not versioned', () => {
  const loops = text('both', 4)
    .split('\n')
    .filter((l) => /for \(let ii/.test(l))
  expect(loops).toHaveLength(1)
})

test('registers with variable indices remain an array', () => {
  expect(text('array', 4)).toContain('new Float64Array(4)')
  // Whole tiles keep scalars; the cut-off one has an array, made once before all loops.
  const [head, ...loops] = text('registers', 4).split('for (')
  expect(head).toContain('new Float64Array(4)')
  expect(loops.join('')).not.toContain('new Float64Array')
})
