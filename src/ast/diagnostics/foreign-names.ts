/** Names of other systems (NumPy, PyTorch, Halide, TVM, Triton) for functions and steps, with what is written here. */

const FUNCTIONS: Readonly<Record<string, string>> = {
  relu: 'max(x, 0)',
  leaky_relu: 'max(x, 0.01 * x)',
  gelu: '0.5 * x * (1 + erf(x / sqrt(2)))',
  sigmoid: '1 / (1 + exp(-x))',
  silu: 'x / (1 + exp(-x))',
  swish: 'x / (1 + exp(-x))',
  softplus: 'log1p(exp(x))',
  clip: 'min(max(x, low), high)',
  clamp: 'min(max(x, low), high)',
  maximum: 'max(x, y)',
  minimum: 'min(x, y)',
  square: 'x * x',
  reciprocal: '1 / x',
  fabs: 'abs(x)',
  where: 'select(condition, x, y)',
  cdiv: 'ceildiv(x, y)',
  float: 'f32(x)',
  int: 'i32(x)',
  fmaxf: 'max(x, y)',
  fmax: 'max(x, y)',
  fminf: 'min(x, y)',
  fmin: 'min(x, y)',
  expf: 'exp(x)',
  logf: 'log(x)',
  sqrtf: 'sqrt(x)',
  power: 'pow(x, y)',
  sum: 'y[i] += x',
  reduce_sum: 'y[i] += x',
  prod: 'y[i] *= x',
  amax: 'y[i] max= x',
  amin: 'y[i] min= x',
  dot: 'y[i] += a * b',
  matmul: 'C[i, f] += A[i, j] * B[j, f]',
}

/** Types of NumPy, PyTorch, C and Triton. */
const TYPES: Readonly<Record<string, string>> = {
  float: 'f32',
  float32: 'f32',
  fp32: 'f32',
  double: 'f64',
  float64: 'f64',
  fp64: 'f64',
  half: 'f16',
  float16: 'f16',
  fp16: 'f16',
  bfloat16: 'bf16',
  int: 'i32',
  int32: 'i32',
  int32_t: 'i32',
  int64: 'i32',
  int64_t: 'i32',
  long: 'i32',
  int8: 'i8',
  char: 'i8',
  uint: 'u32',
  uint32: 'u32',
  uint8: 'u8',
  boolean: 'bool',
}

/** Levels of TACO, SparseTIR, MLIR and Finch. */
const AXIS_KINDS: Readonly<Record<string, string>> = {
  dense: 'dense_fixed(m)',
  range: 'dense_fixed(m)',
  compressed: 'sparse_variable(i, n)',
  sparse: 'sparse_variable(i, n)',
  csr: 'sparse_variable(i, n)',
  sparse_list: 'sparse_variable(i, n)',
  sparselist: 'sparse_variable(i, n)',
  ragged: 'dense_variable(i, n)',
  ell: 'sparse_fixed(i, n, width)',
  band: 'run(i, n)',
  banded: 'run(i, n)',
  skyline: 'run(i, n)',
}

/** Literals and built-in names. */
const VALUES: Readonly<Record<string, string>> = {
  infinity: 'inf',
  true: 'true',
  false: 'false',
  nan: 'nan',
  flt_max: 'inf',
  threadidx: 'bind i to thread.x',
  blockidx: 'bind i to block.x',
  program_id: 'bind i to block.x',
}

/** Functions of formats, where these are known: elements of a row `i` over columns `j`. */
const QUERIES: Readonly<Record<string, string>> = {
  length: 'count(j by i)',
  len: 'count(j by i)',
  nnz: 'count(i, j)',
  degree: 'count(j by i)',
}

/** Steps in `.spt`, with example names of loops and buffers. */
export const STEPS: Readonly<Record<string, string>> = {
  parallel: 'bind i to block.x',
  parallelize: 'bind i to block.x',
  parallelise: 'bind i to block.x',
  gpu_blocks: 'bind i to block.x',
  gpu_threads: 'bind i to thread.x',
  vectorise: 'vectorize fi',
  simd: 'vectorize fi',
  interchange: 'reorder (j, i)',
  permute: 'reorder (j, i)',
  swap: 'reorder (j, i)',
  collapse: 'fuse (i, j) -> ij',
  flatten: 'fuse (i, j) -> ij',
  strip_mine: 'split i by 32',
  inline: 'compute_inline producer recompute',
  reverse_compute_at: 'compute_at consumer at i',
  cache: 'cache_read B at i in shared',
  stage_mem: 'cache_read B at i in shared',
  prefetch: 'pipeline i by 2',
  double_buffer: 'pipeline i by 2',
  software_pipeline: 'pipeline i by 2',
  distribute: 'fission i after 1',
  blockize: 'tensorize i with INSTRUCTION',
}

const hintIn = (table: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(table, name.toLowerCase()) ? `write \`${table[name.toLowerCase()]}\`` : undefined

/** A hint for a function of another system; `known`: the functions that exist where it is called. */
export const functionHint = (name: string, known: readonly string[]): string | undefined =>
  hintIn(FUNCTIONS, name) ?? (known.includes('count') ? hintIn(QUERIES, name) : undefined)

/** A hint for a type, axis kind or value of another system; undefined unless `known` has the type. */
export const typeMeant = (name: string, known: readonly string[]): string | undefined =>
  known.includes(TYPES[name.toLowerCase()] ?? '') ? hintIn(TYPES, name) : undefined
export const axisKindMeant = (name: string): string | undefined => hintIn(AXIS_KINDS, name)
export const valueMeant = (name: string): string | undefined => hintIn(VALUES, name)

export const suggestedStep = (word: string): string | undefined => hintIn(STEPS, word)

/** Operators of other languages, and what to write in `.spt`. */
export const OPERATOR_HINTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '&&': 'write `and`',
    '||': 'write `or`',
    '!': 'write `not`',
    '&': 'write `and`; for the lowest bits of an integer, `i % 4`',
    '|': 'write `or`',
    '**': 'write `pow(x, y)`',
    '++': 'write `y[i] += 1`',
    '<<': 'write a multiplication: `i * 4`',
    '>>': 'write a division: `i / 4`',
    ':=': 'a new name begins with `let`: `let t = A[i, j]`',
    '=>': 'write `->`',
    '^': 'write `pow(x, y)`; the widths of a `bucket` have `2^k`',
    '?': 'write `select(condition, a, b)`',
    "'": 'write paths in double quotes',
    '#': 'comments begin with `//`',
  }),
)
