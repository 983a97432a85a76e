/** Text that generated programs share: formats, a monoid over a pair, and names that targets reserve. */

export const FORMATS = `
format bsr(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
format ell(w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format dcsr over (i, j) {
  axis io = sparse_variable(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format csc over (i, j) {
  axis jo = dense_fixed(j)
  axis io = sparse_variable(jo, i)
  map (i, j) -> (j, i)
  inverse (jo, io) -> (io, jo)
}
`

const pair = (t: string, low: string): string => `
monoid pair(s: ${t}, m: ${t}) {
  identity (0, ${low})
  combine (a, b) = (a.s + b.s, max(a.m, b.m))
}
`
export const MONOIDS = { f32: pair('f32', '-inf'), i32: pair('i32', '-2147483647') }

/** Words of JavaScript, WGSL, CUDA C, and of what the backends print around a kernel. */
export const KEYWORDS = `
  float double int char class function new this delete await yield const var switch fn struct loop while for return
  private workgroup storage ptr atomic vec2 array main params group local threadIdx blockIdx blockDim __shared__
  __global__ register extern short signed unsigned static void half Math NaN Infinity undefined arguments eval Object
  Float32Array linear groups old_word thread waiting block_x thread_x blockIdx_x gridDim old assumed inf_ erf
  round_f16 lo hi found mid value next share _ __x constructor prototype toString hasOwnProperty
`
  .trim()
  .split(/\s+/)
