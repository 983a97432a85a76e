/** Mistakes of users of Python, C, NumPy, Triton and TVM: the message names the mistake, the hint is something to type. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { readPackaged } from '../../src/ast/imports/resolve-path.ts'
import { packagedFormatsNamed } from '../../src/io/package/package.ts'
import { refusal } from '../support/refusal.ts'

readPackaged(packagedFormatsNamed)

const KERNEL = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[c] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR {
    y[i] += A[i, j] * x[j]
  }
}`
const statement = (text: string): string => KERNEL.replace('y[i] += A[i, j] * x[j]', text)
const step = (text: string): string => `${KERNEL}\nschedule k.s { ${text} }`

const said = (program: string): string => {
  const { message, hint = '' } = refusal(() => parseProgram(program))
  return `${message} ~ ${hint}`
}

test.each([
  ['y[i] += A[i, j] ** 2', 'unexpected `**` ~ write `pow(x, y)`'],
  ['y[i] += f32(i << 2)', 'unexpected `<<` ~ write a multiplication'],
  ['y[i]++', 'unexpected `++` ~ write `y[i] += 1`'],
  ['t := A[i, j]', 'unexpected `:=` ~ a new name begins with `let`'],
  ['float t = A[i, j]', 'unexpected `t` ~ a new name begins with `let`'],
  ['y[i] = A @ x', 'unexpected `@` ~ write a matrix product as a sum'],
  ['y[i] += 1 if i < 4 else 2', 'unexpected `i` ~ write `select(condition, a, b)`'],
  ['if i < 4 { y[i] += 1 }', 'unexpected `i` ~ a condition stands in parentheses'],
  ['if (i < 2): y[i] += 1', 'unexpected `:` ~ statements of a condition are in braces'],
  ['if (i < 2) { y[i] += 1 } elif (i < 4) { y[i] += 2 }', 'unexpected `(` ~ write `else if'],
  ['if (i is 4) { y[i] += 1 }', 'unexpected `is` ~ to compare, write `==`'],
  ['call y = f(x)', 'unexpected `y` ~ `call` and `repeat` are members of a kernel'],
  ['repeat 2 as l { }', 'unexpected `2` ~ `call` and `repeat` are members of a kernel'],
  ['y[i] = sum(A, axis=1)', 'unexpected `=` ~ reduce over an iterator `R`'],
  ['y[i] = sum(A[i, j])', 'there is no function sum ~ write `y[i] += x`'],
  ['y[i] = max(A[i, j])', 'max is called with 1 argument ~ to reduce, write `y[i] max= x`'],
  ['y[i] += np.exp(A[i, j])', 'unexpected `(` after `np.exp` ~ functions have no prefix'],
  ['y[i] += A[i, j].astype(f32)', 'unexpected `.astype` ~ values have no methods'],
  ['y[i] += (float)A[i, j]', 'unexpected `}` ~ to convert, write `f32(x)`'],
  ['y[i] += 1.0f', 'unexpected `1.0f` ~ numbers have no suffix'],
  ['y[i] += A[i][j]', 'unexpected `[` ~ all indices are in one pair of brackets'],
  ['y(i) += A[i, j]', 'unexpected `(` ~ elements are in square brackets'],
  ['y[i] += A[i, :]', 'unexpected `:` ~ there are no slices'],
  ['y[i] += f32(A.shape[0])', 'unexpected `[` ~ tensors have no attributes'],
  ['return A[i, j]', 'unexpected `A` ~ results are assigned to outputs'],
  ['atomicAdd(y[i], A[i, j])', 'unexpected `(` ~ write `y[i] += x` in the kernel'],
  ['y[i] += 1; __syncthreads()', 'unexpected `(` ~ leave the call out'],
  ['y[i] max= -float("inf")', 'unexpected `"` ~ write `inf`'],
  ['y[i] max= -INFINITY', 'there is no INFINITY here ~ write `inf`'],
])('the statement %s', (text, start) => {
  expect(said(statement(text))).toContain(start)
})

test.each([
  ['A: f32', 'A: float32', 'there is no type `float32` here ~ write `f32`'],
  ['x: f32[c]', 'x = f32[c]', 'unexpected `=` ~ write `buffer A: f32[i, j] in`'],
  ['x: f32', 'x: np.float32', 'unexpected `.float32` ~ write `buffer A: f32[i, j] in`'],
  ['dense_fixed(m)', 'dense(m)', 'there is no axis kind `dense` ~ write `dense_fixed(m)`'],
  ['axis i =', 'axis i:', 'unexpected `:` ~ write `axis i = dense_fixed(m)`'],
  ['[i, j] as SR', '(i, j) as SR', 'unexpected `(` ~ iterators are in square brackets'],
  ['[i, j] as SR', 'i in range(m)', 'unexpected `i` ~ name the axes to iterate'],
  ['as SR', 'as S, R', 'unexpected `,` ~ write one letter for each iterator'],
  ['kernel k(m: size, n: size) {', 'def k(m, n):', 'unexpected `def` ~ a program begins with a declaration'],
])('%s written as %s', (right, wrong, start) => {
  expect(said(KERNEL.replace(right, wrong))).toContain(start)
})

test.each([
  ['split 4 i', 'unexpected `4` ~ write `split LOOP by N'],
  ['split(i, 4)', 'unexpected `(` ~ write `split LOOP by N'],
  ['split i factor 4', 'unexpected `factor` ~ write `split LOOP by N'],
  ['split i by 4 (io, ii)', 'unexpected `(` ~ write `->`'],
  ['io, ii = split i by 4', 'unexpected `,` ~ names of new loops follow the step'],
  ['bind i blockIdx.x', 'unexpected `blockIdx` ~ write `bind LOOP to AXIS'],
  ['unroll(j)', 'unexpected `(` ~ write `unroll LOOP'],
  ['A as csr_matrix', 'there is no format csr_matrix ~ csr is a format of the package'],
  ['A = csr', 'unexpected `=` ~ to store a tensor in a format, write `A as FORMAT`'],
  ['A as bsr[8]', 'unexpected `[` ~ arguments of a format are in parentheses'],
  ['A as bsr(8x8)', 'unexpected `8x8` ~ write one number for each parameter'],
])('the step %s', (text, start) => {
  expect(said(step(text))).toContain(start)
})

test.each([
  ['call y = f(g(x, a = 2), a = 3)', 'unexpected `=` ~ a call inside a call takes buffers only'],
  ['call y = f(g<f16>(x), a = 3)', 'unexpected `>` ~ a call inside a call takes buffers only'],
])('the member %s', (text, start) => {
  expect(said(KERNEL.replace('iterate', `${text} iterate`))).toContain(start)
})
