/** What cannot be found in each run, and why. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { add, int, variable } from '../../src/ir/expressions/expr.ts'
import { atIterators } from '../../src/schedule/coordinates/live/groups.ts'
import { kernelOf } from '../elaborate/support.ts'
import { Choices } from '../support/choices.ts'
import { refusal as diagnosticOf } from '../support/refusal.ts'
import { agreeOnAll } from './agree.ts'
import { KERNELS, LIVE, matrix } from './live-gen.ts'

const KERNEL = `kernel product(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  axis r = sparse_variable(i, k)
  buffer A: f32[i, q] in
  buffer S: f32[i, r] in
  buffer C: f32[i] out
  buffer D: f32[i, q] out
  iterate mul [i, q] as SR { C[i] += A[i, q] }
  iterate take [i, r] as SR { C[i] += S[i, r] }
  iterate all [i, q] as SS { D[i, q] = A[i, q] + 1.0 }
}`

/** The refusal of a step on the kernel above, as its first line. */
function refusal(step: string, kernel = KERNEL): string {
  const formats = Object.values(LIVE).map((f) => f.text)
  const more = `format claimed(b) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ji = dense_fixed(jo, b) full
  map (i, j) -> (i, j / b, j % b)
  inverse (io, jo, ji) -> (io, jo * b + ji)
}
format overlapping(b) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ji = dense_fixed(jo, b + 1)
  map (i, j) -> (i, j / b, j % b)
  inverse (io, jo, ji) -> (io, jo * b + ji)
}
format ell(w) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format coo over (i, j) {
  axis io = sparse_variable(i) nonunique
  axis jo = sparse_fixed(io, j, 1)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format counted over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, min(j, j + count(j by i)))
  inverse (io, jo) -> (io, jo)
}
format later(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_variable(io, j)
  axis jo = sparse_fixed(go, j, s)
  axis ii = dense_fixed(jo, h)
  map (i, j) -> (i / h, rank(j by i) / s, j, i % h)
  inverse (io, go, jo, ii) -> (io * h + ii, jo)
}`
  try {
    const text = `${formats.join('\n')}\n${more}\n${kernel}\nschedule product.s { ${step} }`
    void parseProgram(text).kernel().schedule('s').compilation.kernel
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    const [d] = e.diagnostics
    return `${d!.code}${d!.span && d!.expected && d!.hint ? '' : ', without help'}: ${d!.message}; expected ${d!.expected}`
  }
  return 'none'
}

test.each([
  ['D as panels(2, 2)', 'schedule/live-tensor: D of product is written by all, and nothing reads it'],
  ['S as panels(2, 2)', 'schedule/live-tensor: S of product is over r'],
  ['A as claimed(2)', 'schedule/live-format: claimed(2) cannot be built at run time: ji is claimed full'],
  ['A as overlapping(2)', 'its coordinates of q are not made of digits'],
  [
    'A as counted',
    'its map depends on a count of stored coordinates; expected a map over coordinates and their ranks',
  ],
  ['A as ell(2)', 'jo is not a variable-length index list'],
  ['A as coo', 'it does not have exactly one list of coordinates'],
  [
    'A as later(2, 2)',
    'go does not count groups of 2 listed coordinates by their rank; expected rank(q by i / 2) / 2',
  ],
  ['A as panels(2, 2) where (value > 0) + blocks(2, 2)', 'a condition depends on the value'],
  ['A as panels(2, 2) where (value > 0) + blocks(2, 2)', 'expected conditions over coordinates, sizes and'],
  ['A as panels(2, 2) where (i < 3) + blocks(2, 2) where (i < 2) + blocks(1, 1)', '(i, q) = (0, 0) of 1 × 1'],
])('%s live in place: %s', (step, expected) => {
  const told = refusal(`${step} live in place`)
  expect(told).toContain(expected)
  expect(told).not.toContain('without help')
})

const WRITERS = `kernel product(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer U: f32[i, q] local
  buffer V: f32[i, q] local
  buffer W: f32[i, q] inout
  buffer H: f32[i, q] local
  buffer C: f32[i] out
  buffer D: f32[i, q] out
  iterate put [i, q] as SS { U[i, q] = A[i, q] V[i, q] = A[i, q] H[i, q] = max(A[i, q], 0.0) }
  iterate grow [i, q] as SS { U[i, q] = max(U[i, q], 0.0) }
  iterate take [i, q] as SR { C[i] += U[i, q] * V[i, q] * W[i, q] }
  iterate again [i, q] as SS { V[i, q] = A[i, q] W[i, q] = A[i, q] }
  iterate all [i, q] as SS { D[i, q] = H[i, q] + 1.0 }
}`

test.each([
  ['U', 'schedule/live-tensor: U of product is read and written by grow'],
  ['V', 'schedule/live-tensor: V of product is overwritten by again after take reads it'],
  ['W', 'schedule/live-tensor: W of product is read by take before again writes it'],
  ['H', 'schedule/format-padding: panels(2, 2) skips coordinates of H with the fill value'],
])('%s, written by the kernel: %s', (tensor, expected) => {
  const told = refusal(`${tensor} as panels(2, 2) live in place`, WRITERS)
  expect(told).toContain(expected)
  expect(told).not.toContain('without help')
})

test('of two live tensors the temporary is built first, in either order: an output with its structure is not searched again', async () => {
  const text = `${LIVE.blocks.text}
kernel product(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer H: f32[i, q] local
  buffer C: f32[i] out
  iterate twice [i, q] as SS { if (A[i, q] != 0) { H[i, q] = A[i, q] * 2 } }
  iterate sum [i, q] as SR { if (A[i, q] != 0) { C[i] += H[i, q] } }
}
schedule product.before { A as blocks(2, 2) live in place H as blocks(2, 3) live in place }
schedule product.after { H as blocks(2, 3) live in place A as blocks(2, 2) live in place }`
  const kernel = parseProgram(text).kernel()
  expect(kernel.schedule('before').show(1)).toBe(kernel.schedule('after').show(1))
  expect(diagnosticOf(() => kernel.live('A', 'blocks', 2, 2).mask('twice', 'A'))).toMatchObject({
    code: 'schedule/mask',
    hint: 'move the mask before the step that makes A live',
  })
  const values = matrix(new Choices([1, 4]), 5 * 7)
  const A = { kind: 'dense', dtype: 'f32', shape: [5, 7], values } as const
  await agreeOnAll(kernel.schedule('after').compilation, { tensors: { A } })
})

test('a tensor without loops over its lists: a sparse axis is entered by its axis', () => {
  const text = `format held(b) over (v) {
  axis vo = dense_fixed(ceildiv(v, b))
  axis vi = sparse_variable(vo, b)
  map (v) -> (v / b, v % b)
  inverse (vo, vi) -> (vo * b + vi)
}
kernel reach(n: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  axis y = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer F: i32[i] in
  buffer R: i32[y] out
  iterate reach [i, j] as RR { if (F[i] != 0) { R[j] max= 1 } }
}
schedule reach.active { F as held(4) live in place }`
  expect(diagnosticOf(() => parseProgram(text).kernel().schedule('active'))).toMatchObject({
    code: 'schedule/live-tensor',
    message: 'no iteration uses the structure of F: the loops of reach run over other axes as well',
  })
})

test('a structure is built once', () => {
  for (const again of ['A as panels(2, 2) live in place', 'A as panels(1, 1) live'])
    expect(refusal(`A as panels(2, 2) live in place ${again}`, KERNELS.left)).toContain(
      'schedule/live-tensor: an earlier step already builds the structure of A',
    )
})

test('a capacity is over sizes and parameters', () => {
  expect(refusal('A as panels(2, 2) live in place capacity m / z')).toContain(
    'check/unknown-name, without help: there is no z here',
  )
  expect(refusal('A as panels(2, 2) live in place capacity m < 2')).toContain('check/argument-type')
  expect(refusal('A as panels(2, 2) live in place capacity m / 2', KERNELS.left)).toBe('none')
})

test('only iterators of a statement are its coordinates', () => {
  const { body, axes } = kernelOf(KERNEL)
  const over = ['i', 'q'].map((name) => axes.find((a) => a.name === name)! as StoredAxis)
  const isAt = atIterators(body[0]!, over)
  const [i, q] = ['i', 'q'].map((name) => variable(name))
  expect([isAt(i!, 0), isAt(q!, 1)]).toEqual([true, true])
  for (const e of [q!, int(0), add(i!, int(1)), variable('m')]) expect(isAt(e, 0)).toBe(false)
})
