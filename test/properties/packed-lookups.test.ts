/**
 * Elements looked up in packed axes of tensors that are stored in parts: the expressions are large enough to be shared, and a
 * search that is then kept within its array still goes by fields.
 */
import fc from 'fast-check'
import { test } from 'vitest'
import { coords } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { costly, sample } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'
import { agreeOnAll } from './agree.ts'

const TEXT = `
${standard('csr', 'csr_panels', 'ell', 'rows_ell', 'hyb')}
format rows8() over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j) packed 8
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format scattered8() over (i, j) {
  axis io = sparse_variable(i) nonunique packed 8
  axis jo = sparse_variable(io, j) packed 8
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format panels8() over (i, j) {
  axis io = dense_fixed(i)
  axis po = dense_fixed(io, ceildiv(j, 4))
  axis jo = sparse_fixed(po, 4, 4) packed 4
  map (i, j) -> (i, j / 4, j % 4)
  inverse (io, po, jo) -> (io, po * 4 + jo)
}
format ranges() over (i, j) {
  partition i into 2 { part rows8 }
}
kernel mirrored(m: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, m)
  buffer A: i32[i, j] in
  buffer C: i32[i] out
  iterate sum [i, j] as SR { C[i] += A[i, j] * A[j, i] }
}
`
const FIRST = ['hyb(1, 2)', 'rows8', 'panels8']
const SECOND = ['csr_panels(256)', 'csr_panels(2)', 'rows8', 'panels8', 'csr']
const COMPOSITIONS = [
  ...FIRST.flatMap((a) => SECOND.map((b) => `A as ${a} where (i < 1) + ${b}`)),
  'A as ranges',
]

const compiled = new Map<string, Compilation>()
function under(steps: string): Compilation {
  const known = compiled.get(steps)
  if (known) return known
  const c = parseProgram(`${TEXT}schedule mirrored.s { ${steps} }`)
    .kernel('mirrored')
    .schedule('s').compilation
  compiled.set(steps, c)
  return c
}

/** Most elements of a square matrix: words have several fields, and most lookups find something. */
const squares = fc.integer({ min: 0, max: 6 }).chain((m) =>
  fc.array(fc.nat(4), { minLength: m * m, maxLength: m * m }).map((x) => {
    const held = [...x.keys()].filter((k) => x[k]! > 0)
    const [rows, columns] = [held.map((k) => Math.floor(k / m)), held.map((k) => k % m)]
    const values = Int32Array.from(held, (k) => x[k]!)
    return { A: coords([m, m], [Int32Array.from(rows), Int32Array.from(columns)], values), m }
  }),
)

test.each(sample(COMPOSITIONS, 5))('lookups under %s', async (steps) => {
  const c = under(steps)
  await fc.assert(
    fc.asyncProperty(squares, ({ A, m }) => agreeOnAll(c, { tensors: { A }, params: { m } })),
    { numRuns: costly(4) },
  )
})
