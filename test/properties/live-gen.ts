/** Products of a dense matrix whose structure a format finds in each run, given or written before, with all that may be met. */
import type { Inputs } from '../../src/run/bind/index.ts'
import type { Choices } from '../support/choices.ts'

/** By name: the text of each, what its list is called, and the axes that are counted and counted for. */
export const LIVE = {
  panels: {
    list: 'jo',
    loops: ['io', 'go'],
    text: `format panels(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, s) padded with last
  axis ii = dense_fixed(go, h)
  axis ji = dense_fixed(ii, jo)
  map (i, j) -> (i / h, rank(j by i / h) / s, j, i % h, position(jo))
  inverse (io, go, ii, ji) -> (io * h + ii, jo[ji])
}`,
  },
  strips: {
    list: 'jo',
    loops: ['io', 'go'],
    text: `format strips(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_variable(io, j)
  axis jo = sparse_fixed(go, j, s)
  axis ii = dense_fixed(jo, h)
  map (i, j) -> (i / h, rank(j by i / h) / s, j, i % h)
  inverse (io, go, jo, ii) -> (io * h + ii, jo)
}`,
  },
  rows_of: {
    list: 'io',
    loops: ['jo', 'go'],
    text: `format rows_of(w, s) over (i, j) {
  axis jo = dense_fixed(ceildiv(j, w))
  axis go = dense_variable(jo, i)
  axis io = sparse_fixed(go, i, s) padded with 0
  axis ji = dense_fixed(io, w)
  map (i, j) -> (j / w, rank(i by j / w) / s, i, j % w)
  inverse (jo, go, io, ji) -> (io, jo * w + ji)
}`,
  },
  blocks: {
    list: 'jo',
    loops: ['io', 'jo'],
    text: `format blocks(b, c) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, c))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(c)
  map (i, j) -> (i / b, j / c, i % b, j % c)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * c + ji)
}`,
  },
  // Morton order within blocks: three digits of each dimension, as a sum.
  quads: {
    list: 'jo',
    loops: ['io', 'jo'],
    text: `format quads(b, c) over (i, j) {
  axis io = dense_fixed(ceildiv(i, 2 * b))
  axis jo = sparse_variable(io, ceildiv(j, 2 * c))
  axis ih = dense_fixed(2)
  axis jh = dense_fixed(2)
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(c)
  map (i, j) -> (i / (2 * b), j / (2 * c), i / b % 2, j / c % 2, i % b, j % c)
  inverse (io, jo, ih, jh, ii, ji) -> (io * (2 * b) + ih * b + ii, ji + jh * c + jo * (2 * c))
}`,
  },
  // What is listed is a digit below another: which columns of a residue, or elements of a row's pieces.
  residues: {
    list: 'jo',
    loops: ['io', 'jo'],
    text: `format residues(b, c) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, c)
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(ceildiv(j, c))
  map (i, j) -> (i / b, j % c, i % b, j / c)
  inverse (io, jo, ii, ji) -> (io * b + ii, ji * c + jo)
}`,
  },
  // Lists beyond the last row are empty: the rows' digits have two axes above the list.
  row_digits: {
    list: 'jo',
    loops: ['il', 'ih', 'jo'],
    text: `format row_digits(b, c) over (i, j) {
  axis il = dense_fixed(b)
  axis ih = dense_fixed(il, ceildiv(i, b))
  axis jo = sparse_variable(ih, ceildiv(j, c))
  axis ji = dense_fixed(c)
  map (i, j) -> (i % b, i / b, j / c, j % c)
  inverse (il, ih, jo, ji) -> (ih * b + il, jo * c + ji)
}`,
  },
  low_strips: {
    list: 'jo',
    loops: ['io', 'go'],
    text: `format low_strips(h, s) over (i, j) {
  axis io = dense_fixed(i)
  axis go = dense_variable(io, h)
  axis jo = sparse_fixed(go, h, s)
  axis ji = dense_fixed(jo, ceildiv(j, h))
  map (i, j) -> (i, rank(j % h by i) / s, j % h, j / h)
  inverse (io, go, jo, ji) -> (io, ji * h + jo)
}`,
  },
  low_panels: {
    list: 'jo',
    loops: ['io', 'go'],
    text: `format low_panels(h, s) over (i, j) {
  axis io = dense_fixed(i)
  axis go = dense_variable(io, h)
  list jo = sparse_fixed(go, h, s) padded with last
  axis jh = dense_fixed(go, ceildiv(j, h))
  axis ji = dense_fixed(jh, jo)
  map (i, j) -> (i, rank(j % h by i) / s, j % h, j / h, position(jo))
  inverse (io, go, jh, ji) -> (io, jh * h + jo[ji])
}`,
  },
} as const

export const KERNELS = {
  left: `kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
}`,
  right: `kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer B: f32[j, i] in
  buffer C: f32[j, q] out
  iterate mul [j, i, q] as SRS { C[j, q] += B[j, i] * A[i, q] }
}`,
  // Both matrices have one structure, where any of them holds something.
  two: `kernel product(m: size, n: size, k: size) {
  axis p = dense_fixed(2)
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[p, i, q] in
  buffer B: f32[q, j] in
  buffer C: f32[p, i, j] out
  iterate mul [p, i, q, j] as SSRS { C[p, i, j] += A[p, i, q] * B[q, j] }
}`,
  // What is read is a temporary, of one writer or two, or a result.
  relu: `kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer X: f32[i, q] in
  buffer A: f32[i, q] local
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate relu [i, q] as SS { A[i, q] = max(X[i, q], 0.0) }
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
}`,
  masked: `kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer X: f32[i, q] in
  buffer M: f32[i, q] in
  buffer A: f32[i, q] out
  buffer B: f32[j, i] in
  buffer C: f32[j, q] out
  iterate mask [i, q] as SS { A[i, q] = X[i, q] * M[i, q] }
  iterate mul [j, i, q] as SRS { C[j, q] += B[j, i] * A[i, q] }
}`,
  summed: `kernel product(m: size, n: size, k: size) {
  axis p = dense_fixed(2)
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer X: f32[p, i, q] in
  buffer M: f32[i, q] in
  buffer A: f32[i, q] local
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate sum [i, q, p] as SSR { A[i, q] += X[p, i, q] }
  iterate more [i, q] as SS { A[i, q] += M[i, q] }
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
}`,
}

/** How many iterations write what is read, and what they write. */
interface Written {
  readonly writers: number
  readonly of: (x: Float32Array, m: Float32Array) => Float32Array
}
const WRITTEN: { readonly [kernel in keyof typeof KERNELS]?: Written } = {
  relu: { writers: 1, of: (x) => x.map((e) => Math.max(e, 0)) },
  masked: { writers: 1, of: (x, m) => x.map((e, k) => e * m[k]!) },
  summed: { writers: 2, of: (x, m) => m.map((e, k) => x[k]! + x[m.length + k]! + e) },
}

export interface Live {
  readonly format: keyof typeof LIVE
  /** With the schedules `live` and `fused`, which takes all lists one after the other. */
  readonly text: string
  readonly sizes: readonly [m: number, n: number, k: number]
  /** How many lists there are. */
  readonly lists: number
  readonly inputs: Inputs
  /** The matrix, or what it is written from. */
  readonly source: 'A' | 'X'
  /** That with other values. */
  readonly other: () => Float32Array
  readonly writers: number
  /** The product of the matrix as an input, with the schedule `host`. */
  readonly host: { readonly text: string; readonly inputs: Inputs }
}

/** Sizes at the edges of tiles and of words. */
export const sizeOf = (c: Choices, tile: number): number =>
  c.pick([0, 1, tile - 1, tile, tile + 1, 3 * tile, 2 * tile + 1, 63, 65])

/** Integers: mostly nothing, also as −0; nothing or everything now and then. */
export function matrix(c: Choices, size: number): Float32Array {
  const share = c.pick([0.1, 0, 0.02, 0.5, 1])
  const random = lcg(c.below(9999))
  return Float32Array.from({ length: size }, () =>
    random(1000) < share * 1000 ? [-3, -2, -1, 1, 2, 3][random(6)]! : random(2) * -0,
  )
}

/** Matrices are larger than what choices are made of. */
function lcg(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

export function live(c: Choices, of?: keyof typeof LIVE, under?: keyof typeof KERNELS): Live {
  const format = of ?? c.pick(Object.keys(LIVE) as (keyof typeof LIVE)[])
  // Digits below others may be of one word or of two.
  const isLow = format === 'low_strips' || format === 'low_panels'
  const [a, b] = [
    c.pick(isLow ? [3, 1, 2, 33, 40] : [1, 2, 3, 4, 8]),
    c.pick(format === 'residues' ? [3, 1, 2, 33, 40] : [1, 2, 3, 4]),
  ]
  const name = under ?? c.pick(Object.keys(KERNELS) as (keyof typeof KERNELS)[])
  const written = WRITTEN[name]
  const [outer, listed] =
    c.below(8) === 7
      ? [3, 1025 * (format === 'quads' ? 2 * b : format === 'blocks' || format === 'row_digits' ? b : 1)]
      : []
  const isUnder = format === 'rows_of'
  const m = (isUnder ? listed : outer) ?? sizeOf(c, a)
  const k = (isUnder ? outer : listed) ?? sizeOf(c, b)
  const n = c.pick(listed === undefined ? [0, 1, 5] : [1])
  const step = `A as ${format}(${a}, ${b})`
  const loops = LIVE[format].loops.map((l) => `mul.${l}`).join(', ')
  const text = `${LIVE[format].text}\n${KERNELS[name]}\nschedule product.live { ${step} live in place }
schedule product.fused { ${step} live in place fuse (${loops}) -> g }`
  const shape = [...(name === 'two' || name === 'summed' ? [2] : []), m, k]
  const other = (): Float32Array =>
    matrix(
      c,
      shape.reduce((x, y) => x * y),
    )
  const dense = (shape: readonly number[], values: Float32Array) =>
    ({ kind: 'dense', dtype: 'f32', shape, values }) as const
  const isRight = name === 'right' || name === 'masked'
  const ofB = isRight ? [n, m] : [k, n]
  const random = lcg(c.below(9999))
  const B = dense(
    ofB,
    Float32Array.from({ length: ofB[0]! * ofB[1]! }, () => random(7) - 3),
  )
  const [given, mask] = [other(), matrix(c, m * k)]
  const M = name === 'masked' || name === 'summed' ? { M: dense([m, k], mask) } : {}
  const A = written ? dense([m, k], written.of(given, mask)) : dense(shape, given)
  const plain = written ? KERNELS[isRight ? 'right' : 'left'] : KERNELS[name]
  const source = written ? 'X' : 'A'
  return {
    format,
    text,
    sizes: [m, n, k],
    lists:
      Math.ceil((isUnder ? k : m) / (isLow ? 1 : format === 'quads' ? 2 * a : a)) *
      (format === 'row_digits' ? a : 1),
    inputs: { tensors: { [source]: dense(shape, given), ...M, B } },
    source,
    other,
    writers: written?.writers ?? 0,
    host: {
      text: `${LIVE[format].text}\n${plain}\nschedule product.host { ${step} }`,
      inputs: { tensors: { A, B } },
    },
  }
}
