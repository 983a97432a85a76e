/** What data can get wrong for tensors in parts: what is said, word for word. */
import { beforeAll, expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { type Built, coords, dense, devices, load, stored } from '../../src/node.ts'
import { reportOf } from '../../src/run/bind/results/format-report.ts'
import { FORMATS, KERNELS } from './programs.ts'

const program = await load(`${FORMATS}
format leaking over (i, j) {
  part near = csr where (i - j <= 1 and count(j by i) < 9)
  part far = csr where (i - j > 2)
}
format twice over (i, j) {
  part long = csr where (count(j by i) > 1)
  part wide = coo where (count(j by i) > 2)
  part rest = csr
}
format short over (i, j) {
  bucket i by length into 1, 2 as width {
    part rows_ell(width)
  }
}
${KERNELS}`)
const A = coords(
  [3, 4],
  [
    [0, 0, 0, 2],
    [0, 1, 3, 2],
  ],
  [1, 2, 3, 4],
)
const B = dense([4, 1], [1, 2, 3, 4])
const ints = (...xs: number[]): Int32Array => Int32Array.from(xs)
const floats = (...xs: number[]): Float32Array => Float32Array.from(xs)

const made = new Map<string, Built>()
beforeAll(async () => {
  const device = await devices.cpu()
  const k = program.kernel('multiply')
  for (const [name, ...args] of [
    ['csr'],
    ['hyb', 1, 1],
    ['vbr', 'rows', 'cols'],
    ['chosen', 'mask'],
    ['sell', 2, 4],
    ['leaking'],
    ['twice'],
    ['short'],
    ['bsr', 4],
    ['ell_at', 0],
  ] as const)
    made.set(name, await k.as('A', name, ...args).build(device))
})

const w1 = stored(
  [3, 4],
  { io_w1: { indptr: ints(0, 1), indices: ints(2) }, jo_w1: { indices: ints(2) } },
  floats(4),
)
const w2 = stored(
  [3, 4],
  { io_w2: { indptr: ints(0, 2), indices: ints(0, 0) }, jo_w2: { indices: ints(0, 1, 3, 4) } },
  floats(1, 2, 3, 0),
)
const sell = stored(
  [2, 4, 2, 4],
  { k: { indptr: ints(0, 3, 3) }, jo: { indices: ints(0, 2, 1, 4, 3, 4) } },
  floats(1, 4, 2, 0, 3, 0),
)

/** One block, of which a row lies beyond the matrix. */
const block = stored(
  [1, 1, 4, 4],
  { jo: { indptr: ints(0, 1), indices: ints(0) } },
  floats(1, 2, 0, 3, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0),
)

const CASES: readonly (readonly [string, string, NonNullable<RunInputs['tensors']>, string])[] = [
  [
    'a list that is missing',
    'vbr',
    { A, rows: [0, 3] },
    'bind/missing-list: vbr(rows, cols) needs the list cols, which is not bound',
  ],
  [
    'a list that begins late',
    'vbr',
    { A, rows: [1, 3], cols: [0, 4] },
    'bind/list: position 0 of the list rows is 1',
  ],
  [
    'a list that descends',
    'vbr',
    { A, rows: [0, 2, 1, 3], cols: [0, 4] },
    'bind/list: position 2 of the list rows is 1, after 2',
  ],
  [
    'a list that ends early',
    'vbr',
    { A, rows: [0, 3], cols: [0, 3] },
    'bind/list: the list cols ends with 3',
  ],
  ['an empty list', 'vbr', { A, rows: [], cols: [0, 4] }, 'bind/list: the list rows is empty'],
  [
    'a list of another type',
    'vbr',
    { A, rows: dense([2], [0, 3]), cols: [0, 4] },
    'bind/list: the list rows is bound to a dense tensor of type f64',
  ],
  [
    'a sparse list',
    'vbr',
    { A, rows: coords([2], [[0, 1]], ints(0, 3)), cols: [0, 4] },
    'bind/list: the list rows is bound to a coords tensor of type i32',
  ],
  [
    'a list of two dimensions',
    'vbr',
    { A, rows: dense([1, 2], ints(0, 3)), cols: [0, 4] },
    'bind/rank: rows is bound to a tensor of 2 dimensions; it is over [rows]',
  ],
  [
    'a set that is missing',
    'chosen',
    { A },
    'bind/missing-set: chosen(mask) needs the set mask, which is not bound',
  ],
  [
    'a set of another shape',
    'chosen',
    { A, mask: coords([4, 3], [[0], [0]]) },
    'bind/size-mismatch: size m is 3 by dimension 0 of A, and 4 by dimension 0 of mask',
  ],
  [
    'a set with a coordinate outside',
    'chosen',
    {
      A,
      mask: { kind: 'coords', shape: [3, 4], coords: [ints(0, 1), ints(0, 4)], values: null, dtype: 'f32' },
    },
    'bind/coordinate-range: entry 1 of the set mask is at (1, 4)',
  ],
  [
    'a name that nothing has',
    'vbr',
    { A, rowz: [0, 3] },
    'bind/unknown-name: kernel multiply has no buffer or axis rowz',
  ],
  [
    'a coordinate that is outside of the matrix, inside of a block',
    'bsr',
    {
      A: {
        kind: 'coords',
        shape: [3, 4],
        coords: [ints(0, 3), ints(0, 1)],
        values: floats(1, 2),
        dtype: 'f32',
      },
    },
    'bind/coordinate-range: entry 1 has the coordinate 3 on axis i, whose extent is 3',
  ],
  [
    'a coordinate that no part holds',
    'leaking',
    {
      A: coords(
        [5, 5],
        [
          [0, 4],
          [0, 2],
        ],
        [1, 2],
      ),
      B: dense([5, 1], [1, 1, 1, 1, 1]),
    },
    'format/leak: no part of leaking holds (i, j) = (4, 2)',
  ],
  [
    'a coordinate that two parts hold',
    'twice',
    { A },
    'format/overlap: two parts of twice hold (i, j) = (0, 0)',
  ],
  [
    'a row that is too long',
    'short',
    { A },
    'format/leak: no part of short holds (i, j) = (0, 0): it is beyond the last part of bucket i by length into 1, 2',
  ],
  ['one part of two', 'hyb', { A_w1: w1 }, 'bind/missing-part: A_w1 of A is bound, and A_w2 not'],
  ['a part and the whole', 'hyb', { A, A_w1: w1, A_w2: w2 }, 'bind/part: both A and its part A_w1 are bound'],
  [
    'a part by coordinates',
    'hyb',
    { A_w1: A, A_w2: w2 },
    'bind/part: A_w1 is a part of A, and is bound to a coords tensor',
  ],
  [
    'a part that is not in order',
    'hyb',
    {
      A_w1: w1,
      A_w2: stored(
        [3, 4],
        { io_w2: { indptr: ints(0, 2), indices: ints(2, 0) }, jo_w2: { indices: ints(0, 1, 3, 4) } },
        floats(1, 2, 3, 0),
      ),
    },
    'bind/unsorted: indices of axis io_w2 fall from 2 to 0',
  ],
  [
    'parts that overlap',
    'hyb',
    {
      A_w1: stored(
        [3, 4],
        { io_w1: { indptr: ints(0, 1), indices: ints(0) }, jo_w1: { indices: ints(3) } },
        floats(4),
      ),
      A_w2: w2,
    },
    'format/overlap: A_w1 and A_w2 both hold (i, j) = (0, 3)',
  ],
  [
    'an order that is missing',
    'sell',
    { A: sell },
    'bind/missing-table: the parts of A are ready-made, and the order that goes with them, row, is not bound',
  ],
  ['an order that is none', 'sell', { A: sell, row: [0, 0, 1] }, 'bind/table: place 1 of row is 0'],
  [
    'an order without parts',
    'sell',
    { A, row: [0, 2, 1] },
    'bind/table: row is a table of a format, which is computed during conversion',
  ],
]

test.each(CASES)('%s', (_, format, tensors, wanted) => {
  const compiled = made.get(format)!
  let said = 'accepted'
  try {
    const sized = 'A' in tensors && tensors.A !== sell
    compiled.bindOnHost({ B, ...tensors, ...(sized ? {} : { m: 3, n: 4 }) })
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    said = e.message
  }
  expect(said.slice(0, wanted.length)).toBe(wanted)
})

test('a format without separate positions for equal coordinates', async () => {
  const apart = KERNELS.replaceAll('sparse_variable(i, n)', 'sparse_variable(i, n) nonunique')
  const kernel = (await load(FORMATS + apart)).kernel('multiply').as('A', 'csr')
  const compiled = await kernel.build(await devices.cpu())
  const rows = (...at: number[]) => coords([3, 4], [at, [1, 1, 2]], [1, 2, 3])
  expect(() => compiled.bindOnHost({ A: rows(0, 0, 0), B })).toThrow(
    'bind/duplicates: entries 0 and 1 of A are both at (0, 1)',
  )
  expect(reportOf(compiled.bindOnHost({ A: rows(0, 2, 0), B }))[0]!.stored).toBe(3)
})

test('sizes are 32-bit integers', () => {
  for (const d of [-1, 0.5, 2 ** 31])
    expect(() => made.get('csr')!.bindOnHost({ A, B, d })).toThrow(`bind/size-range: size d is ${d}`)
})

test('scalars are values of their types', async () => {
  const text =
    'kernel k(a: bool, b: i8) { axis i = dense_fixed(2)\n buffer y: i32[i] out\n iterate it [i] as S { if (a) { y[i] = i32(b) } } }'
  const compiled = await (await load(text)).kernel().build(await devices.cpu())
  for (const [a, b, refused] of [
    [0, -128, undefined],
    [1, 127, undefined],
    [2, 0, 'a is 2, which is not a value of type bool'],
    [1, 128, 'b is 128, which is not a value of type i8'],
  ] as const) {
    const bind = () => compiled.bindOnHost({ a, b })
    if (refused) expect(bind).toThrow(`bind/scalar-range: ${refused}`)
    else bind()
  }
})

test('ready-made parts by hand', async () => {
  const params = { m: 3, n: 4 }
  for (const [format, tensors] of [
    ['hyb', { A_w1: w1, A_w2: w2 }],
    ['sell', { A: sell, row: [0, 2, 1] }],
    ['bsr', { A: block }],
  ] as const) {
    const prepared = await made.get(format)!.bind({ ...params, B, ...tensors })
    expect(await prepared.verify()).toMatchObject({ problems: [], maxAbsoluteError: 0 })
    expect([...(await prepared.get('C')).values!]).toEqual([1 + 4 + 12, 0, 12])
    expect(reportOf(prepared.executable.bound)[0]!.stored).toBe(4)
    prepared.free()
  }
})

test('factors of padding are finite at its coordinates', async () => {
  const B = (...xs: number[]) => dense([4, 1], floats(...xs))
  const [nan, infinity] = [Number.NaN, Number.NEGATIVE_INFINITY]
  const prepared = await made.get('ell_at')!.bind({ A, B: B(1, 2, nan, infinity) })
  await expect(prepared.set('B', B(infinity, 2, 3, 4))).rejects.toThrow(
    'bind/padding-factor: B[0, 0] is -Infinity, and positions of ell_at(0) that hold nothing',
  )
  await prepared.set('B', B(1, 2, 3, 4))
  expect(await prepared.verify()).toMatchObject({ problems: [], maxAbsoluteError: 0 })
  prepared.free()
  const whole = dense([4, 1], ints(1, 2, 3, 4))
  expect([...made.get('ell_at')!.bindOnHost({ A, B: whole }).arrays.get('B')!]).toEqual([1, 2, 3, 4])
})

test('an output over more axes than ready-made parts have is rejected', async () => {
  const wide = KERNELS.replace('O: f32[i, j]', 'O: f32[i, j, f]')
    .replace('as SSR', 'as SSS')
    .replace('O[i, j] +=', 'O[i, j, f] =')
  const kernel = (await load(FORMATS + wide)).kernel('sample').as('A', 'ell')
  const compiled = await kernel.build(await devices.cpu())
  const held = stored(
    [3, 4],
    { jo: { indices: ints(0, 1, 3, 4, 4, 4, 2, 4, 4) } },
    floats(1, 2, 3, 0, 0, 0, 4, 0, 0),
  )
  const [X, Y] = [dense([3, 1], [1, 2, 3]), B]
  const bind = () => compiled.bindOnHost({ A: held, V: held, X, Y, m: 3, n: 4 })
  expect(bind).toThrow('bind/part-shared: O has the structure of A, whose parts are ready-made')
})

test('only axes with stored arrays are bound by name', async () => {
  const views = await load(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis r = dense_fixed(m)
    axis at = attached(j, r)
    buffer A: f32[i, j] in
    buffer y: f32[r] out
    iterate sum [r, at] as SR { y[r] += A[r, at] }
  }`)
  const compiled = await views.kernel().build(await devices.cpu())
  expect(() => compiled.bindOnHost({ A, at: A })).toThrow(
    'bind/unknown-name: kernel k has no buffer or axis at',
  )
})
