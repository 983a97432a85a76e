/** What is wrong with a choice is found without data. */
import { describe, expect, test } from 'vitest'
import { load, SptError } from '../../src/node.ts'

const KERNEL = `kernel mul(m: size, n: size, d: size, alpha: f32) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j]  in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f]  out
  iterate sum [i, j, f] as SRS { C[i, f] += alpha * A[i, j] * B[j, f] }
}
schedule mul.tiles(rows, each = 4) { split f by each; split i by rows }
schedule mul.plain { reorder (i, f, j) }
schedule mul.other choose { otherwise plain }
format all over (i, j) {
  axis io = dense_fixed(i)
  axis jo = dense_fixed(j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format padded(b) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = dense_fixed(ceildiv(j, b) * b)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format line over (i) {
  axis io = dense_fixed(i)
  map (i) -> (i)
  inverse (io) -> (io)
}
`

/** Code, message and place of each error. */
async function wrong(text: string): Promise<string[]> {
  try {
    await load(KERNEL + text)
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return e.diagnostics.map((d) => {
      const at = (KERNEL + text).slice(d.span!.start, d.span!.end)
      return `${d.code}: ${d.message} [${at}]`
    })
  }
  return []
}
const branch = (b: string): Promise<string[]> => wrong(`schedule mul.auto choose { ${b} }`)

describe('conditions', () => {
  test.each([
    ['when (e > 3) plain', 'check/unknown-name: there is no e here [e]'],
    [
      'when (alpha > 3) plain',
      'check/unknown-name: alpha is a scalar, and schedules are chosen by sizes [alpha]',
    ],
    ['when (j > 3) plain', 'check/unknown-name: j is an axis [j]'],
    ['when (d) plain', 'check/condition: this must be true or false, not i32 [d]'],
    ['when (cuda > 1 and d) plain', 'check/condition: this must be true or false, not i32 [d]'],
    [
      'when (A[0, 0] > 1) plain',
      'check/unknown-name: values of tensors are not known where a schedule is chosen [A[0, 0]]',
    ],
    ['when (longest(i) > 3) plain', 'check/statistic: axis i has no segments of different lengths [i]'],
    ['when (longest(x) > 3) plain', 'check/unknown-axis: kernel mul has no axis x [x]'],
    ['when (longest(j, j) > 3) plain', 'check/statistic: longest takes an axis [longest(j, j)]'],
    ['when (count(j by i) > 3) plain', 'check/statistic: count takes an axis [count(j by i)]'],
    ['when (nnz(B) > 3) plain', 'check/statistic: B is dense [B]'],
    ['when (nnz(j) > 3) plain', 'check/unknown-buffer: kernel mul has no buffer j [j]'],
    ...[
      ['fill_ratio(A)', 'check/statistic: fill_ratio takes a tensor and a format [fill_ratio(A)]'],
      ['fill_ratio(A, 3)', 'check/statistic: fill_ratio takes a tensor and a format [fill_ratio(A, 3)]'],
      [
        'fill_ratio(A, all + all)',
        'check/rest-not-last: this part takes every element, so later parts would be empty [all]',
      ],
      [
        'fill_ratio(A, padded(0.5) where (i < 2) + all)',
        'check/coordinate-type: b of format padded is an integer, and this is a real number [0.5]',
      ],
      [
        'fill_ratio(A by all)',
        'check/statistic: fill_ratio takes a tensor and a format [fill_ratio(A by all)]',
      ],
      ['fill_ratio(Q, all)', 'check/unknown-buffer: kernel mul has no buffer Q [Q]'],
      [
        'fill_ratio(C, all)',
        'check/statistic: C is dense and not an input: the elements are unknown before the kernel runs [C]',
      ],
      ['fill_ratio(A, none)', 'check/unknown-format: there is no format none [none]'],
      ['fill_ratio(A, all(2))', 'check/arguments: format all is given 1 argument [all(2)]'],
      ['fill_ratio(A, padded)', 'check/arguments: format padded is given 0 arguments [padded]'],
      ['fill_ratio(A, padded(m))', 'check/unknown-name: there is no m here [m]'],
      ['fill_ratio(A, padded(0.5))', 'check/argument-type: an argument is an integer, and this is f64 [0.5]'],
      ['fill_ratio(B, line)', 'check/format-over: format line is over (i), and B has 2 dimensions [line]'],
    ].map(([asked, message]) => [`when (${asked} > 0.5) plain`, message] as [string, string]),
    ['when (sqrt(d) > 3) plain', 'check/unknown-function: there is no function sqrt here [sqrt]'],
    ['when (has(subgroup)) plain', 'check/feature: no device has a feature subgroup [subgroup]'],
    ['when (has(sm_90)) plain', 'check/feature: no device has a feature sm_90 [sm_90]'],
    ['when (has(f16, f64)) plain', 'check/feature: has takes a single feature of the device [has(f16, f64)]'],
    ['when (has(3)) plain', 'check/feature: has takes a single feature of the device [has(3)]'],
    ['when (has(f16 by i)) plain', 'check/feature: has takes a single feature of the device [has(f16 by i)]'],
    ['when (has(f16(2))) plain', 'check/feature: f16 takes no arguments [f16(2)]'],
    ['when (has(lanes)) plain', 'check/feature: wrong arguments of lanes [lanes]'],
    ['when (has(lanes(f16))) plain', 'check/feature: wrong arguments of lanes [lanes(f16)]'],
    [
      'when (has(subgroup_matrix(16, 16, 16, f16))) plain',
      'check/feature: wrong arguments of subgroup_matrix [subgroup_matrix(16, 16, 16, f16)]',
    ],
    ['when (has(lanes(n))) plain', 'check/feature: this is neither a number nor a type [n]'],
    ['when (has(lanes(2 * 8))) plain', 'check/feature: this is neither a number nor a type [2 * 8]'],
    ['when (has(lanes(8)) > 1 and d) plain', 'check/condition: this must be true or false, not i32 [d]'],
    ['when (processors) plain', 'check/condition: this must be true or false, not i32 [processors]'],
    ['when (processor > 3) plain', 'check/unknown-name: there is no processor here [processor]'],
    ['when (d / 0 > 3) plain', 'check/division-by-zero: an integer is divided by 0 [0]'],
  ])('%s', async (text, complaint) => {
    expect(await branch(text)).toEqual([complaint])
  })
})

describe('parameters', () => {
  const auto = (params: string, b = 'otherwise plain') =>
    wrong(`schedule mul.auto(${params}) choose { ${b} }`)
  test.each([
    ['b, b = 2', 'check/duplicate: schedule auto has two parameters b [b]'],
    ['b = c', 'check/unknown-name: there is no c here [c]'],
    ['b = c, c = 1', 'check/unknown-name: there is no c here [c]'],
    ['b = d', 'check/unknown-name: there is no d here [d]'],
    ['b = 2.5', 'check/argument-type: an argument is an integer, and this is f64 [2.5]'],
    ['b = true', 'check/argument-type: an argument is an integer, and this is bool [true]'],
    ['d = 4', 'check/duplicate: d is a size of kernel mul where a schedule is chosen [d]'],
    ['alpha', 'check/duplicate: alpha is a scalar of kernel mul where a schedule is chosen [alpha]'],
    ['cuda = 1', 'check/duplicate: cuda is a device where a schedule is chosen [cuda]'],
    [
      'capability',
      'check/duplicate: capability is a figure of the device where a schedule is chosen [capability]',
    ],
    [
      'processors = 132',
      'check/duplicate: processors is a figure of the device where a schedule is chosen [processors]',
    ],
  ])('(%s)', async (params, complaint) => {
    expect(await auto(params)).toEqual([complaint])
  })

  test('are integers in conditions and arguments', async () => {
    const b = 'b, c = 2 * b'
    expect(
      await auto(b, 'when (b > 1 and mean(j) >= 0.5 * c) tiles(c - b, each = b) otherwise plain'),
    ).toEqual([])
    expect(await auto(b, 'when (b) plain')).toEqual([
      'check/condition: this must be true or false, not i32 [b]',
    ])
    expect(await auto(b, 'when (bb > 1) plain')).toEqual(['check/unknown-name: there is no bb here [bb]'])
    expect(await auto(b, 'otherwise tiles(0.5 * c)')).toEqual([
      'check/argument-type: an argument is an integer, and this is f64 [0.5 * c]',
    ])
  })
})

test('every requirement of a kernel can be a condition', async () => {
  const words = [
    ...['f16', 'subgroups', 'lanes(4)', 'subgroup_size(32)', 'subgroup_matrix(8, 8, 8, f16, f32)'],
    ...['chromium_experimental_subgroup_matrix', 'chromium_another'],
  ]
  const instr = `instr one(D: f32[1] in register) {
    iterate set [i] as S { D[i] = 1 }
    wgsl needs ${words.join(', ')} \`$D[0] = 1.0;\`
  }`
  const asked = words.map((w) => `has(${w})`).join(' and ')
  expect(await wrong(`${instr}\nschedule mul.auto choose { when (${asked}) plain }`)).toEqual([])
  expect(await wrong(`schedule mul.auto choose { when (has(chromium_another(2))) plain }`)).toEqual([
    'check/feature: chromium_another takes no arguments [chromium_another(2)]',
  ])
})

describe('schedules', () => {
  test.each([
    ['otherwise missing', 'check/unknown-schedule: kernel mul has no schedule missing [missing]'],
    ['otherwise tiles', 'check/arguments: schedule tiles needs a value for rows [otherwise tiles]'],
    [
      'otherwise tiles(1, 2, 3)',
      'check/arguments: schedule tiles is given 3 arguments [otherwise tiles(1, 2, 3)]',
    ],
    ['otherwise tiles(row = 2)', 'check/unknown-parameter: schedule tiles has no parameter row [row]'],
    ['otherwise tiles(2, rows = 2)', 'check/duplicate: rows is given twice [rows]'],
    ['otherwise tiles(mean(j))', 'check/argument-type: an argument is an integer, and this is f64 [mean(j)]'],
    ['otherwise tiles(cpu)', 'check/argument-type: an argument is an integer, and this is bool [cpu]'],
    ['otherwise tiles(each == 4)', 'check/unknown-name: there is no each here [each]'],
  ])('%s', async (text, complaint) => {
    expect(await branch(text)).toEqual([complaint])
  })

  test('all mistakes of a dispatch are reported', async () => {
    expect(await branch('when (e > 3) plain\notherwise missing')).toHaveLength(2)
  })

  test('a dispatch without branches', async () => {
    expect(await branch('')).toEqual(['check/empty-choice: mul.auto has nothing to choose from [auto]'])
  })

  test('a dispatch is not used by a schedule, and shares no name with one', async () => {
    expect(await wrong('schedule mul.more { use other }')).toEqual([
      'check/choice-used: other is chosen when data are bound, and has no steps before [other]',
    ])
    expect((await wrong('schedule mul.plain choose { otherwise tiles(1) }'))[0]).toMatch(
      /^link\/duplicate-name/,
    )
    expect((await wrong('schedule mull.auto choose { otherwise plain }'))[0]).toMatch(/^link\/unknown-name/)
  })

  test('keywords of dispatches are ordinary names elsewhere', async () => {
    expect(
      await wrong(`schedule mul.choose(when = 2) { split f by when }
        schedule mul.otherwise choose { when (d > 1) choose(when = 3) otherwise choose }`),
    ).toEqual([])
  })
})

test('a dispatch of another file belongs to the kernel', async () => {
  const files: Record<string, string> = {
    'lib.spt': KERNEL,
    'main.spt':
      'import "lib.spt"\nschedule mul.auto choose { when (d % 2 == 0) tiles(d / 2) otherwise plain }',
  }
  const program = await load('main.spt', { read: async (path) => files[path]! })
  const kernel = program.kernel()
  expect(kernel.dispatches).toEqual(['other', 'auto'])
  expect((await kernel.choose('cpu', { d: 6 })).selection.text).toBe('tiles(3)')
})
