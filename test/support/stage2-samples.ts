/** Small kernels for the documentation examples of the primitives. */

import { add, ceildiv, constant, lt, mul, sub } from '../../src/ir/expressions/expr.ts'
import type { Kernel2 } from '../../src/ir/statements/loops.ts'
import { alloc, fill } from '../../src/ir/statements/statement-builders.ts'
import { at, buffer, expr, kernel2, loop, reduce, store } from './stage2-builders.ts'

const position = add(at('j_indptr', ['i'], 'index'), expr('j'))
const length = sub(at('j_indptr', [add(expr('i'), expr(1))], 'index'), at('j_indptr', ['i'], 'index'))
const column = at('j_indices', [position], 'index')
const strip = add(mul(expr('jo'), expr(32)), expr('ji'))
const row = add(mul(expr('a'), expr(8)), expr('b'))
const rows = [
  buffer('j_indptr', [add(expr('m'), expr(1))], 'index', { positions: expr('j_count') }),
  buffer('j_indices', ['j_count'], 'index'),
]

/** Computes `y[i] = x[i]`, one element in each block. */
export const rowBlocks: Kernel2 = kernel2(
  'copy',
  [],
  [buffer('x', [8], 'in'), buffer('y', [8], 'out')],
  [loop('i', 8, [store(at('y', ['i']), at('x', ['i']))], { mode: { kind: 'bind', to: 'block.x' } })],
)

/** Computes `y[i] += A[i, j]` over compressed rows. */
export const rowSums: Kernel2 = kernel2(
  'rows',
  ['m', 'j_count'],
  [...rows, buffer('A', ['j_count'], 'in'), buffer('y', ['m'], 'out')],
  [loop('i', 'm', [loop('j', length, [reduce(at('y', ['i']), '+', at('A', [position]))], { reduce: true })])],
)

/** Computes `C[i, f] += A[i, j] * B[j, f]` over compressed rows, for 32 features. */
export const rowProduct: Kernel2 = kernel2(
  'rows',
  ['m', 'n', 'j_count'],
  [...rows, buffer('A', ['j_count'], 'in'), buffer('B', ['n', 32], 'in'), buffer('C', ['m', 32], 'out')],
  [
    loop('i', 'm', [
      loop(
        'j',
        length,
        [loop('f', 32, [reduce(at('C', ['i', 'f']), '+', mul(at('A', [position]), at('B', [column, 'f'])))])],
        { reduce: true },
      ),
    ]),
  ],
)

/** The kernel `rowProduct` with the feature loop outside of the reduction. */
export const featureMajor: Kernel2 = {
  ...rowProduct,
  body: [
    loop('i', 'm', [
      loop('f', 32, [
        loop(
          'j',
          length,
          [reduce(at('C', ['i', 'f']), '+', mul(at('A', [position]), at('B', [column, 'f'])))],
          {
            reduce: true,
          },
        ),
      ]),
    ]),
  ],
}

const doubled = (d: string | number): Kernel2 =>
  kernel2(
    'dense',
    d === 'd' ? ['m', 'd'] : ['m'],
    [buffer('X', ['m', d], 'in'), buffer('Y', ['m', d], 'out')],
    [
      loop('i', 'm', [
        loop('f', d, [store(at('Y', ['i', 'f']), add(at('X', ['i', 'f']), at('X', ['i', 'f'])))]),
      ]),
    ],
  )

/** Computes `Y[i, f] = X[i, f] + X[i, f]` over dense axes. */
export const elementwise: Kernel2 = doubled('d')
/** The kernel `elementwise` with four columns. */
export const fourWide: Kernel2 = doubled(4)

/** Computes `T[i, k] = X[i, k] * X[i, k]`, then `y[i] += T[i, k]`. */
export const twoNests: Kernel2 = kernel2(
  'two',
  ['m', 'd'],
  [buffer('X', ['m', 'd'], 'in'), buffer('T', ['m', 'd'], 'local'), buffer('y', ['m'], 'out')],
  [
    loop(
      'i',
      'm',
      [
        loop('k', 'd', [store(at('T', ['i', 'k']), mul(at('X', ['i', 'k']), at('X', ['i', 'k'])))], {
          nest: 'produce',
        }),
      ],
      { nest: 'produce' },
    ),
    loop(
      'i2',
      'm',
      [
        loop('k2', 'd', [reduce(at('y', ['i2']), '+', at('T', ['i2', 'k2']))], {
          name: 'k',
          nest: 'consume',
          reduce: true,
        }),
      ],
      { name: 'i', nest: 'consume' },
    ),
  ],
)

/** The kernel `twoNests` with both statements in one loop over the rows. */
export const twoPhases: Kernel2 = {
  ...twoNests,
  body: [
    loop('i', 'm', [
      loop('k', 'd', [store(at('T', ['i', 'k']), mul(at('X', ['i', 'k']), at('X', ['i', 'k'])))], {
        nest: 'produce',
      }),
      loop('k2', 'd', [reduce(at('y', ['i']), '+', at('T', ['i', 'k2']))], {
        name: 'k',
        nest: 'consume',
        reduce: true,
      }),
    ]),
  ],
}

/** The kernel `rowSums` with its reduction loop split by 32. */
export const columnSplit: Kernel2 = {
  ...rowSums,
  body: [
    loop('i', 'm', [
      loop(
        'jo',
        ceildiv(length, expr(32)),
        [
          loop(
            'ji',
            32,
            [reduce(at('y', ['i']), '+', at('A', [add(at('j_indptr', ['i'], 'index'), strip)]))],
            {
              reduce: true,
              guards: [lt(strip, length)],
            },
          ),
        ],
        { reduce: true },
      ),
    ]),
  ],
}

/**
 * Computes `X2 = X + X` with a block for each row, and in `y` the sums of the rows of `V` with a thread for each row.
 */
export const boundNests: Kernel2 = kernel2(
  'two',
  ['m', 'n', 'd'],
  [
    buffer('X', ['m', 32], 'in'),
    buffer('V', ['n', 'd'], 'in'),
    buffer('X2', ['m', 32], 'out'),
    buffer('y', ['n'], 'out'),
  ],
  [
    loop(
      'i',
      'm',
      [
        loop('k', 32, [store(at('X2', ['i', 'k']), add(at('X', ['i', 'k']), at('X', ['i', 'k'])))], {
          nest: 'double',
          mode: { kind: 'bind', to: 'thread.x' },
        }),
      ],
      { nest: 'double', mode: { kind: 'bind', to: 'block.x' } },
    ),
    loop(
      'a',
      ceildiv(expr('n'), expr(8)),
      [
        loop(
          'b',
          8,
          [
            loop('j', 'd', [reduce(at('y', [row]), '+', at('V', [row, 'j']))], {
              nest: 'sum',
              reduce: true,
            }),
          ],
          { nest: 'sum', guards: [lt(row, expr('n'))], mode: { kind: 'bind', to: 'thread.x' } },
        ),
      ],
      { nest: 'sum', mode: { kind: 'bind', to: 'block.x' } },
    ),
  ],
)

/** Computes `y[i_indices[i]] += A[i, j]` for a list of rows, which may repeat, with four elements each. */
export const rowList: Kernel2 = {
  ...kernel2(
    'list',
    ['m', 'i_count'],
    [
      buffer('i_indices', ['i_count'], 'index'),
      buffer('A', [mul(expr('i_count'), expr(4))], 'in'),
      buffer('y', ['m'], 'out'),
    ],
    [
      fill('y', constant(0, 'f32')),
      loop(
        'i',
        'i_count',
        [
          loop(
            'j',
            4,
            [
              reduce(
                at('y', [at('i_indices', ['i'], 'index')]),
                '+',
                at('A', [add(mul(expr('i'), expr(4)), expr('j'))]),
                {
                  init: false,
                },
              ),
            ],
            { reduce: true },
          ),
        ],
        { reduce: true },
      ),
    ],
  ),
  ascending: ['i_indices'],
}

/** Computes `y[i] += X[ko * 8 + k]`, with X staged in shared memory. */
export const stagedRows: Kernel2 = kernel2(
  'staged',
  ['m', 'n'],
  [buffer('X', [mul(expr('n'), expr(8))], 'in'), buffer('y', ['m'], 'inout')],
  [
    loop('i', 'm', [
      loop(
        'ko',
        'n',
        [
          alloc(buffer('Xs', [8], 'local', { scope: 'shared' })),
          loop('k2', 8, [store(at('Xs', ['k2']), at('X', [add(mul(expr('ko'), expr(8)), expr('k2'))]))], {
            name: 'k',
            nest: 'Xs',
          }),
          loop('k', 8, [reduce(at('y', ['i']), '+', at('Xs', ['k']), { init: false })], { reduce: true }),
        ],
        { reduce: true },
      ),
    ]),
  ],
)

/** Computes `C[rows[p], f] += A[p, f]` for a list of rows, with 4 features. */
export const listedRows: Kernel2 = kernel2(
  'listed',
  ['m', 'p_count'],
  [buffer('rows', ['p_count'], 'index'), buffer('A', ['p_count', 4], 'in'), buffer('C', ['m', 4], 'inout')],
  [
    loop(
      'p',
      'p_count',
      [
        loop('f', 4, [
          reduce(at('C', [at('rows', ['p'], 'index'), 'f']), '+', at('A', ['p', 'f']), { init: false }),
        ]),
      ],
      { reduce: true },
    ),
  ],
)
