/** What `tensorize` takes and what it refuses; what it takes stays what it was for everything that looks at loops. */
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { verifyPass } from '../../src/api/stages/stage-verifier.ts'
import { interpret } from '../../src/interpret/stage2.ts'
import { print2, print3 } from '../../src/ir/print/print-stage2.ts'
import type { LoopStep } from '../../src/schedule/steps/step-data.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'
import { diagnosticOf } from '../support/refusal.ts'
import { FRAGMENTS, IN_SHARED, MEMORIES, PRODUCT, scheduled, TILED } from './support.ts'

const refusal = (steps: string, kernel = PRODUCT): string =>
  diagnosticOf(() => scheduled(steps, kernel))?.code ?? 'taken'

const WHOLE = `${TILED}${IN_SHARED}${FRAGMENTS}`

describe('an instruction is accepted', () => {
  test('on fragments of tiles; the loop nest defines its meaning', () => {
    const k = scheduled(`${WHOLE}
      tensorize product.ir with multiply
      tensorize Ar.ir with read_a`)
    const text = print2(k.compilation.loops, { bodyOnly: true })
    expect(text).toContain('for ir in 0..8  @multiply')
    expect(text).toContain('alloc Cr: f32[8, 8] c_tile')
    verify2(k.compilation.loops)
    expect(print3(k.compilation.observe(verifyPass))).toMatch(/^ +instr multiply .*Cr/m)
  })

  test('with swapped factors, and for a single thread', () => {
    expect(
      refusal(
        `${WHOLE}\ntensorize product.ir with multiply`,
        PRODUCT.replace('A[i, p] * B[p, j]', 'B[p, j] * A[i, p]'),
      ),
    ).toBe('taken')
    expect(refusal(`${TILED}${IN_SHARED}\nsplit As.pt by 8 -> (pc, pv)\ntensorize pv with copy8`)).toBe(
      'taken',
    )
  })

  test('and does not change the result', () => {
    const plain = scheduled(WHOLE).compilation.loops
    const made = scheduled(`${WHOLE}\ntensorize product.ir with multiply`).compilation.loops
    const [m, n, k] = [16, 32, 32]
    const run = (kernel: typeof plain): number[] => {
      const A = Array.from({ length: m * k }, (_, e) => ((e * 7) % 5) - 2)
      const B = Array.from({ length: k * n }, (_, e) => ((e * 3) % 7) - 3)
      const C = new Array<number>(m * n).fill(Number.NaN)
      interpret(
        kernel,
        new Map([
          ['A', A],
          ['B', B],
          ['C', C],
        ]),
        new Map([
          ['m', m],
          ['n', n],
          ['k', k],
        ]),
      )
      return C
    }
    const want = run(plain)
    expect(want.some((x) => x !== 0)).toBe(true)
    expect(run(made)).toEqual(want)
  })
})

describe('tiles of listed rows', () => {
  // Of three rows of five, in groups of eight: most of a tile is no row.
  const listed = (depth: number): string => `
kernel product(m: size, n: size, kb: size) {
  axis i = dense_fixed(m)
  axis o = dense_fixed(kb)
  axis p = dense_fixed(${depth})
  axis j = dense_fixed(n)
  axis g = dense_variable(o, m)
  axis r = sparse_fixed(g, m, 8)
  buffer A: f16[i, o, p] in
  buffer B: f16[o, p, j] in
  buffer C: f32[i, j] out
  iterate product [o, g, r, p, j] as RRRRS { C[r, j] += A[r, o, p] * B[o, p, j] }
}`
  const tile = (loops: string): string => `
  fuse (o, g) -> t
  atomic C
  require n % 8 == 0
  split j by 8 -> (jo, jr)
  ${loops}
  bind t to block.x, jo to block.y
  cache_write C at jo in c_tile -> Cr`
  const FRAGMENTED = `${tile('split product.p by 8 -> (po, pr)  reorder (t, jo, po, r, jr, pr)')}
  cache_read B at jo in shared -> Bs
  cache_read A at jo in shared padded 0 -> As
  cache_read As at po in a_tile -> Ar
  cache_read Bs at po in b_tile -> Br
  tensorize Ar.r with read_a
  tensorize product.r with multiply`
  // Without a reduction loop around the instruction: it starts its tile itself.
  const ALONE = `${tile('reorder (t, jo, r, jr, product.p)')}
  cache_read A at jo in turned_8 padded 0 -> As
  cache_read B at jo in shared -> Bs
  tensorize product.r with multiply_later`

  test.each([
    [16, FRAGMENTED, 'multiply'],
    [8, ALONE, 'multiply_later'],
  ])('of depth %d are computed, and stored at the listed rows: %s', (depth, steps, name) => {
    const k = scheduled(steps, listed(depth))
    const text = print2(k.compilation.loops, { bodyOnly: true })
    expect(text).toContain(`for r in 0..8  @${name}\n`)
    expect(text).toMatch(/reduce {2}where r_indices\[.*\] < m\n.*\n +C\[r_indices.* {2}atomic/)
    k.compilation.observe(verifyPass)
    const [cuda] = k.emit('cuda')
    expect(cuda!.text).toContain(name === 'multiply' ? 'multiply(' : 'start(')
    expect(cuda!.text).toContain('atomicAdd')
    const run = (c: typeof k): number[] => {
      const C = new Array<number>(5 * 8).fill(Number.NaN)
      interpret(
        c.compilation.loops,
        new Map([
          ['A', Array.from({ length: 5 * 2 * depth }, (_, e) => ((e * 7) % 5) - 2)],
          ['B', Array.from({ length: 2 * depth * 8 }, (_, e) => ((e * 3) % 7) - 3)],
          ['C', C],
          ['g_indptr', [0, 1, 2]],
          ['r_indices', [0, 2, 4, 5, 5, 5, 5, 5, 2, 5, 5, 5, 5, 5, 5, 5]],
        ]),
        new Map([
          ['m', 5],
          ['n', 8],
          ['kb', 2],
          ['g_count', 2],
        ]),
      )
      return C
    }
    const want = run(scheduled('', listed(depth)))
    expect(want.some((x) => x !== 0)).toBe(true)
    expect(run(k)).toEqual(want)
  })
})

describe('an instruction is rejected', () => {
  const cases: [string, string, string, string?][] = [
    ['other extents', `${TILED}\ntensorize po with multiply`, 'schedule/wrong-extent'],
    [
      'operands elsewhere',
      `${TILED}${IN_SHARED}\ntensorize product.ir with multiply`,
      'schedule/wrong-memory',
    ],
    [
      'another statement',
      `${WHOLE}\ntensorize product.ir with multiply`,
      'schedule/not-matching',
      PRODUCT.replace('A[i, p] * B[p, j]', 'A[i, p] + B[p, j]'),
    ],
    ['a copy of something else', `${WHOLE}\ntensorize Br.jr with read_a`, 'schedule/wrong-memory'],
    [
      'conditions inside',
      `${TILED.replace(/require m.*/, '')}${IN_SHARED}${FRAGMENTS}\ntensorize product.ir with multiply`,
      'schedule/guarded',
    ],
    [
      'rows that follow each other unaligned',
      `${TILED}\ncache_read A at po in shared stride 20 -> As\nsplit As.pt by 8 -> (pc, pv)\ntensorize pv with copy8`,
      'schedule/not-aligned',
    ],
    [
      'a memory that takes neighbours apart',
      `${TILED}${IN_SHARED.replace('turned', 'shuffled')}${FRAGMENTS}\ntensorize Ar.ir with read_a`,
      'schedule/not-aligned',
    ],
    [
      'threads that are taken',
      `${WHOLE.replace('jt to thread.y', 'jt to thread.x')}\ntensorize product.ir with multiply`,
      'schedule/not-idle',
    ],
    [
      'a step inside afterwards',
      `${WHOLE}\ntensorize product.ir with multiply\nsplit pr by 4`,
      'schedule/wrong-extent',
    ],
    [
      'a loop that is bound afterwards',
      `${TILED.replace(', jt to thread.y', '')}
      cache_read A at pt in a_tile -> Ar
      cache_read B at pt in b_tile -> Br
      tensorize product.ir with multiply
      bind jt to thread.x`,
      'schedule/not-idle',
    ],
    [
      'the same loop twice',
      `${WHOLE}\ntensorize product.ir with multiply\nunroll product.ir`,
      'schedule/not-serial',
    ],
    ['a copy of other tiles', TILED.replace('(8, 8)', '(4, 8)'), 'schedule/wrong-tile'],
    ['a copy of another type', `${TILED}\ncache_read A at po in c_tile`, 'schedule/wrong-type'],
  ]
  test.each(cases)('%s', (_, steps, code, kernel) => {
    expect(refusal(steps, kernel)).toBe(code)
  })
})

test('a target without an implementation is named, with the instruction', () => {
  const k = scheduled(`${WHOLE}\ntensorize product.ir with multiply`)
  expect(() => k.emit('wgsl')).toThrow(/multiply has no text for wgsl/)
})

test('from TypeScript, memories and instructions are passed by name, and traces contain them', () => {
  const k = parseProgram(`${MEMORIES}\n${PRODUCT}`).kernel('product')
  const made = k
    .require('m', { multiple: 8 })
    .require('n', { multiple: 8 })
    .require('k', { multiple: 8 })
    .tile(['i', 'j'], [8, 8], ['io', 'jo', 'ir', 'jr'])
    .split('p', 8, ['po', 'pr'])
    .reorder('io', 'jo', 'po', 'ir', 'jr', 'pr')
    .bind({ io: 'block.y', jo: 'block.x' })
    .cacheWrite('C', 'jo', 'c_tile')
    .cacheRead('A', 'po', 'a_tile')
    .cacheRead('B', 'po', 'b_tile')
    .tensorize('ir', 'multiply')
  const text = made.emit('cuda')[0]!.text
  expect(text).toContain('multiply(C_register_0')
  const steps = JSON.parse(JSON.stringify(made.compilation.loopSteps)) as LoopStep[]
  expect(k.apply(steps.map((step) => ({ stage: 2, step }))).emit('cuda')[0]!.text).toBe(text)
  expect(() => k.cacheRead('A', 'i', 'a_tiles')).toThrow(/no memory a_tiles/)
  expect(() => k.tensorize('i', 'multiplied')).toThrow(/no instruction multiplied/)
})

test('an operand that stands twice is one element', () => {
  const square = (b: string, place = 'global') =>
    diagnosticOf(
      () =>
        parseProgram(`instr square(D: f32[4] in global, S: f32[4] in ${place}) {
  iterate go [i] as S { D[i] = S[i] * S[i] }
  js \`go($D[0], $S[0]);\`
}
kernel k(m: size) {
  axis i = dense_fixed(m)
  axis four = dense_fixed(4)
  buffer A: f32[i, four] in
  buffer B: f32[i, four] in
  buffer C: f32[i, four] out
  iterate go [i, four] as SS { C[i, four] = A[i, four] * ${b} }
}
schedule k.s { tensorize four with square }`)
          .kernel('k')
          .schedule('s').compilation.loops,
    )
  expect(square('A[i, four]')).toBeUndefined()
  expect(square('B[i, four]')?.code).toBe('schedule/not-matching')
  expect(square('A[i, 3 - four]')?.code).toBe('schedule/not-matching')
  expect(square('A[i, four]', 'shared')).toMatchObject({
    code: 'schedule/wrong-memory',
    message: expect.stringContaining('A is in global, and operand S of square in shared'),
  })
})
