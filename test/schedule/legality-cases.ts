/** For each check of a schedule that keeps a result right: a step that it refuses, and what it would do. */

/** How a wrong step shows: other values, a race, an access outside of an array, a barrier that some threads never reach, or a stage that cannot be made. */
export type Wrong = 'values' | 'race' | 'outside' | 'barrier' | 'stage'

export interface Illegal {
  readonly code: string
  readonly wrong: Wrong
  readonly kernel: string
  readonly steps: string
}

const kernel = (buffers: string, body: string): string => `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  axis f = dense_fixed(d)
  axis four = dense_fixed(4)
  buffer A: i32[i, j] in
  ${buffers}
  ${body}
}`

const product = kernel(
  'buffer B: i32[c, f] in\n  buffer C: i32[i, f] out',
  'iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }',
)
const narrow = product.replace('B: i32[c, f]', 'B: i32[c, four]').replaceAll(', f]', ', four]')
const rows = kernel('buffer y: i32[i] out', 'iterate sum [i, j] as SR { y[i] += A[i, j] }')
const columns = kernel('buffer y: i32[c] out', 'iterate sum [i, j] as RS { y[j] += A[i, j] }')
const total = kernel('buffer y: i32[] out', 'iterate sum [i, j] as RR { y[] += A[i, j] }')
const times = kernel('buffer y: i32[] out', 'iterate sum [i, j, f] as RRR { y[] += A[i, j] }')
/** Two nests within a loop. */
const phases = kernel(
  'buffer z: i32[i, f] out',
  `iterate outer [f] as S {
    iterate first [i] as S { z[i, f] = 7 }
    iterate second [i] as S { z[i, f] = z[i, f] + 1 }
  }`,
).replace('axis four = dense_fixed(4)\n', '')
const scalar = kernel(
  'buffer t: i32[i] local\n  buffer y: i32[] out',
  `iterate make [i, j] as SR { t[i] += A[i, j] }
  iterate use [i] as R { y[] max= t[i] }`,
)
/** A nest that reads what another has made: `t[at]`, in the rows that `where` leaves. */
const made = (at: string, where = '', role = 'out'): string =>
  kernel(
    `buffer t: i32[i] ${role}\n  buffer z: i32[i] out`,
    `iterate make [i, j] as SR { t[i] += A[i, j] }
  iterate use [i] as S ${where} { z[i] = t[${at}] * 2 }`,
  )
const some = kernel(
  'buffer x: i32[four] in\n  buffer y: i32[i, four] out',
  'iterate go [i, four] as SS { if (x[four] > 1) { y[i, four] = 5 } }',
)
/** Some rows are made, all are used. */
const conditional = kernel(
  'buffer t: i32[i, four] local\n  buffer y: i32[i, four] out',
  `iterate make [i] as S { if (i > 0) { iterate inner [four] as S { t[i, four] = four } } }
  iterate use [i, four] as SS { y[i, four] = t[i, four] + 1 }`,
)
const before = kernel(
  'buffer x: i32[c] in\n  buffer y: i32[c] out',
  'iterate go [c] as S { y[c] = select(c > 0, x[c - 1], 0) }',
)
const written = kernel(
  'buffer z: i32[i, four] out\n  buffer y: i32[i] out',
  `iterate outer [i] as S {
    iterate first [four] as S { z[i, four] = four }
    iterate second [four] as R { y[i] += z[i, four] }
  }`,
)

/** A tensor with the same structure, whose axes stand apart. */
const apart = kernel(
  'buffer W: i32[i, four, j] out',
  'iterate put [i, j, four] as SSS { W[i, four, j] = A[i, j] + four }',
)

/** Elements of every row, and some of them: which depends on a loop in between. */
const table = kernel(
  'buffer x: i32[four] in\n  buffer z: i32[i, four] out',
  'iterate go [i, four] as SS { z[i, four] = x[four] }',
)
const triangle = kernel(
  'buffer x: i32[four] in\n  buffer y: i32[i] out',
  'iterate sum [i, j, four] as SRR where (four <= j) { y[i] += A[i, j] * x[four] }',
)
/** Columns of rows of constant length, which meet. */
const meeting = columns.replace('sparse_variable(i, n)', 'sparse_fixed(i, n, 3)')
/** A dense matrix, written by loops over other axes. */
const elsewhere = kernel(
  'axis g = dense_fixed(d)\n  buffer Y: i32[c, f] out',
  'iterate go [four, g] as SS { Y[four, g] = four + g + 1 }',
)

/** Elements that are summed where they are large. */
const large = kernel(
  'buffer x: i32[four] in\n  buffer y: i32[i] out',
  'iterate sum [i, four] as SR where (x[four] > 2) { y[i] += x[four] }',
)
/** Sums over `four` of updates that meet in columns of rows of constant length. */
const scaled = kernel(
  'buffer x: i32[four] in\n  buffer y: i32[c] out',
  'iterate sum [four, i, j] as RRS { y[j] += A[i, j] * x[four] }',
).replace('sparse_variable(i, n)', 'sparse_fixed(i, n, 3)')
/** A row of which each of four threads holds one element. */
const spread = `memory spread: i32[4] in register of 4 threads { element (lane, slot) -> (lane) }
${kernel(
  'buffer x: i32[four] in\n  buffer y: i32[i] out',
  'iterate sum [i, four] as SR { y[i] += x[four] }',
)}`

const onBlocks = 'bind make.i to block.x  bind use.i to block.x'

export const ILLEGAL: readonly Illegal[] = [
  { code: 'not-rectangular', wrong: 'values', kernel: product, steps: 'atomic C  reorder (j, i)' },
  { code: 'not-rectangular', wrong: 'values', kernel: total, steps: 'atomic y  fuse (i, j)' },
  { code: 'mixed-reduction', wrong: 'values', kernel: product, steps: 'atomic C  fuse (j, f)' },
  {
    code: 'not-perfect',
    wrong: 'values',
    kernel: phases,
    steps: 'split first.i by 2 -> (io, ii)  reorder (first.io, outer.f)',
  },
  { code: 'not-a-chain', wrong: 'values', kernel: times, steps: 'fuse (i, f)' },
  { code: 'blocks-combine', wrong: 'race', kernel: columns, steps: 'bind i to block.x' },
  { code: 'block-not-outermost', wrong: 'race', kernel: phases, steps: 'bind first.i to block.x' },
  {
    code: 'axis-taken',
    wrong: 'values',
    kernel: product,
    steps: 'reorder (i, f, j)  bind i to block.x, f to block.x',
  },
  { code: 'conditional-read', wrong: 'outside', kernel: before, steps: 'cache_read x at c in register' },
  {
    code: 'start-outside',
    wrong: 'stage',
    kernel: kernel('buffer Y: i32[i, j] out', 'iterate sum [i, j, f] as SSR { Y[i, j] += A[i, j] * f }'),
    steps: 'cache_read j_indptr at f in register',
  },
  { code: 'not-every-element', wrong: 'values', kernel: some, steps: 'cache_write y at i in register' },
  {
    code: 'other-elements',
    wrong: 'stage',
    kernel: made('0'),
    steps: 'compute_at use at make.i',
  },
  {
    code: 'not-every-element',
    wrong: 'values',
    kernel: conditional,
    steps: 'compute_at use at inner.four',
  },
  { code: 'not-whole', wrong: 'stage', kernel: rows, steps: 'bind i to block.x  cluster i by 2' },
  { code: 'written-too', wrong: 'values', kernel: written, steps: 'cache_read z at i in register' },
  { code: 'not-complete', wrong: 'values', kernel: made('i'), steps: 'compute_at use at make.j' },
  { code: 'starts-in-reduction', wrong: 'values', kernel: scalar, steps: 'compute_at make at use.i' },
  {
    code: 'output-needed',
    wrong: 'values',
    kernel: made('i', 'where (i < 1)'),
    steps: 'compute_at make at use.i',
  },
  {
    code: 'nests-meet',
    wrong: 'values',
    kernel: made('(i + 1) % m'),
    steps: `${onBlocks}  merge (make, use)`,
  },
  {
    code: 'order-matters',
    wrong: 'values',
    kernel: made('(i + 1) % m'),
    steps: 'join (make, use) at make.i',
  },
  {
    code: 'several-writers',
    wrong: 'stage',
    kernel: kernel(
      'buffer z: i32[i] out',
      `iterate outer [i] as S {
    iterate first [four] as R { z[i] += four }
    iterate second [four] as R { z[i] max= 4 - four }
  }`,
    ),
    steps: 'cache_write z at i in register',
  },
  {
    code: 'registers-of-other-threads',
    wrong: 'values',
    kernel: narrow,
    steps: 'cache_write C at i in register  bind four to thread.x',
  },
  {
    code: 'shared-by-threads',
    wrong: 'race',
    kernel: narrow,
    steps: 'cache_write C at i in shared  split i by 2 -> (io, ii)  bind io to block.x, ii to thread.x',
  },
  {
    code: 'shared-by-threads',
    wrong: 'race',
    // A copy under a condition that some threads do not meet: nobody fills it for all.
    kernel: kernel(
      'buffer x: i32[c] in\n  buffer y: i32[] out',
      'iterate sum [i, j, c, four] as RRRR where (j + c + four < 4) { y[] += x[j] }',
    ),
    steps: 'split c by 2 -> (ca, cb)  cache_read x at cb in shared  bind cb to thread.z',
  },
  {
    code: 'shared-by-threads',
    wrong: 'race',
    kernel: kernel(
      'buffer x: i32[i] in\n  buffer Y: i32[i, c] out',
      'iterate go [i, c] as SS { Y[i, c] = x[i] }',
    ),
    steps: `cache_write Y at c in register  cache_write Y at c in register  cache_write Y at c in shared
      split c by 2 -> (ca, cb)  bind cb to thread.x`,
  },
  {
    code: 'no-shares',
    wrong: 'values',
    kernel: kernel(
      'buffer x: i32[c] in\n  buffer y: i32[i] out',
      'iterate sum [i, j] as SR where (x[j] > 2) { y[i] += A[i, j] }',
    ),
    steps: `fuse (i, j) -> ij  atomic y  split ij by 1 -> (o, s)  split o by 4 -> (b, t)
      bind t to thread.x  accumulate y over s within t`,
  },
  {
    code: 'no-groups',
    wrong: 'race',
    kernel: rows,
    steps: `fuse (i, j) -> ij  atomic y  split ij by 1 -> (o, s)  split o by 2 -> (b, t)  split b by 2 -> (bo, bi)
      bind t to thread.x  accumulate y over s within t  bind bi to thread.y`,
  },
  {
    code: 'no-shares',
    wrong: 'values',
    // Shares are told apart by their loop's number, and two loops would begin with 0.
    kernel: rows,
    steps: 'fuse (i, j) -> ij  split ij by 2 -> (o, s)  accumulate y over s -> K  peel o',
  },
  { code: 'extent-not-constant', wrong: 'stage', kernel: rows, steps: 'unroll j' },
  {
    code: 'format-padding',
    wrong: 'values',
    kernel: rows.replace('+= A[i, j]', '+= 1'),
    steps: 'A as bsr(2)',
  },
  { code: 'format-shared', wrong: 'stage', kernel: apart, steps: 'A as ell()' },
  {
    code: 'bad-stride',
    wrong: 'outside',
    kernel: table,
    steps: 'cache_read x at i in shared stride 3',
  },
  {
    code: 'guard-not-decidable',
    wrong: 'values',
    kernel: triangle,
    steps: 'cache_read x at i in register',
  },
  {
    code: 'scattered',
    wrong: 'stage',
    kernel: meeting,
    steps: 'split i by 2 -> (io, ii)  bind ii to thread.x',
  },
  {
    code: 'reduction-loop',
    wrong: 'outside',
    kernel: meeting,
    steps: 'split i by 2 -> (io, ii)  rfactor ii',
  },
  {
    code: 'divergent-barrier',
    wrong: 'barrier',
    kernel: product,
    steps: `split i by 2 -> (io, ii)  split f by 2 -> (fo, fi)  split j by 2 -> (jo, ji)
      reorder (io, fo, ii, fi, jo, ji)  bind io to block.x, fo to block.y, ii to thread.y, fi to thread.x
      cache_write C at fi in register  cache_read A at jo in shared`,
  },
  { code: 'format-output', wrong: 'values', kernel: elsewhere, steps: 'Y as csr()' },
  {
    code: 'local-between-parts',
    wrong: 'stage',
    kernel: scalar,
    steps: 'cache_write t at make.i in register  fission make.i after 1',
  },
  { code: 'decides-itself', wrong: 'values', kernel: large, steps: 'cache_read x at i in register' },
  { code: 'scattered', wrong: 'stage', kernel: scaled, steps: 'bind four to thread.x' },
  {
    code: 'scattered',
    wrong: 'stage',
    kernel: kernel(
      'buffer x: i32[four] in\n  buffer C: i32[i, c] inout',
      'iterate sum [i, j, four] as SSR { C[i, j] += A[i, j] * x[four] }',
    ),
    steps: 'bind four to thread.x  cache_read j_indices at four in register',
  },
  { code: 'across-lanes', wrong: 'race', kernel: spread, steps: 'cache_read x at i in spread' },
]
