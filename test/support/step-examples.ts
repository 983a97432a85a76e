/**
 * Examples of all steps. Tests execute them, and the pages of the steps show the loops or iterations before and after each step.
 */
import type { COORD_STEPS } from '../../src/schedule/coordinates/steps.ts'
import type { LOOP_STEPS } from '../../src/schedule/primitives.ts'

export interface Example {
  /** A program with one kernel. */
  readonly program: string
  /** Steps before those of the example. */
  readonly given?: string
  readonly steps: string
}

type Kernel = Omit<Example, 'steps'>

const kernel = (sizes: string, body: string, given = ''): Kernel => ({
  program: `kernel k(${sizes}) {\n${body}\n}`,
  given,
})

const ROWS = `  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in`

/** One element in each block. */
const rowBlocks = kernel(
  '',
  `  axis i = dense_fixed(8)
  buffer x: f32[i] in
  buffer y: f32[i] out
  iterate main [i] as S { y[i] = x[i] }`,
  'bind i to block.x',
)

/** Sums of compressed rows. */
const rowSums = kernel(
  'm: size, n: size',
  `${ROWS}
  buffer y: f32[i] out
  iterate main [i, j] as SR { y[i] += A[i, j] }`,
)

const columnSplit = { ...rowSums, given: 'split j by 32 -> (jo, ji)' }

/** A product of compressed rows with 32 features. */
const rowProduct = kernel(
  'm: size, n: size',
  `${ROWS}
  axis p = dense_fixed(n)
  axis f = dense_fixed(32)
  buffer B: f32[p, f] in
  buffer C: f32[i, f] out
  iterate main [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }`,
)

const featureMajor = { ...rowProduct, given: 'reorder (f, j)' }

const doubled = (sizes: string, columns: string): Kernel =>
  kernel(
    sizes,
    `  axis i = dense_fixed(m)
  axis f = dense_fixed(${columns})
  buffer X: f32[i, f] in
  buffer Y: f32[i, f] out
  iterate main [i, f] as SS { Y[i, f] = X[i, f] + X[i, f] }`,
  )

const elementwise = doubled('m: size, d: size', 'd')

const fourWide = doubled('m: size', '4')

const PHASES = `  axis i = dense_fixed(m)
  axis k = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer T: f32[i, k] local
  buffer y: f32[i] out`

/** A producer and its consumer. */
const twoNests = kernel(
  'm: size, d: size',
  `${PHASES}
  iterate produce [i, k] as SS { T[i, k] = X[i, k] * X[i, k] }
  iterate consume [i, k] as SR { y[i] += T[i, k] }`,
)

/** A producer and its consumer in one loop over the rows. */
const twoPhases = kernel(
  'm: size, d: size',
  `${PHASES}
  iterate main [i] as S {
    iterate produce [k] as S { T[i, k] = X[i, k] * X[i, k] }
    iterate consume [k] as R { y[i] += T[i, k] }
  }`,
)

/** Two loop nests on blocks. */
const boundNests = kernel(
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
const rowList = kernel(
  'm: size',
  `  axis i = sparse_variable(m) nonunique
  axis r = dense_fixed(m)
  axis j = dense_fixed(4)
  buffer A: f32[i, j] in
  buffer y: f32[r] out
  iterate main [i, j] as RR { y[i] += A[i, j] }`,
)

/** Rows that are staged in shared memory. */
const stagedRows = kernel(
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
const listedRows = kernel(
  'm: size',
  `  axis i = dense_fixed(m)
  axis p = sparse_variable(m) nonunique
  axis f = dense_fixed(4)
  buffer A: f32[p, f] in
  buffer C: f32[i, f] inout
  iterate main [p, f] as RS { C[p, f] += A[p, f] }`,
)

/** An instruction for four columns of `fourWide`. */
const doubling: Kernel = {
  program: `instr double4(Y: f32[4] in global aligned 16, X: f32[4] in global aligned 16) {
  iterate double [i] as S { Y[i] = X[i] + X[i] }
  cuda \`twice($Y[0], $X[0]);\`
}
${fourWide.program}`,
}

/** A matrix–vector product, and a format of square blocks. */
const blocked: Kernel = {
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

export const LOOP_EXAMPLES: Readonly<Record<keyof typeof LOOP_STEPS, Example>> = {
  split: { ...rowSums, steps: 'split i by 8' },
  peel: { ...rowSums, steps: 'peel j' },
  fuse: { ...featureMajor, steps: 'fuse (i, f) -> g' },
  reorder: { ...rowProduct, steps: 'reorder (f, j)' },
  reverse: { ...rowBlocks, steps: 'reverse i' },
  serpentine: { ...rowProduct, steps: 'serpentine f by 8' },
  tile: { ...elementwise, steps: 'tile (i, f) by (8, 32)' },
  tensorize: { ...doubling, steps: 'tensorize f with double4' },
  bind: { ...rowSums, steps: 'bind i to block.x' },
  unroll: { ...featureMajor, steps: 'unroll j by 4' },
  vectorize: { ...fourWide, steps: 'vectorize f' },
  require: { ...rowSums, steps: 'require m == 64' },
  cache_read: { ...featureMajor, steps: 'cache_read A at j in register -> Ar' },
  pipeline: { ...stagedRows, steps: 'pipeline ko by 2' },
  cluster: { ...rowBlocks, steps: 'cluster i by 2' },
  accumulate: { ...listedRows, steps: 'accumulate C over p' },
  cache_write: { ...featureMajor, steps: 'cache_write C at f in register -> Cr' },
  compute_at: { ...twoNests, steps: 'compute_at produce at consume.i' },
  compute_inline: { ...twoNests, steps: 'compute_inline produce' },
  fission: { ...twoPhases, steps: 'fission i after produce' },
  rfactor: { ...columnSplit, steps: 'rfactor ji -> yp' },
  atomic: { ...rowSums, steps: 'atomic y' },
  combine: { ...rowList, steps: 'combine y' },
  merge: { ...boundNests, steps: 'merge (double, sum)' },
  join: { ...twoNests, steps: 'join (produce, consume) at produce.i' },
  as_written: { ...rowSums, steps: 'as_written' },
}

/** Examples of steps on coordinates. */
export const COORD_EXAMPLES: Readonly<Record<keyof typeof COORD_STEPS, Example>> = {
  as: { ...blocked, steps: 'A as blocks(2)' },
  reorder: {
    program: `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer y: f32[i, f] out
  iterate sum [i, j, f] as SRS {
    y[i, f] += A[i, j]
  }
}`,
    steps: 'reorder (f, j)',
  },
  fuse: {
    program: `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer B: f32[i, j] out
  iterate scale [r in i, j] as SS {
    B[r, j] = A[r, j] * x[j]
  }
}`,
    steps: 'fuse (r, j) -> e',
  },
  attach: {
    program: `kernel k(m: size, n: size, q: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis p = dense_fixed(n)
  axis v = sparse_variable(p, q)
  axis u = dense_fixed(q)
  buffer A: f32[i, j] in
  buffer H: f32[p, v] in
  buffer x: f32[u] in
  buffer y: f32[i] out
  iterate hop [i, j, p, v] as SRRR {
    if (p == j) {
      y[i] += A[i, j] * H[p, v] * x[v]
    }
  }
}`,
    steps: 'attach v to j',
  },
  mask: {
    program: `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(d)
  buffer Q: f32[i, p] in
  buffer K: f32[j, p] in
  buffer M: f32[i, j] in
  buffer S: f32[i, j] local
  buffer P: f32[i, j] out
  iterate score [i, j, p] as SSR {
    S[i, j] += Q[i, p] * K[j, p]
  }
  iterate last [i, j] as SS {
    P[i, j] = M[i, j] * S[i, j]
  }
}`,
    steps: 'mask score by M',
  },
  drop: {
    program: `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[i, j] in
  buffer E: f32[i, j] local
  buffer C: f32[i, j] out
  iterate power [i, j] as SS {
    E[i, j] = exp(0 * A[i, j])
  }
  iterate last [i, j] as SS {
    C[i, j] = E[i, j] * B[i, j]
  }
}`,
    steps: 'drop power',
  },
}
