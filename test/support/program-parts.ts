/** Text that generated programs share: formats, a monoid over a pair, and names that targets reserve. */
import { standard } from './packaged-formats.ts'

export const FORMATS = `
${standard('bsr', 'ell', 'csr', 'dcsr', 'csc')}
`

const pair = (t: string, low: string, rule = ''): string => `
monoid pair(s: ${t}, m: ${t}) {
  identity (0, ${low})
  combine (a, b) = (a.s + b.s, max(a.m, b.m))
${rule}}
`
export const MONOIDS = {
  f32: pair('f32', '-inf', '  derivative (x, r, d) = (d.s, select(x.m == r.m, d.m, 0))\n'),
  i32: pair('i32', '-2147483648'),
}

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
