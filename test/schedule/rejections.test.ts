/** What each primitive refuses, and how the refusal reads. */
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Diagnostic, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { add, constant, type Expr, int, lt, mul, select } from '../../src/ir/expressions/expr.ts'
import type { Kernel2 } from '../../src/ir/statements/loops.ts'
import { inAnyOrder } from '../../src/schedule/legality/nest-dependence.ts'
import { replay } from '../../src/schedule/state/state.ts'
import type { LoopStep } from '../../src/schedule/steps/step-data.ts'
import { pair, run } from '../support/kernel2.ts'
import { FORMATS } from '../support/program-parts.ts'
import { diagnosticOf, refusal as refused } from '../support/refusal.ts'
import { at, buffer, expr, kernel2, loop, reduce, store } from '../support/stage2-builders.ts'
import {
  boundNests,
  elementwise,
  featureMajor,
  fourWide,
  rowBlocks,
  rowList,
  rowProduct,
  rowSums,
  twoNests,
  twoPhases,
} from '../support/stage2-samples.ts'
import { ILLEGAL } from './legality-cases.ts'

const refusal = (kernel: Kernel2, ...steps: LoopStep[]): Diagnostic => refused(() => replay(kernel, steps))

const split = (loop: string, by: number, into?: [string, string]): LoopStep => ({
  kind: 'split',
  loop,
  by,
  into,
})
const bind = (loop: string, to: 'block.x' | 'block.y' | 'thread.x' | 'thread.y'): LoopStep => ({
  kind: 'bind',
  bindings: [{ loop, to }],
})
const serpentine = (loop: string, by: number): LoopStep => ({ kind: 'serpentine', loop, by })
const reverse = (loop: string): LoopStep => ({ kind: 'reverse', loop })
const reorder = (...loops: string[]): LoopStep => ({ kind: 'reorder', loops })

/** `S[i] = X[i] + S[i - 1]` in all but name: each iteration reads what the one before wrote. */
const chain = kernel2(
  'chain',
  ['m'],
  [buffer('S', [add(expr('m'), expr(1)), 4], 'inout')],
  [
    loop('i', 'm', [
      loop('f', 4, [
        store(at('S', [add(expr('i'), expr(1)), 'f']), add(at('S', ['i', 'f']), at('S', ['i', 'f']))),
      ]),
    ]),
  ],
)

/** A tuple reduction over a dense row. */
const tuple = kernel2(
  'tuple',
  ['m'],
  [buffer('X', ['m', 8], 'in'), buffer('s', ['m'], 'out'), buffer('t', ['m'], 'out')],
  [
    loop('i', 'm', [
      loop(
        'k',
        8,
        [
          {
            kind: 'reduce',
            reducer: pair,
            targets: [at('s', ['i']), at('t', ['i'])],
            values: [at('X', ['i', 'k']), at('X', ['i', 'k'])],
            init: true,
            atomic: false,
          },
        ],
        { reduce: true },
      ),
    ]),
  ],
)

/** A read that only happens where a condition holds, and two reads of different elements. */
const guarded = kernel2(
  'guarded',
  ['m'],
  [buffer('X', ['m', 8], 'in'), buffer('Y', ['m', 8], 'out')],
  [
    loop('i', 'm', [
      loop('f', 8, [
        store(at('Y', ['i', 'f']), select(lt(expr('f'), expr(4)), at('X', ['i', 'f']), at('Y', ['i', 'f']))),
      ]),
    ]),
  ],
)
/** `X[i]` is there where `i + f < d`, which is asked first. */
const asking = kernel2(
  'asking',
  ['m', 'd'],
  [buffer('X', ['d'], 'in'), buffer('Y', ['m', 4], 'out')],
  [
    loop('i', 'm', [
      loop('f', 4, [store(at('Y', ['i', 'f']), 1)], {
        guards: [lt(add(expr('i'), expr('f')), expr('d')), lt(constant(0, 'f32'), at('X', ['i']))],
      }),
    ]),
  ],
)
const twoReads = kernel2(
  'reads',
  ['m'],
  [buffer('X', ['m', 8], 'in'), buffer('Y', ['m', 8], 'out')],
  [loop('i', 'm', [loop('f', 8, [store(at('Y', ['i', 'f']), add(at('X', ['i', 'f']), at('X', ['i', 0])))])])],
)

/** `y[idx[i]] += X[i]`: iterations may meet in one element. */
const scatter = kernel2(
  'scatter',
  ['m', 'n'],
  [buffer('idx', ['m'], 'in', { dtype: 'i32' }), buffer('X', ['m'], 'in'), buffer('y', ['n'], 'inout')],
  [loop('i', 'm', [reduce(at('y', [at('idx', ['i'], 'index')]), '+', at('X', ['i']), {})], { reduce: true })],
)

/** What `produce` reads is written between it and what reads its results. */
const overwritten = kernel2(
  'overwritten',
  ['m'],
  [buffer('X', ['m'], 'inout'), buffer('T', ['m'], 'local'), buffer('y', ['m'], 'out')],
  [
    loop('a', 'm', [store(at('T', ['a']), at('X', ['a']))], { nest: 'produce', name: 'i' }),
    loop('b', 'm', [store(at('X', ['b']), 0)], { nest: 'clear', name: 'i' }),
    loop('c', 'm', [store(at('y', ['c']), at('T', ['c']))], { nest: 'consume', name: 'i' }),
  ],
)

/** Which elements are updated depends on what is combined, and they are not begun here. */
const triangle = kernel2(
  'triangle',
  ['m', 'n'],
  [buffer('X', ['n'], 'in'), buffer('Y', ['m', 8], 'inout')],
  [
    loop('i', 'm', [
      loop(
        'r',
        'n',
        [
          loop('e', 8, [reduce(at('Y', ['i', 'e']), '+', at('X', ['r']), {})], {
            guards: [lt(add(expr('r'), expr('e')), expr(5))],
          }),
        ],
        { reduce: true },
      ),
    ]),
  ],
)

/** What comes next is read before it changes. */
const ahead = kernel2(
  'ahead',
  ['m'],
  [buffer('X', ['m'], 'in'), buffer('S', [add(expr('m'), expr(1))], 'inout'), buffer('y', ['m'], 'out')],
  [
    loop('i', 'm', [
      store(at('S', ['i']), at('X', ['i'])),
      store(at('y', ['i']), at('S', [add(expr('i'), expr(1))])),
    ]),
  ],
)

/** One place of a row is written, all of the row is read, and rows are those of other iterations too. */
const diagonal = add(expr('i'), expr('k'))
const diagonals = kernel2(
  'diagonals',
  ['m'],
  [buffer('S', [add(expr('m'), expr(4)), 4], 'inout'), buffer('y', ['m', 4], 'out')],
  [
    loop('i', 'm', [
      loop('k', 4, [
        store(at('S', [diagonal, 'k']), 1),
        loop('e', 4, [reduce(at('y', ['i', 'k']), '+', at('S', [diagonal, 'e']), { init: true })], {
          reduce: true,
        }),
      ]),
    ]),
  ],
)

const cases: readonly (readonly [string, Kernel2, readonly LoopStep[]])[] = [
  ['unknown-loop', rowSums, [split('q', 8)]],
  ['consumed-loop', rowSums, [split('i', 8), split('i', 4)]],
  ['ambiguous-loop', twoNests, [split('i', 8)]],
  ['bad-factor', rowSums, [split('i', 0)]],
  ['bad-factor', rowSums, [split('i', 2.5)]],
  ['name-taken', rowSums, [split('i', 8, ['j', 'ii'])]],
  ['bad-name', rowSums, [split('i', 8, ['1x', 'ii'])]],
  ['not-serial', rowSums, [bind('i', 'block.x'), split('i', 8)]],
  ['not-rectangular', rowSums, [{ kind: 'fuse', loops: ['i', 'j'] }]],
  ['not-adjacent', featureMajor, [{ kind: 'fuse', loops: ['f', 'i'] }]],
  ['mixed-reduction', rowProduct, [{ kind: 'fuse', loops: ['j', 'f'] }]],
  ['not-rectangular', rowProduct, [reorder('j', 'i')]],
  ['not-nested', twoNests, [reorder('produce.i', 'consume.i')]],
  ['not-perfect', twoPhases, [reorder('i', 'produce.k')]],
  ['order-matters', chain, [reorder('f', 'i')]],
  ['order-matters', chain, [bind('i', 'block.x')]],
  ['order-matters', diagonals, [bind('i', 'block.x')]],
  ['order-matters', ahead, [{ kind: 'fission', loop: 'i', after: 1 }]],
  ['not-a-producer', twoNests, [{ kind: 'compute_at', nest: 'consume', at: 'produce.i', recompute: true }]],
  ['too-large', twoNests, [{ kind: 'compute_at', nest: 'produce', at: 'consume.i', scope: 'register' }]],
  ['nothing-to-separate', rowSums, [split('i', 1), { kind: 'peel', loop: 'ii' }]],
  ['not-serial', rowSums, [bind('i', 'block.x'), { kind: 'peel', loop: 'i' }]],
  ['bad-factor', rowSums, [serpentine('i', 0)]],
  ['bad-factor', rowSums, [{ kind: 'unroll', loop: 'i', by: 0 }]],
  ['order-matters', chain, [serpentine('i', 4)]],
  ['order-matters', chain, [reverse('i')]],
  ['order-matters', overwritten, [{ kind: 'compute_at', nest: 'produce', at: 'consume.i' }]],
  ['not-serial', rowSums, [{ kind: 'unroll', loop: 'i', by: 2 }, serpentine('i', 4)]],
  ['not-serial', rowSums, [{ kind: 'unroll', loop: 'i', by: 2 }, reverse('i')]],
  ['bad-arguments', elementwise, [{ kind: 'tile', loops: ['i', 'f'], by: [8] }]],
  ['extent-not-known', rowProduct, [bind('j', 'block.x')]],
  ['extent-not-constant', rowProduct, [bind('i', 'thread.x')]],
  ['axis-taken', rowProduct, [bind('i', 'block.x'), bind('f', 'block.x')]],
  ['block-not-outermost', rowProduct, [bind('f', 'block.x')]],
  ['too-many-threads', elementwise, [split('i', 2048), bind('ii', 'thread.x')]],
  ['blocks-combine', scatter, [bind('i', 'block.x')]],
  ['extent-not-constant', rowSums, [{ kind: 'unroll', loop: 'j' }]],
  ['too-many-copies', elementwise, [split('f', 4096), { kind: 'unroll', loop: 'fi' }]],
  ['bad-lanes', rowProduct, [{ kind: 'vectorize', loop: 'f' }]],
  ['not-innermost', elementwise, [split('i', 4), { kind: 'vectorize', loop: 'ii' }]],
  ['reduction-loop', rowSums, [split('j', 4), { kind: 'vectorize', loop: 'ji' }]],
  ['not-innermost', fourWide, [{ kind: 'vectorize', loop: 'f' }, reorder('f', 'i')]],
  ['unknown-buffer', rowSums, [{ kind: 'atomic', buffer: 'z' }]],
  ['no-reduction', elementwise, [{ kind: 'atomic', buffer: 'Y' }]],
  ['no-atomics', tuple, [{ kind: 'atomic', buffer: 's' }]],
  ['not-read', twoNests, [{ kind: 'cache_read', buffer: 'X', at: 'consume.i', scope: 'register' }]],
  ['extent-not-constant', rowProduct, [{ kind: 'cache_read', buffer: 'B', at: 'i', scope: 'shared' }]],
  ['conditional-read', guarded, [{ kind: 'cache_read', buffer: 'X', at: 'i', scope: 'register' }]],
  ['conditional-read', asking, [{ kind: 'cache_read', buffer: 'X', at: 'i', scope: 'register' }]],
  ['different-elements', twoReads, [{ kind: 'cache_read', buffer: 'X', at: 'i', scope: 'register' }]],
  ['written-too', guarded, [{ kind: 'cache_read', buffer: 'Y', at: 'f', scope: 'register' }]],
  ['read-too', guarded, [{ kind: 'cache_write', buffer: 'Y', at: 'f', scope: 'register' }]],
  ['guard-not-decidable', triangle, [{ kind: 'cache_write', buffer: 'Y', at: 'i', scope: 'register' }]],
  ['not-written', rowSums, [{ kind: 'cache_write', buffer: 'A', at: 'i', scope: 'register' }]],
  [
    'too-large',
    twoReads,
    [split('i', 512), { kind: 'cache_write', buffer: 'Y', at: 'io', scope: 'register' }],
  ],
  [
    'registers-of-other-threads',
    rowProduct,
    [{ kind: 'cache_write', buffer: 'C', at: 'i', scope: 'register' }, bind('f', 'thread.x')],
  ],
  ['no-box', featureMajor, [{ kind: 'cache_read', buffer: 'A', at: 'j', scope: 'register', by: 2 }]],
  ['bad-vector', fourWide, [{ kind: 'cache_read', buffer: 'X', at: 'i', scope: 'shared', by: 8 }]],
  ['bad-vector', everySecond(), [{ kind: 'cache_read', buffer: 'X', at: 'i', scope: 'shared', by: 2 }]],
  ['bad-stride', fourWide, [{ kind: 'cache_read', buffer: 'X', at: 'i', scope: 'shared', stride: 3 }]],
  ['no-rows', fourWide, [{ kind: 'cache_read', buffer: 'X', at: 'i', scope: 'shared', transposed: true }]],
  ['no-copies', rowProduct, [{ kind: 'pipeline', loop: 'j', by: 2 }]],
  ['bad-factor', rowProduct, [{ kind: 'pipeline', loop: 'j', by: 0 }]],
  ['not-blocks', rowSums, [{ kind: 'cluster', loop: 'i', by: 2 }]],
  ['not-blocks', rowSums, [bind('i', 'block.y'), { kind: 'cluster', loop: 'i', by: 2 }]],
  ['not-whole', rowSums, [bind('i', 'block.x'), { kind: 'cluster', loop: 'i', by: 2 }]],
  ['not-whole', rowBlocks, [{ kind: 'cluster', loop: 'i', by: 3 }]],
  ['bad-factor', rowBlocks, [{ kind: 'cluster', loop: 'i', by: 16 }]],
  ['bad-factor', rowBlocks, [{ kind: 'cluster', loop: 'i', by: 0 }]],
  [
    'in-clusters',
    boundNests,
    [
      { kind: 'require', size: 'm', relation: 'multiple', by: 2 },
      { kind: 'cluster', loop: 'i', by: 2 },
      { kind: 'merge', nests: ['double', 'sum'] },
    ],
  ],
  ['unknown-nest', twoNests, [{ kind: 'compute_at', nest: 'make', at: 'consume.i' }]],
  ['other-elements', firstRow(), [{ kind: 'compute_at', nest: 'consume', at: 'produce.i' }]],
  ['not-before', twoPhases, [{ kind: 'compute_at', nest: 'consume', at: 'i' }]],
  ['output-needed', outputs(), [{ kind: 'compute_at', nest: 'produce', at: 'consume.i' }]],
  ['computed-again', columns(), [{ kind: 'compute_at', nest: 'produce', at: 'consume.k' }]],
  ['nothing-to-separate', rowSums, [{ kind: 'fission', loop: 'i', after: 1 }]],
  ['unknown-nest', twoPhases, [{ kind: 'fission', loop: 'i', after: 'make' }]],
  ['extent-not-known', rowSums, [{ kind: 'rfactor', loop: 'j' }]],
  ['no-reduction', rowSums, [{ kind: 'rfactor', loop: 'i' }]],
]

/** `Y[i, f] = X[i, 2 * f]`. */
function everySecond(): Kernel2 {
  const each = loop('f', 4, [store(at('Y', ['i', 'f']), at('X', ['i', mul(int(2), expr('f'))]))])
  const buffers = [buffer('X', ['m', 8], 'in'), buffer('Y', ['m', 4], 'out')]
  return kernel2('everySecond', ['m'], buffers, [loop('i', 'm', [each])])
}

/** `twoNests` whose second reads one row of the intermediate alone. */
function firstRow(): Kernel2 {
  const sum = loop('k2', 'd', [reduce(at('y', ['i2']), '+', at('T', [0, 'k2']))], {
    name: 'k',
    nest: 'consume',
    reduce: true,
  })
  return { ...twoNests, body: [twoNests.body[0]!, loop('i2', 'm', [sum], { name: 'i', nest: 'consume' })] }
}

/** `twoNests` whose intermediate leaves the kernel. */
function outputs(): Kernel2 {
  return { ...twoNests, buffers: twoNests.buffers.map((b) => (b.name === 'T' ? { ...b, role: 'out' } : b)) }
}

/** Every row of the consumer reads the same elements. */
function columns(): Kernel2 {
  return kernel2(
    'columns',
    ['m', 'd'],
    [buffer('X', ['d'], 'in'), buffer('T', ['d'], 'local'), buffer('y', ['m'], 'out')],
    [
      loop('k', 'd', [store(at('T', ['k']), mul(at('X', ['k']), at('X', ['k'])))], { nest: 'produce' }),
      loop(
        'i',
        'm',
        [
          loop('k2', 'd', [reduce(at('y', ['i']), '+', at('T', ['k2']))], {
            name: 'k',
            nest: 'consume',
            reduce: true,
          }),
        ],
        { nest: 'consume' },
      ),
    ],
  )
}

describe('rejections', () => {
  test.each(cases)('%s', (code, kernel, steps) => {
    const d = refusal(kernel, ...steps)
    expect(d.code).toBe(`schedule/${code}`)
    expect(d.message).toContain(`(step ${steps.length}: `)
  })

  test.each([
    ['no step', null],
    ['an unknown kind', { kind: 'wish' }],
    ['a missing field', { kind: 'split', loop: 'i' }],
    ['no loop', { kind: 'split', loop: null, by: 2 }],
    ['a wrong field', { kind: 'bind', bindings: [{ loop: 'i', to: 'warp' }] }],
    ['an inherited name', { kind: 'toString' }],
  ])('of %s from untyped callers', (_, step) => {
    expect(refusal(rowSums, step as LoopStep).code).toBe('schedule/bad-step')
  })

  test('print the loops, with the wrong ones marked, and the legal ones', () => {
    const d = refusal(rowProduct, split('i', 8), reorder('j', 'ii'))
    expect(d).toMatchInlineSnapshot(`
      {
        "code": "schedule/not-rectangular",
        "expected": "a loop whose extent is the same in every iteration of ii",
        "message": "reorder: the extent of j, j_indptr[io * 8 + ii + 1] - j_indptr[io * 8 + ii], depends on ii (step 2: reorder (j, ii))",
        "notes": [
          "  for io in 0..ceildiv(m, 8)
      >   for ii in 0..8  where io * 8 + ii < m
      >     for j in 0..j_indptr[io * 8 + ii + 1] - j_indptr[io * 8 + ii]  reduce
              for f in 0..32
                C[io * 8 + ii, f] += A[j_indptr[io * 8 + ii] + j] * B[j_indices[j_indptr[io * 8 + ii] + j], f]  init",
        ],
      }
    `)
  })

  test.each([
    ['rfactor', 0, { kind: 'rfactor', loop: 'r' }],
    ['combine of a row', 0, { kind: 'combine', buffer: 'y' }],
    ['combine of a row list', at('idx', ['i'], 'index'), { kind: 'combine', buffer: 'y' }],
  ] as const)('of %s state the reduction loop that an extent depends on', (_, row, step) => {
    const sum = loop('p', 'r', [reduce(at('y', [row, 'p']), '+', at('X', [row === 0 ? 0 : 'i', 'r']))])
    const inner = loop('r', 4, [sum], { reduce: true })
    const rows = [buffer('X', ['m', 4], 'in'), buffer('y', ['n', 4], 'inout')]
    const body = row === 0 ? inner : loop('i', 'm', [inner], { reduce: true })
    const k = kernel2('stairs', ['m', 'n'], [buffer('idx', ['m'], 'in', { dtype: 'i32' }), ...rows], [body])
    expect(refusal(k, step)).toMatchObject({
      code: 'schedule/not-rectangular',
      message: expect.stringContaining('partial results: the extent of p, r, depends on r ('),
      expected: 'a loop whose extent is the same in every iteration of r',
      hint: 'use atomic instead',
    })
  })

  test('state the fate of a loop', () => {
    const d = refusal(rowSums, split('i', 8), bind('i', 'block.x'))
    expect(d.message).toMatchInlineSnapshot(`"i was split into io, ii by step 1 (step 2: bind i to block.x)"`)
    expect(d.expected).toMatchInlineSnapshot(`"io or ii"`)
  })

  test('list the nests if one is unknown, and what starts elements anew', () => {
    expect(refusal(twoNests, { kind: 'merge', nests: ['make', 'consume'] })).toMatchObject({
      expected: 'produce or consume',
      lookup: { name: 'make', candidates: ['produce', 'consume'] },
    })
    const twice = kernel2(
      'twice',
      ['m'],
      [buffer('X', ['m'], 'in'), buffer('y', [add(expr('m'), int(1))], 'out')],
      [
        loop('i', 'm', [
          reduce(at('y', ['i']), '+', at('X', ['i'])),
          reduce(at('y', [add(expr('i'), int(1))]), '+', at('X', ['i'])),
        ]),
      ],
    )
    expect(refusal(twice, bind('i', 'block.x')).message).toMatch(/every iteration starts elements of y anew/)
  })

  test.each([
    ['+', '+', undefined],
    ['+', 'max', 'writes'],
  ] as const)('nests that combine by %s and %s', (a, b, kind) => {
    const nestOf = (op: typeof a | typeof b) =>
      loop('i', 'm', [reduce(at('y', [0]), op, at('X', ['i']), {})], { nest: op, reduce: true })
    expect(inAnyOrder(nestOf(a), nestOf(b))?.kind).toBe(kind)
  })

  test('list the names if one is ambiguous, and the nearest if it is unknown', () => {
    expect(refusal(twoNests, split('k', 8)).hint).toBe('write `produce.k` or `consume.k`')
    expect(refusal(twoNests, split('produce.q', 8)).lookup).toMatchInlineSnapshot(`
      {
        "candidates": [
          "produce.i",
          "produce.k",
          "consume.i",
          "consume.k",
        ],
        "name": "produce.q",
      }
    `)
  })
})

test.each(ILLEGAL)('$code: $steps', ({ code, kernel, steps }) => {
  const program = parseProgram(`${FORMATS}\n${kernel}\nschedule k.s { ${steps} }`)
  expect(refused(() => void program.kernel('k').schedule('s').compilation.plan).code).toBe(`schedule/${code}`)
})

test('a nest is computed at an element to which all of its writes belong', () => {
  const T = (j: Expr) => at('T', ['o', j])
  const [j, next] = [expr('j'), add(expr('j'), expr(1))]
  const sums = loop('j', 3, [store(T(j), add(T(j), T(next)))])
  const kernel = kernel2(
    'sums',
    ['m'],
    [buffer('X', [4], 'in'), buffer('T', ['m', 4], 'local'), buffer('Y', ['m'], 'out')],
    [
      loop('o', 'm', [loop('i', 4, [store(T(expr('i')), at('X', ['i']))]), sums], { nest: 'make' }),
      loop('k', 'm', [store(at('Y', ['k']), at('T', ['k', expr(2)]))], { nest: 'use' }),
    ],
  )
  const data = {
    params: new Map([['m', 1]]),
    arrays: new Map([
      ['X', [1, 2, 3, 4]],
      ['T', [9, 9, 9, 9]],
      ['Y', [9]],
    ]),
  }
  const moved = replay(kernel, [{ kind: 'compute_at', nest: 'make', at: 'use.k' }]).kernel
  expect(run(moved, data)).toEqual({ Y: [7] })
})

test('loops are fully unrolled up to 1024 copies', () => {
  const long = (extent: number) => () =>
    replay(
      kernel2('k', [], [buffer('X', [extent], 'out')], [loop('i', extent, [store(at('X', ['i']), 1)])]),
      [{ kind: 'unroll', loop: 'i' }],
    )
  long(1024)()
  expect(refused(long(1025)).code).toBe('schedule/too-many-copies')
})

test('a block has at most 1024 threads', () => {
  const threads = (by: number): LoopStep[] => [split('i', by), bind('ii', 'thread.x')]
  replay(elementwise, threads(1024))
  replay(elementwise, [...threads(256), split('f', 4), bind('fi', 'thread.y')])
  expect(refusal(elementwise, ...threads(1025)).code).toBe('schedule/too-many-threads')
  expect(refusal(elementwise, ...threads(512), split('f', 4), bind('fi', 'thread.y')).code).toBe(
    'schedule/too-many-threads',
  )
})

describe('nests in one launch', () => {
  const merge = (...nests: string[]): LoopStep => ({ kind: 'merge', nests })

  test('are at least two existing nests, bound to blocks', () => {
    expect(refusal(boundNests, merge('double')).code).toBe('schedule/nothing-to-merge')
    expect(refusal(boundNests, merge('sum', 'sum')).code).toBe('schedule/nothing-to-merge')
    expect(refusal(boundNests, merge('sum', 'produce')).code).toBe('schedule/unknown-nest')
    const blocks = (loop: string): LoopStep => bind(loop, 'block.x')
    const dependent = refusal(twoNests, blocks('produce.i'), blocks('consume.i'), merge('produce', 'consume'))
    expect(dependent.code).toBe('schedule/nests-meet')
    expect(dependent.message).toContain('one reads T, which the other writes')
  })

  test('may be reordered with others that combine into the same elements, in any order', () => {
    const scaled = (name: string, scale: number) =>
      `iterate ${name} [i, j] as RS { y[j] += ${scale} * A[i, j] }`
    const { loops } = parseProgram(`kernel thrice(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis c = dense_fixed(n)
      buffer A: i32[i, j] in
      buffer y: i32[c] out
      ${scaled('one', 1)}
      ${scaled('two', 2)}
      ${scaled('three', 3)}
    }
    schedule thrice.s {
      atomic y
      bind one.i to block.x
      bind two.i to block.x
      bind three.i to block.x
      merge (one, three)
    }`)
      .kernel()
      .schedule('s').compilation
    expect(loops.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : []))).toEqual(['merged', 'two'])
  })

  test('have loops on blocks', () => {
    const loops: Kernel2 = {
      ...boundNests,
      body: [boundNests.body[0]!, loop('z', 'm', [store(at('y', ['z']), 1)], { nest: 'ones' })],
    }
    expect(refusal(loops, merge('double', 'ones')).code).toBe('schedule/not-on-blocks')
  })

  test('cannot be cached or bound to further blocks together', () => {
    expect(
      refusal(boundNests, merge('double', 'sum'), {
        kind: 'cache_write',
        buffer: 'X2',
        at: 'merged.block',
        scope: 'register',
      }).code,
    ).toBe('schedule/merged-loop')
  })
})

describe('nests in common loops', () => {
  const join = (at: string, ...nests: string[]): LoopStep => ({ kind: 'join', nests, at })
  const TEXT = (first: string, second: string, steps: string): string => `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    axis l = dense_fixed(4)
    buffer L: i32[i] in
    buffer A: i32[i, j] inout
    buffer w: i32[l] inout
    buffer y: i32[i] inout
    buffer z: i32[j] inout
    iterate first ${first}
    iterate second ${second}
  }
  schedule k.s { ${steps} }`
  const of = (...texts: Parameters<typeof TEXT>): string | undefined => {
    try {
      void parseProgram(TEXT(...texts))
        .kernel()
        .schedule('s').compilation.loops
      return undefined
    } catch (e) {
      return (e as SptError).diagnostics[0]!.code
    }
  }
  const ROWS = '[i, j] as SR { y[i] += A[i, j] }'
  const SUMS = '[i, j] as RS { z[j] += A[i, j] }'

  test('are at least two, one with the loop, which is perfectly nested', () => {
    expect(refusal(twoNests, join('produce.i', 'produce')).code).toBe('schedule/nothing-to-join')
    expect(refusal(twoNests, join('produce.i', 'produce', 'make')).code).toBe('schedule/unknown-nest')
    expect(refusal(fourWide, join('f', 'main', 'main')).code).toBe('schedule/nothing-to-join')
    expect(of(ROWS, SUMS, 'cache_write y at first.i in register join (first, second) at first.j')).toBe(
      'schedule/not-perfect',
    )
    expect(of('[i] as S { y[i] += L[i] }', ROWS, 'join (first, second) at second.j')).toBe(
      'schedule/not-perfect',
    )
    const third = (steps: string): string | undefined => of(ROWS, `${ROWS} iterate third ${ROWS}`, steps)
    expect(third('join (first, third) at second.i')).toBe('schedule/not-joined')
    // The first of the loops inside of a common one is not all that is there.
    const twice = (at: string): string => `join (first, second) at first.i join (joined, third) at ${at}`
    expect(third(twice('third.j'))).toBe('schedule/not-perfect')
    expect(third(twice('third.i'))).toBeUndefined()
    const boundAnd: Kernel2 = {
      ...boundNests,
      body: [
        ...boundNests.body,
        loop('r', 'm', [store(at('X2', ['r', 0]), at('X', ['r', 1]))], { nest: 'other' }),
      ],
    }
    const merged: LoopStep = { kind: 'merge', nests: ['double', 'sum'] }
    expect(refusal(boundAnd, merged, join('merged.block', 'merged', 'other')).code).toBe(
      'schedule/merged-loop',
    )
  })

  test('have equal iterations and modes', () => {
    const at = (steps: string, second = ROWS): string | undefined =>
      of(ROWS, second, `${steps} join (first, second) at second.i`)
    expect(at('')).toBeUndefined()
    expect(at('', SUMS)).toBeUndefined()
    expect(at('', '[i, j] as SR where (L[i] > 0) { y[i] += A[i, j] }')).toBe('schedule/not-alike')
    expect(at('bind second.i to block.x')).toBe('schedule/not-alike')
    expect(at('bind first.i to block.x')).toBe('schedule/not-alike')
    expect(at('bind first.i to block.x bind second.i to block.x')).toBeUndefined()
    expect(at('unroll first.i by 2 unroll second.i by 2')).toBe('schedule/not-alike')
    expect(at('unroll first.i by 2')).toBe('schedule/not-alike')
    expect(at('unroll second.i by 2')).toBe('schedule/not-alike')
    const FOUR = '[l] as S { w[l] += 1 }'
    const onThreads = (steps: string): string | undefined =>
      of(FOUR, FOUR, `${steps} join (first, second) at first.l`)
    expect(onThreads('bind first.l to thread.x')).toBe('schedule/not-alike')
    expect(onThreads('bind first.l to thread.x bind second.l to thread.y')).toBe('schedule/not-alike')
    expect(onThreads('bind first.l to thread.x bind second.l to thread.x')).toBeUndefined()
    const longer = (least: number): string => `[i, j] as SR where (L[i] > ${least}) { y[i] += A[i, j] }`
    const under = (second: string): string | undefined =>
      of(longer(0), second, 'join (first, second) at first.i')
    expect(under(longer(0))).toBeUndefined()
    expect(under(longer(1))).toBe('schedule/not-alike')
    expect(of(ROWS, '[j, i] as SR { z[j] += A[i, j] }', 'join (first, second) at first.i')).toBe(
      'schedule/not-alike',
    )
  })

  test('have no conflicts in other iterations', () => {
    const both = (first: string, second: string, steps = ''): string | undefined =>
      of(first, second, `${steps} join (first, second) at first.i`)
    expect(both(SUMS, SUMS)).toBeUndefined()
    expect(both(SUMS, '[i, j] as RS { z[j] max= A[i, j] }')).toBe('schedule/order-matters')
    expect(both(ROWS, '[i] as S { y[m - 1 - i] += L[i] }')).toBe('schedule/order-matters')
    expect(both('[i] as R { y[0] += L[i] }', '[i] as R { y[L[i]] += 1 }')).toBeUndefined()
    expect(both(ROWS, '[i] as S { y[i] = y[i] + L[i] }')).toBeUndefined()
    // In parallel they may where each is an atomic update, and loops that no common element is in have no say.
    const [up, down] = ['[i] as S { y[i] += L[i] }', '[i] as S { y[m - 1 - i] += L[i] }']
    const parallel = 'bind first.i to block.x bind second.i to block.x'
    expect(both(up, down, parallel)).toBe('schedule/order-matters')
    expect(both(up, down, `atomic y ${parallel}`)).toBeUndefined()
    expect(
      both(SUMS, ROWS.replace('SR', 'RS').replace('y[i]', 'z[j]'), `atomic z ${parallel}`),
    ).toBeUndefined()
    const around = (between: string): string | undefined =>
      of(ROWS, `${between} iterate third ${ROWS}`, 'join (first, third) at first.i')
    expect(around('[i] as S { y[i] = 2 * y[i] }')).toBe('schedule/order-matters')
    expect(around(SUMS)).toBeUndefined()
    const inner = (second: string): string | undefined =>
      of('[i, j] as SS { A[i, j] += L[i] }', second, 'join (first, second) at first.j')
    expect(inner('[i, j] as SS { A[i, j] += 1 }')).toBeUndefined()
    expect(inner('[i, j] as SS { A[i, n - 1 - j] += 1 }')).toBe('schedule/order-matters')
    expect(inner('[i, j] as SS { A[m - 1 - i, j] += 1 }')).toBe('schedule/order-matters')
  })

  test('keep their initialisation: a later one in a common reduction loop would be lost', () => {
    const nest = (name: string, over: 'i' | 'k', init: boolean) => {
      const [i, k] = [`${name}_i`, `${name}_k`]
      const own = reduce(at('y', [i]), '+', at('X', [i, k]), { init })
      return over === 'i'
        ? loop(i, 'm', [loop(k, 'd', [own], { nest: name, name: 'k', reduce: true })], {
            nest: name,
            name: 'i',
          })
        : loop(k, 'd', [loop(i, 'm', [own], { nest: name, name: 'i' })], {
            nest: name,
            name: 'k',
            reduce: true,
          })
    }
    const starts = (over: 'i' | 'k', first: boolean, second: boolean): string | undefined => {
      const buffers = [buffer('X', ['m', 'd'], 'in'), buffer('y', ['m'], 'out')]
      const kernel = kernel2('again', ['m', 'd'], buffers, [
        nest('first', over, first),
        nest('second', over, second),
      ])
      return diagnosticOf(() => replay(kernel, [join(`first.${over}`, 'first', 'second')]))?.code
    }
    expect(starts('k', true, true)).toBe('schedule/order-matters')
    expect(starts('k', false, true)).toBe('schedule/order-matters')
    expect(starts('k', true, false)).toBeUndefined()
    expect(starts('i', true, true)).toBeUndefined()
    expect(starts('i', true, false)).toBeUndefined()
  })

  test('write one tile if they combine the same elements by one reducer', () => {
    const cached = (second: string, steps = ''): string | undefined =>
      of(ROWS, second, `${steps} join (first, second) at first.i cache_write y at joined.i in register`)
    expect(cached(ROWS)).toBeUndefined()
    expect(cached('[i, j] as SR { y[i] max= A[i, j] }')).toBe('schedule/several-writers')
    expect(cached('[i] as S { y[i] = L[i] }')).toBe('schedule/several-writers')
    expect(cached('[i, j] as SR { if (L[i] > 0) { y[i] += A[i, j] } }')).toBe('schedule/several-writers')
    expect(cached(ROWS, 'unroll second.j by 2')).toBeUndefined()
  })
})

describe('partial results', () => {
  const combine: LoopStep = { kind: 'combine', buffer: 'y' }

  test('are of global buffers with reductions, before atomics and binding', () => {
    expect(refusal(elementwise, { kind: 'combine', buffer: 'Y' }).code).toBe('schedule/no-reduction')
    expect(refusal(rowList, { ...combine, nest: 'other' }).message).toContain(
      'nothing in other reduces into y',
    )
    expect(refusal(rowList, { kind: 'atomic', buffer: 'y' }, combine).code).toBe('schedule/atomic-already')
    // Also in a nest without partial results, whose iterations update different elements.
    const apart = parseProgram(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis e = dense_fixed(n)
  buffer X: f32[i, e] in
  buffer y: f32[i] out
  iterate first [i, e] as SR { if (e == 0) { y[i] += X[i, e] } }
}`).kernel()
    expect(refused(() => apart.atomic('y').combine('y').compilation.plan).code).toBe(
      'schedule/atomic-already',
    )
  })

  test('have a dimension for each loop that lists elements', () => {
    const scattered = kernel2(
      'scattered',
      ['m', 'n', 'j_count'],
      [...rowSums.buffers.filter((b) => b.name !== 'y'), buffer('y', ['n'], 'out')],
      [
        loop(
          'i',
          'm',
          [
            loop(
              'j',
              add(at('j_indptr', ['i'], 'index'), expr(1)),
              [reduce(at('y', [at('j_indices', ['j'], 'index')]), '+', at('A', ['j']), { init: false })],
              { reduce: true },
            ),
          ],
          { reduce: true },
        ),
      ],
    )
    expect(refusal(scattered, combine).code).toBe('schedule/extent-not-known')
  })
})
