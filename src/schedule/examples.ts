/** Small kernels for the examples of steps. The pages of the steps show the loops before and after the step. */
import type { Example } from './primitive.ts'

type Kernel = Omit<Example, 'steps'>

const kernel = (sizes: string, body: string, given = ''): Kernel => ({
  program: `kernel k(${sizes}) {\n${body}\n}`,
  given,
})

const ROWS = `  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in`

/** One element in each block. */
export const rowBlocks = kernel(
  '',
  `  axis i = dense_fixed(8)
  buffer x: f32[i] in
  buffer y: f32[i] out
  iterate main [i] as S { y[i] = x[i] }`,
  'bind i to block.x',
)

/** Sums of compressed rows. */
export const rowSums = kernel(
  'm: size, n: size',
  `${ROWS}
  buffer y: f32[i] out
  iterate main [i, j] as SR { y[i] += A[i, j] }`,
)

export const columnSplit = { ...rowSums, given: 'split j by 32 -> (jo, ji)' }

/** A product of compressed rows with 32 features. */
export const rowProduct = kernel(
  'm: size, n: size',
  `${ROWS}
  axis p = dense_fixed(n)
  axis f = dense_fixed(32)
  buffer B: f32[p, f] in
  buffer C: f32[i, f] out
  iterate main [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }`,
)

export const featureMajor = { ...rowProduct, given: 'reorder (f, j)' }

const doubled = (sizes: string, columns: string): Kernel =>
  kernel(
    sizes,
    `  axis i = dense_fixed(m)
  axis f = dense_fixed(${columns})
  buffer X: f32[i, f] in
  buffer Y: f32[i, f] out
  iterate main [i, f] as SS { Y[i, f] = X[i, f] + X[i, f] }`,
  )

export const elementwise = doubled('m: size, d: size', 'd')

export const fourWide = doubled('m: size', '4')

const PHASES = `  axis i = dense_fixed(m)
  axis k = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer T: f32[i, k] local
  buffer y: f32[i] out`

/** A producer and its consumer. */
export const twoNests = kernel(
  'm: size, d: size',
  `${PHASES}
  iterate produce [i, k] as SS { T[i, k] = X[i, k] * X[i, k] }
  iterate consume [i, k] as SR { y[i] += T[i, k] }`,
)

/** A producer and its consumer in one loop over the rows. */
export const twoPhases = kernel(
  'm: size, d: size',
  `${PHASES}
  iterate main [i] as S {
    iterate produce [k] as S { T[i, k] = X[i, k] * X[i, k] }
    iterate consume [k] as R { y[i] += T[i, k] }
  }`,
)

/** Two loop nests on blocks. */
export const boundNests = kernel(
  'm: size, n: size, d: size',
  `  axis i = dense_fixed(m)
  axis k = dense_fixed(32)
  axis r = dense_fixed(n)
  axis j = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer V: f32[r, j] in
  buffer X2: f32[i, k] out
  buffer y: f32[r] out
  iterate double [i, k] as SS { X2[i, k] = X[i, k] + X[i, k] }
  iterate sum [r, j] as SR { y[r] += V[r, j] }`,
  'split r by 8 -> (a, b) bind i to block.x, k to thread.x bind a to block.x, b to thread.x',
)

/** Sums into the rows of a list, in which a row may occur several times. */
export const rowList = kernel(
  'm: size',
  `  axis i = sparse_variable(m) nonunique
  axis r = dense_fixed(m)
  axis j = dense_fixed(4)
  buffer A: f32[i, j] in
  buffer y: f32[r] out
  iterate main [i, j] as RR { y[i] += A[i, j] }`,
)

/** Rows that are staged in shared memory. */
export const stagedRows = kernel(
  'm: size, n: size',
  `  axis i = dense_fixed(m)
  axis ko = dense_fixed(n)
  axis k = dense_fixed(8)
  buffer X: f32[ko, k] in
  buffer y: f32[i] inout
  iterate main [i, ko, k] as SRR { y[i] += X[ko, k] }`,
  'cache_read X at ko in shared -> Xs',
)

/** Sums into listed rows, with four features. */
export const listedRows = kernel(
  'm: size',
  `  axis i = dense_fixed(m)
  axis p = sparse_variable(m) nonunique
  axis f = dense_fixed(4)
  buffer A: f32[p, f] in
  buffer C: f32[i, f] inout
  iterate main [p, f] as RS { C[p, f] += A[p, f] }`,
)

/** An instruction for four columns of `fourWide`. */
export const doubling: Kernel = {
  program: `instr double4(Y: f32[4] in global aligned 16, X: f32[4] in global aligned 16) {
  iterate double [i] as S { Y[i] = X[i] + X[i] }
  cuda \`twice($Y[0], $X[0]);\`
}
${fourWide.program}`,
}

/** A matrix–vector product, and a format of square blocks. */
export const blocked: Kernel = {
  program: `format blocks(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR {
    y[i] += A[i, j] * x[j]
  }
}`,
}
