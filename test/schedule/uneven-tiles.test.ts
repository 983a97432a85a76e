/** Tiles that do not divide what they are of, and tiles and loops of one iteration: nests meet, and copies serve all reads of an element. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { agreeOnStages } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { integers } from '../support/kernels.ts'
import { standard } from '../support/packaged-formats.ts'

const made = (text: string): Compilation => {
  try {
    const { compilation } = parseProgram(text).kernel().schedule('s')
    void compilation.loops
    return compilation
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${text}`)
  }
}

function agree(c: Compilation, inputs: Inputs, text: string): void {
  const bound = bindInputs(c.kernel, inputs)
  try {
    agreeOnStages(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${text}`)
  }
}

const factor = fc.integer({ min: 1, max: 5 })

const PRODUCT = `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis x = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[x, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}`

test('values of tiles are consumed at their ends', () => {
  fc.assert(
    fc.property(
      fc.record({ h: factor, w: factor, a: factor, b: factor }),
      fc.nat(),
      ({ h, w, a, b }, seed) => {
        const text = `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(d)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer S: f32[i, j] local
  buffer C: f32[i, j] out
  iterate product [i, j, p] as SSR { S[i, j] += A[i, p] * B[p, j] }
  iterate store [i, j] as SS { C[i, j] = max(S[i, j], 0) }
}
schedule k.s {
  tile (product.i, product.j) by (${h}, ${w}) -> (io, jo, ii, ji)
  tile (ii, ji) by (${a}, ${b}) -> (it, jt, ir, jr)
  reorder (io, jo, it, jt, p, ir, jr)
  bind io to block.x, it to thread.y, jt to thread.x
  cache_write S at jt in register -> Cr
  compute_at store at jt
}`
        const c = made(text)
        expect(new Set(loopsOf(c.loops.body).map((l) => l.var)).has('it')).toBe(true)
        const [m, n, d] = [seed % 7, 1 + (seed % 6), seed % 3]
        agree(
          c,
          {
            tensors: {
              A: dense([m, d], integers(m * d, seed)),
              B: dense([d, n], integers(d * n, seed + 1)),
            },
          },
          text,
        )
      },
    ),
    { numRuns: runs(12) },
  )
})

test('reads of an element share a copy, whether or not they use a loop of one iteration', () => {
  const ways = fc.constantFrom('', 'split one.j by 1 -> (jo, ji)', 'split one.j by 8 -> (jo, ji)')
  fc.assert(
    fc.property(
      ways,
      fc.constantFrom('', 'split two.j by 1 -> (ko, ki)', 'split two.j by 8 -> (ko, ki)'),
      fc.constantFrom('register', 'shared'),
      fc.integer({ min: 1, max: 3 }),
      fc.nat(),
      (first, second, scope, by, seed) => {
        const text = `kernel k(m: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(8)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  buffer D: f32[i] out
  iterate one [i, j] as SR { C[i] += A[i, j] }
  iterate two [i, j] as SR { D[i] += A[i, j] * A[i, j] }
}
schedule k.s {
  join (one, two) at one.i
  ${first}
  ${second}
  split i by ${by} -> (io, ii)
  bind ii to thread.x
  cache_read A at ${scope === 'shared' ? 'io' : 'ii'} in ${scope} -> Ar
}`
        const m = seed % 5
        agree(made(text), { tensors: { A: dense([m, 8], integers(8 * m, seed)) } }, text)
      },
    ),
    { numRuns: runs(12) },
  )
})

test.each([1, 2, 3])('a list of %i coordinates names the loops of its copies', (g) => {
  const text = `${standard('bsr_groups_by_length')}
${PRODUCT}
schedule k.s {
  A as bsr_groups_by_length(2, ${g})
  split f by 4 -> (fo, fi)
  reorder (io, fo, go, jo, ii, fi, ji)
  cache_write C at fo in register
  cache_read A at go in shared -> As
  cache_read B at go in shared padded 0 -> Bs
  reorder (Bs.fi, Bs.jo)
  split As.jo by 2 -> (ja, jb)
}`
  const [rows, columns] = [
    [0, 0, 1, 3, 3, 3],
    [0, 4, 1, 0, 2, 5],
  ]
  const A = coords([5, 6], [Int32Array.from(rows!), Int32Array.from(columns!)], integers(6, g))
  agree(made(text), { tensors: { A, B: dense([6, 3], integers(18, 7)) } }, text)
})

test('a loop of one iteration is fused with others if a guard mentions it', () => {
  for (const b of [1, 2, 3]) {
    const text = `${standard('bsr')}
${PRODUCT}
schedule k.s {
  A as bsr(${b})
  split ji by 4 -> (jc, jr)
  reorder (io, jo, jc, ii, f, jr)
  fuse (jo, jc) -> js
  split f by 4 -> (fo, fi)
  fuse (ii, fo) -> rows
}`
    const A = coords([4, 4], [Int32Array.of(0, 2, 2), Int32Array.of(1, 0, 3)], integers(3, b))
    agree(made(text), { tensors: { A, B: dense([4, 3], integers(12, 7)) } }, text)
  }
})
