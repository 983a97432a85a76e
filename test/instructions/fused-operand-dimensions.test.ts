/**
 * Operands whose dimensions are numbers with several iterators as digits: the generated test of such an instruction passes
 * where its text does what its body says, and loops match it where they are those digits.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { runLoops } from '../../src/api/stages/stage-check.ts'
import { InstructionVerifier } from '../../src/instruction-tests/instruction-verify.ts'
import { coords, devices, load } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { agreeOnDevice, compare } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { verdictOf } from './verdict.ts'

interface Drawn {
  /** Extents of the digits of a dimension, most significant first. */
  readonly extents: readonly number[]
  readonly rows: number
  readonly place: 'global' | 'shared' | 'held'
  /** Whether rows come last. */
  readonly transposed: boolean
}
const drawn: fc.Arbitrary<Drawn> = fc.record({
  extents: fc.array(fc.constantFrom(2, 3, 4), { minLength: 2, maxLength: 3 }),
  rows: fc.constantFrom(1, 2, 3),
  place: fc.constantFrom('global', 'shared', 'held'),
  transposed: fc.boolean(),
})

const size = (extents: readonly number[]): number => extents.reduce((a, b) => a * b, 1)
const names = ['g', 'q', 'r']
/** `6 * g + 2 * q + r` */
const sum = (extents: readonly number[]): string =>
  extents.map((_, k) => `${size(extents.slice(k + 1))} * ${names[k]}`.replace('1 * ', '')).join(' + ')

/** Rows times a vector, whose text takes coordinate k of the vector for `other(k)`. */
function product({ extents, rows, place, transposed }: Drawn, other: (k: number) => number): string {
  const n = size(extents)
  const at = (i: string, k: string): string => (transposed ? `${k}, ${i}` : `${i}, ${k}`)
  const iters = ['i', ...names.slice(0, extents.length)]
  const terms = Array.from({ length: rows * n }, (_, e) => {
    const [i, k] = [Math.floor(e / n), e % n]
    return `$D[${i}] += $S[$S.index(${at(`${i}`, `${k}`)})] * $T[$T.index(${other(k)})];`
  })
  return `instr dot(D: i32[${rows}] in register, S: i32[${at(`${rows}`, `${n}`)}] in ${place}, T: i32[${n}] in ${place}) {
  iterate add [${iters.join(', ')}] as S${'R'.repeat(extents.length)} {
    D[i] += S[${at('i', sum(extents))}] * T[${sum(extents)}]
  }
  js \`${terms.join(' ')}\`
}`
}

/** The same of tiles in registers, of which each of four threads has a row. */
function productOfRows({ extents, transposed }: Drawn, other: (k: number) => number): string {
  const n = size(extents)
  const at = (i: string, k: string): string => (transposed ? `${k}, ${i}` : `${i}, ${k}`)
  const iters = ['i', ...names.slice(0, extents.length)]
  const terms = Array.from({ length: n }, (_, k) => `$D[0] += $S[${k}] * $T[${other(k)}];`)
  return `
memory rows: i32[${at('4', `${n}`)}] in register of 4 threads { element (lane, slot) -> (${at('lane', 'slot')}) }
memory sums: i32[4] in register of 4 threads { element (lane, slot) -> (lane) }
instr dot(D: i32[4] in sums, S: i32[${at('4', `${n}`)}] in rows, T: i32[${at('4', `${n}`)}] in rows) by 4 threads {
  iterate add [${iters.join(', ')}] as S${'R'.repeat(extents.length)} {
    D[i] += S[${at('i', sum(extents))}] * T[${at('i', sum(extents))}]
  }
  js \`${terms.join(' ')}\`
}`
}

test('an implementation with the declared digits passes, and another is wrong', async () => {
  const js = new InstructionVerifier(() => devices.cpu())
  const verdict = async (text: string): Promise<string> => {
    const { kind, why } = await verdictOf(js, text)
    return kind === 'right' ? kind : `${kind} ${why.join()}`
  }
  await fc.assert(
    fc.asyncProperty(drawn, async (d) => {
      const n = size(d.extents)
      const [first = 1] = d.extents
      // The first digit last.
      const turned = (k: number): number => (k % (n / first)) * first + Math.floor(k / (n / first))
      const text = d.place === 'held' ? productOfRows : product
      expect(await verdict(text(d, (k) => k))).toBe('right')
      expect(await verdict(text(d, turned))).toMatch(/^wrong/)
    }),
    { numRuns: runs(10) },
  )
  await js[Symbol.asyncDispose]()
})

describe('loops', () => {
  const COPY = `
instr copy(D: i32[8] in global, S: i32[8] in global) {
  iterate each [g, q] as SS { D[2 * g + q] = S[2 * g + q] }
  js \`$[for k from 0 to 7: $D[$D.index(k)] = $S[$S.index(k)];]\`
}`
  const kernel = (index: string): string => `${COPY}
kernel k(m: size) {
  axis i = dense_fixed(m)
  axis g = dense_fixed(4)
  axis q = dense_fixed(2)
  axis t = dense_fixed(8)
  buffer X: i32[i, t] in
  buffer Y: i32[i, t] out
  iterate move [i, g, q] as SSS { Y[i, 2 * g + q] = X[i, ${index}] }
}
schedule k.s { tensorize g with copy }`

  test.each(['g * 2 + q', '7 - 2 * g - q'])('%s are what the instruction does', async (index) => {
    const { compilation } = parseProgram(kernel(index)).kernel('k').schedule('s')
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 4 }), async (rows) => {
        const m = rows.length
        const values = Int32Array.from({ length: m * 8 }, (_, k) => rows[Math.floor(k / 8)]! * 10 + (k % 8))
        const X = { kind: 'dense', shape: [m, 8], values, dtype: 'i32' } as const
        const bound = bindInputs(compilation.kernel, { tensors: { X }, params: { m } })
        const expected = reference(compilation.source, referenceInputs(compilation.source, bound)).buffers
        compare('loops', bound, runLoops(compilation.loops, bound, 'forward'), expected)
        await agreeOnDevice(createCpuDevice(), compilation, bound, expected)
      }),
      { numRuns: runs(10) },
    )
  })

  test.each(['q * 4 + g', 'g * 2 + q / 2', '(g * 2 + q + i) % 8'])('%s are rejected', (index) => {
    expect(
      refusal(() => parseProgram(kernel(index)).kernel('k').schedule('s').compilation.loops),
    ).toMatchObject({
      code: 'schedule/not-matching',
      message: expect.stringContaining('does not go along operand'),
    })
  })
})

test('a copied tile has one dimension for fused loops of a format, next to separate rows', async () => {
  const text = `import "sparsetile/kernels/formats.spt"
instr sums(D: i32[2] in register, S: i32[2, 8] in shared) {
  iterate add [i, g, q] as SRR { D[i] += S[i, 2 * g + q] }
  js \`$[for k from 0 to 7: $D[0] += $S[$S.index(0, k)]; $D[1] += $S[$S.index(1, k)];]\`
}
kernel rows(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: i32[i, j] in
  buffer y: i32[i] out
  iterate s [i, j] as SR { y[i] += A[i, j] }
}
schedule rows.s {
  A as nm_packed(2, 4)
  require m % 2 == 0
  require n % 16 == 0
  split io by 2 -> (ib, ii)
  split go by 4 -> (ga, gb)
  reorder (ib, ga, ii, gb, jo)
  cache_write y at ib in register -> ys
  cache_read A at ga in shared -> As
  tensorize s.ii with sums
}`
  const { compilation } = (await load(text)).kernel('rows').schedule('s')
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 3 }),
      fc.integer({ min: 0, max: 2 }),
      fc.array(fc.tuple(fc.nat(100), fc.nat(100)), { maxLength: 30 }),
      async (rows, groups, raw) => {
        const [m, n] = [2 * rows, 16 * groups]
        // Two of four neighbours are stored.
        const cells = new Set(
          m * n === 0 ? [] : raw.map(([i, j]) => (i % m) * n + (j % n) - (((j % n) % 4) >> 1) * 2),
        )
        const at = [...cells].sort((a, b) => a - b)
        const A = coords(
          [m, n],
          [Int32Array.from(at, (c) => Math.floor(c / n)), Int32Array.from(at, (c) => c % n)],
          Int32Array.from(at, (_, k) => 1 + (k % 9)),
        )
        const bound = bindInputs(compilation.kernel, { tensors: { A }, params: { m, n } })
        const expected = reference(compilation.source, referenceInputs(compilation.source, bound)).buffers
        compare('loops', bound, runLoops(compilation.loops, bound, 'forward'), expected)
        await agreeOnDevice(createCpuDevice(), compilation, bound, expected)
      },
    ),
    { numRuns: runs(20) },
  )
})

test.each([
  ['2 * g', 'D is not indexed by 1 different iterators, or digits of its 8 coordinates here'],
  ['3 * g + q', 'D is not indexed by 1 different iterators, or digits of its 8 coordinates here'],
  ['2 * g + q + 1', 'D is not indexed by 1 different iterators, or digits of its 8 coordinates here'],
  ['2 * g + g', 'D is not indexed by 1 different iterators, or digits of its 8 coordinates here'],
  ['g * q', 'D is not indexed by 1 different iterators, or digits of its 8 coordinates here'],
  ['2 * g + h', 'an index of an operand is made of iterators'],
  ['4 * g + q', 'q runs to 4 and to 2'],
])('%s is rejected', (index, message) => {
  const text = `instr copy(D: i32[8] in global, S: i32[8] in global) {
  iterate each [g, q] as SS { D[${index}] = S[2 * g + q] }
  js \`x\`
}`
  const refused = refusal(() => parseProgram(text))
  // The value is read before or after the target.
  expect([message, 'q runs to 2 and to 4', 'g runs to 2 and to 4']).toContain(refused.message)
  expect(refused.code).toBe('check/instr-index')
})

test('a dimension of a register output, also in one thread, is one loop', () => {
  const text = `instr copy(D: i32[8] in register, S: i32[8] in global) {
  iterate each [g, q] as SS { D[2 * g + q] = S[2 * g + q] }
  js \`x\`
}`
  expect(refusal(() => parseProgram(text))).toMatchObject({
    code: 'check/instr-index',
    message: 'D is in registers, where a dimension is one loop, and this has 2',
  })
})
