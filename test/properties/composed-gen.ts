/** Formats of several parts and kernels that read what they find: both made from numbers, and as the host has them. */
import fc from 'fast-check'
import { coords } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { Choices } from '../support/choices.ts'
import { LIVE, matrix, sizeOf } from './live-gen.ts'
import { numbers, parameters } from './property-cases.ts'

const FORMATS = ['panels', 'strips', 'blocks', 'rows_of'] as const
/** All call their first argument b. */
export const TEXTS = FORMATS.map((f) => LIVE[f].text.replaceAll(/\b[hw]\b/g, 'b')).join('\n')
const AXES = `axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)`

/** What a step reads beside A: a mask that comes in, one that the kernel computes, a mask that is no number's neighbour. */
export const KERNELS = {
  plain: `kernel product(m: size, n: size, k: size) {
  ${AXES}
  buffer A: f32[i, q] in
  buffer M: f32[i, q] in
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
}`,
  written: `kernel product(m: size, n: size, k: size) {
  ${AXES}
  buffer X: f32[i, q] in
  buffer M0: f32[i, q] in
  buffer A: f32[i, q] local
  buffer M: i32[i, q] local
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate relu [i, q] as SS { A[i, q] = max(X[i, q], 0.0) }
  iterate which [i, q] as SS { M[i, q] = select(M0[i, q] > 0.0, 1, 0) }
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
}`,
  // Single elements are written, and a row is a nest with a loop over what is listed inside.
  nest: `kernel product(m: size, n: size, k: size) {
  ${AXES}
  buffer A: f32[i, q] in
  buffer M: f32[i, q] in
  buffer B: f32[q, j] in
  buffer T: f32[i, q] local
  buffer Z: f32[i] local
  buffer C: f32[i, j] out
  iterate take [i, q] as SS { if (A[i, q] != 0) { T[i, q] = 2.0 * A[i, q] } }
  iterate row [i] as S {
    iterate most [q] as R { if (A[i, q] != 0) { Z[i] max= T[i, q] } }
    iterate mul [q, j] as RS { C[i, j] += A[i, q] * B[q, j] }
  }
  iterate more [i, j] as SS { C[i, j] += max(Z[i], -9.0) }
}`,
} as const

const CONDITIONS = ['held(M)', 'i < j', 'i % 2 == 0', 'held(M) and j > 2', 'held(M) or i == j'] as const

export interface Composed {
  readonly kernel: keyof typeof KERNELS
  readonly text: string
  /** The format of the step, and as the host has it: conditions of parts exclude each other. */
  readonly format: string
  readonly exact: string
  readonly parts: readonly (typeof FORMATS)[number][]
  readonly inputs: Inputs
  readonly host: Inputs
}

type Names = readonly (keyof typeof KERNELS)[]
/** All that looks at the lists is one product. */
export const PRODUCTS: Names = ['plain', 'written']

function composed(c: Choices, kernels: Names): Composed {
  const kernel = c.pick(kernels)
  const n = c.pick([2, 3])
  const pool = [...FORMATS]
  const parts = Array.from({ length: n }, () => pool.splice(c.below(pool.length), 1)[0]!)
  // Groups of one do not tell what they write apart.
  const uses = parts.map((f) => `${f}(${c.pick([1, 2, 3])}, ${c.pick(f === 'blocks' ? [1, 2] : [2, 3])})`)
  const left = [...CONDITIONS]
  const where = parts.slice(1).map(() => left.splice(c.below(left.length), 1)[0]!)
  const joined = (own: (k: number) => string): string =>
    uses.map((u, k) => (k < where.length ? `${u} where (${own(k)})` : u)).join(' + ')
  const isData = (k: number): boolean => where[k]!.includes('held')
  // Of coordinates alone it is seen, and refused, that two conditions hold.
  const before = (k: number): string =>
    where
      .slice(0, k)
      .map((w) => `not (${w}) and `)
      .join('')
  const format = joined((k) => (where.every((_, x) => isData(x)) ? where[k]! : `${before(k)}(${where[k]})`))
  const [m, k] = [sizeOf(c, 2), c.pick([0, 1, 4, 5, 33, 65])]
  const cols = c.pick([1, 3])
  const dense = (shape: readonly number[], values: Float32Array) =>
    ({ kind: 'dense', dtype: 'f32', shape, values }) as const
  const [given, mask] = [matrix(c, m * k), matrix(c, m * k)]
  const B = dense(
    [k, cols],
    Float32Array.from({ length: k * cols }, (_, e) => (e % 7) - 3),
  )
  const isWritten = kernel === 'written'
  const A = isWritten ? given.map((e) => Math.max(e, 0)) : given
  const exact = joined((x) => `${before(x)}(${where[x]})`)
  const held = [...mask.keys()].filter((e) => (isWritten ? mask[e]! > 0 : mask[e] !== 0))
  const M = coords([m, k], [held.map((e) => Math.floor(e / k)), held.map((e) => e % k)])
  return {
    kernel,
    text: `${TEXTS}\n${KERNELS[kernel]}`,
    format,
    exact,
    parts,
    inputs: {
      tensors: isWritten
        ? { X: dense([m, k], given), M0: dense([m, k], mask), B }
        : { A: dense([m, k], given), M: dense([m, k], mask), B },
    },
    host: { tensors: { A: dense([m, k], A), B, ...(exact.includes('held') ? { M } : {}) } },
  }
}

export const scheduled = (s: Composed, how: string) =>
  parseProgram(`${s.text}\nschedule product.s { A as ${s.format} ${how} }`).kernel().schedule('s')
export const compiled = (s: Composed, how: string): Compilation => scheduled(s, how).compilation

export const property = (
  usual: number,
  check: (s: Composed, c: Choices) => Promise<void> | void,
  kernels = Object.keys(KERNELS) as Names,
) =>
  fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const s = composed(c, kernels)
      try {
        await check(s, c)
      } catch (e) {
        throw new Error(`${e instanceof Error ? e.stack : e}\n${KERNELS[s.kernel]}\n${s.format}`)
      }
    }),
    parameters(usual),
  )

export const waysOf = ({ parts }: Composed) => [
  'live in place',
  'live',
  'live in place capacity m + k',
  'live capacity 3 * m * k + m + k in all',
  `live in place capacity (${parts.map((_, x) => `m + k + ${x}`).join(', ')})`,
  `live capacity (${parts.map((_, x) => `m * k + m + k + ${x}`).join(', ')}) in all`,
]

export const PLAIN = KERNELS.plain.replace('buffer M: f32[i, q] in', '')

/** Rows of each part on blocks of their own, and the parts in one launch: what several combine into is by `how`. */
export const merged = ({ parts }: Composed, how: 'atomic' | 'combine', merge = 'merge parts of A'): string =>
  `${how} C ${parts.map((f) => `bind mul_${f}.${LIVE[f].loops[0]}_${f} to block.x`).join(' ')} ${merge}`

/** A part alone: what its condition leaves out is needed by no statement. */
export const MASKED = KERNELS.plain
  .replace('C[i, j] +=', 'if (M[i, q] != 0) { C[i, j] +=')
  .replace('] }\n', '] } }\n')
