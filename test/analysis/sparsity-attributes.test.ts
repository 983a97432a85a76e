/** Attributes of kernels as users write them; and data that show why others have none. */
import { describe, expect, test } from 'vitest'
import { sparseInputsOf } from '../../src/analysis/sparsity/writes.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { refusal } from '../support/refusal.ts'

const kernel = (body: string, more = '', type = 'f32', format = '') =>
  parseProgram(`${format}
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(d)
  buffer Q: ${type}[i, p] in
  buffer K: ${type}[j, p] in
  buffer M: ${type}[i, j] in
  buffer r: ${type}[i] in
  buffer S: ${type}[i, j] local
  buffer T: ${type}[i, j] local
  buffer z: ${type}[i] local
  buffer O: ${type}[i, j] out
  ${more}
  ${body}
}`).kernel()

const SCORE = 'iterate score [i, j, p] as SSR { S[i, j] += Q[i, p] * K[j, p] }'

/** `tensor: value; zero where …; needed where …` */
const told = (body: string, name: string, more = ''): string => {
  const t = kernel(body, more).inspect.attributes.tensors.find((x) => x.tensor === name)!
  const at = (x: { mask: string; dimensions: readonly { axis: string }[] }): string =>
    `${x.mask}[${x.dimensions.map((d) => d.axis).join()}]`
  return [
    t.value === 'constant' ? `${t.constant}` : t.value,
    ...(t.isUsed ? [] : ['unread']),
    ...t.maskedValues.map((x) => `${x.zero ? 'zero' : x.value} ${at(x)}`),
    ...t.neededWithin.map((x) => `needed ${at(x)}`),
  ].join(' ')
}

test.each([
  // Forward.
  ['iterate o [i, j] as SS { O[i, j] = M[i, j] * r[i] }', 'O', 'live zero M[i,j] zero r[i]'],
  ['iterate o [i, j] as SS { O[i, j] = exp(M[i, j]) }', 'O', 'live 1 M[i,j]'],
  ['iterate o [i, j] as SS { O[i, j] = sigmoid(M[i, j]) }', 'O', 'live 0.5 M[i,j]'],
  ['iterate o [i, j] as SS { O[i, j] = max(M[i, j], 0.0) - M[i, j] }', 'O', 'live zero M[i,j]'],
  ['iterate o [i, j] as SS { O[i, j] = M[i, j] + 1.0 - 1.0 }', 'O', 'live zero M[i,j]'],
  ['iterate o [i, j] as SS { O[i, j] = M[i, j] / r[i] }', 'O', 'live'],
  ['iterate o [i, j] as SS { O[i, j] = r[i] / M[i, j] }', 'O', 'live'],
  ['iterate o [i, j] as SS { if (M[i, j] > 0.0) { O[i, j] = r[i] } }', 'O', 'live zero M[i,j] zero r[i]'],
  [
    'iterate o [i, j] as SS { if (M[i, j] == 0.0) { O[i, j] = r[i] } else { O[i, j] = r[i] * 2.0 } }',
    'O',
    'live zero r[i]',
  ],
  // What is not written everywhere is the fill elsewhere; what a reduction makes starts at its identity.
  ['iterate o [i, j] as SS { if (i < j) { O[i, j] = exp(M[i, j]) } }', 'O', 'live'],
  ['iterate o [i, j] as SS { O[i, j] max= exp(M[i, j]) }', 'O', 'live'],
  [
    'iterate t [i, j] as SS { T[i, j] = exp(M[i, j]) } iterate o [i, j] as SS { O[i, j] = (T[i, j] - 1.0) * r[i] }',
    'O',
    'live zero M[i,j] zero r[i]',
  ],
  // Through iterations, and across.
  [
    'iterate t [i, j] as SS { T[i, j] = M[i, j] * 2.0 } iterate o [i, j] as SS { O[i, j] = T[i, j] * r[i] }',
    'O',
    'live zero M[i,j] zero r[i] zero T[i,j]',
  ],
  [
    'iterate t [i, j] as SS { T[i, j] = M[i, j] } iterate o [i, j] as SS { O[i, j] = T[i, j] + r[i] }',
    'O',
    'live',
  ],
  // Everywhere.
  [
    'iterate t [i, j] as SS { T[i, j] = M[i, j] * 0.0 } iterate o [i, j] as SS { O[i, j] = T[i, j] * M[i, j] }',
    'T',
    'zero unread',
  ],
  [
    'iterate t [i, j] as SS { T[i, j] = M[i, j] * 0.0 } iterate o [i, j] as SS { O[i, j] = T[i, j] * M[i, j] }',
    'O',
    'zero',
  ],
  [
    'iterate t [i, j] as SS { T[i, j] = M[i, j] * 0.0 } iterate o [i, j] as SS { O[i, j] = exp(T[i, j]) }',
    'O',
    '1',
  ],
  // Backward.
  [`${SCORE} iterate o [i, j] as SS { O[i, j] = M[i, j] * S[i, j] }`, 'S', 'live needed M[i,j]'],
  [`${SCORE} iterate o [i, j] as SS { O[i, j] = M[i, j] * S[i, j] + S[i, j] }`, 'S', 'live'],
  [
    `${SCORE} iterate o [i, j] as SS { O[i, j] = select(M[i, j] != 0.0, S[i, j], 7.0) }`,
    'S',
    'live needed M[i,j]',
  ],
  [
    `${SCORE} iterate t [i, j] as SS { T[i, j] = S[i, j] + r[i] } iterate o [i, j] as SS { O[i, j] = M[i, j] * T[i, j] }`,
    'S',
    'live needed M[i,j]',
  ],
  [
    `${SCORE} iterate t [i, j] as SS { T[i, j] = exp(S[i, j]) } iterate o [i, j] as SS { O[i, j] = M[i, j] * T[i, j] }`,
    'S',
    'live needed M[i,j]',
  ],
  // What would be divided by 0, or be exp(−r), where it is left out.
  [
    `${SCORE} iterate t [i, j] as SS { T[i, j] = 1.0 / S[i, j] } iterate o [i, j] as SS { O[i, j] = M[i, j] * T[i, j] }`,
    'S',
    'live',
  ],
  [
    `${SCORE} iterate t [i, j] as SS { T[i, j] = exp(S[i, j] - r[i]) } iterate o [i, j] as SS { O[i, j] = M[i, j] * T[i, j] }`,
    'S',
    'live',
  ],
  [
    'iterate t [i, j, p] as SSR { T[i, j] max= Q[i, p] } iterate o [i, j] as SS { O[i, j] = M[i, j] * T[i, j] }',
    'T',
    'live',
  ],
  // Nobody reads it.
  [`${SCORE} iterate o [i, j] as SS { O[i, j] = M[i, j] }`, 'S', 'live unread'],
  [
    `${SCORE} iterate t [i, j] as SS { T[i, j] = S[i, j] } iterate o [i, j] as SS { O[i, j] = M[i, j] }`,
    'S',
    'live unread',
  ],
])('%s: %s is %s', (body, name, expected) => {
  expect(told(body, name)).toBe(expected)
})

test('results are frozen', () => {
  const { attributes } = kernel(`${SCORE} iterate o [i, j] as SS { O[i, j] = M[i, j] * S[i, j] }`).inspect
  const all = (x: unknown): readonly unknown[] =>
    typeof x === 'object' && x !== null
      ? [x, ...Object.entries(x).flatMap(([k, y]) => (k === 'span' ? [] : all(y)))]
      : []
  for (const x of all(attributes)) expect(Object.isFrozen(x)).toBe(true)
})

describe('rejected attributes, with data that show the reason', () => {
  test.each([
    [
      `${SCORE} iterate o [i, j] as SS { O[i, j] = M[i, j] + S[i, j] }`,
      'score',
      'score computes S where M is at its fill, and o reads it for O',
    ],
    [
      'iterate o [i, j] as SS { O[i, j] = exp(M[i, j]) }',
      'o',
      'o computes O where M is at its fill, and O is a result',
    ],
    [
      'iterate o [i, j] as SS { O[i, j] max= M[i, j] }',
      'o',
      'o computes O where M is at its fill, and O is a result',
    ],
  ])('%s', async (body, name, message) => {
    const k = kernel(body, '', 'f64')
    const said = refusal(() => k.mask(name, 'M'))
    expect(said.code).toBe('schedule/mask')
    expect(said.message).toBe(message)
    expect(said.hint).toContain('mask first')
    expect(said.labels?.length).toBe(1)
    // By the condition itself, written by hand, results are others.
    const by = body.replace(/\{ ([A-Z]\[i, j\][^}]*) \}/, '{ if (M[i, j] != 0.0) { $1 } }')
    const device = createCpuDevice()
    const tensors = {
      Q: [1, 2],
      K: [1, 3],
      M: [0, 1, 0, 2],
      r: [1, 1],
    }
    const shaped = Object.fromEntries(
      Object.entries(tensors).map(([x, values]) => [
        x,
        {
          kind: 'dense',
          dtype: 'f64',
          shape: x === 'M' ? [2, 2] : x === 'r' ? [2] : [2, 1],
          values: Float64Array.from(values),
        } as const,
      ]),
    )
    const run = async (text: string) => {
      const compiled = await kernel(text, '', 'f64').build(device)
      return Array.from((await compiled({ ...shaped, m: 2, n: 2, d: 1 })).O!.values as Float64Array)
    }
    expect(await run(by)).not.toEqual(await run(body))
  })

  test('an infinite initial value, in an arm of a condition', () => {
    const body = `iterate low [i, p] as SR { z[i] min= Q[i, p] }
      iterate t [i] as S { if (z[i] != 0) { w[i] = r[i] * z[i] } }
      iterate o [i, j] as SS { O[i, j] = w[i] + 1 }`
    const said = refusal(() => kernel(body, 'buffer w: f32[i] local').mask('low', 'r'))
    expect(said.message).toBe(
      'low computes z where r is at its fill, and t may make an infinite number of Infinity, which it would be there',
    )
  })

  test('0 times a minimum over no elements', () => {
    const body = `iterate low [i, p] as SR { if (Q[i, p] > 0) { z[i] min= Q[i, p] } }
      iterate t [i] as S { w[i] = 2 * q[i] }
      iterate o [i, j] as SS { O[i, j] = min(w[i] * z[i], 7) * r[i] }`
    const more = 'buffer q: f32[i] in buffer w: f32[i] local'
    expect(refusal(() => kernel(body, more).mask('t', 'r')).message).toBe(
      't computes w where r is at its fill, and o may make an infinite number of 0, which it would be there',
    )
    expect(kernel(body.replace(' * z[i]', ''), more).mask('t', 'r').trace).toEqual(['mask t by r'])
  })

  test.each([
    ['mask scores by M', 'schedule/unknown-nest'],
    ['mask score by N', 'schedule/unknown-buffer'],
    ['mask score by S', 'schedule/mask'],
    ['mask score by r', 'schedule/mask'],
    ['mask t by O', 'schedule/mask'],
  ])('%s', (step, code) => {
    const text = `${SCORE} iterate t [i, j] as SS { T[i, j] = S[i, j] } iterate o [i, j] as SS { O[i, j] = M[i, j] * T[i, j] }`
    const [, name, by] = /mask (\w+) by (\w+)/.exec(step)!
    expect(refusal(() => kernel(text).mask(name!, by!)).code).toBe(code)
  })
})

test('−0 counts as zero, NaN is kept, and skipped elements have no effect', async () => {
  const k = kernel(`${SCORE} iterate o [i, j] as SS { O[i, j] = M[i, j] * S[i, j] }`, '', 'f64')
  const dense = (shape: readonly number[], ...values: readonly number[]) =>
    ({ kind: 'dense', dtype: 'f64', shape, values: Float64Array.from(values) }) as const
  const tensors = {
    Q: dense([1, 1], 1),
    K: dense([4, 1], Number.NaN, Number.POSITIVE_INFINITY, 3, 5),
    M: dense([1, 4], -0, 0, Number.NaN, 2),
    r: dense([1], 1),
  }
  const compiled = await k.mask('o', 'M').mask('score', 'M').build(createCpuDevice())
  const { O } = await compiled(tensors)
  expect(Array.from(O!.values as Float64Array)).toEqual([0, 0, Number.NaN, 10])
})

describe('dead elements', () => {
  const left = (body: string, names: readonly string[], more = ''): string =>
    names.reduce((k, name) => k.drop(name), kernel(body, more)).show(1)

  test('an unread tensor is removed', () => {
    const text = left(`${SCORE} iterate o [i, j] as SS { O[i, j] = M[i, j] }`, ['score'])
    expect(text).not.toMatch(/score|buffer S/)
    expect(text).toContain('O[i, j] = M[i, j]')
  })

  test('f(0) is folded, and results that are 0 stay 0 without iterations', () => {
    const body = `iterate off [i, j] as SS { S[i, j] = M[i, j] * 0.0 }
    iterate power [i, j] as SS { T[i, j] = exp(S[i, j]) }
    iterate o [i, j] as SS { O[i, j] += S[i, j] * T[i, j] }
    iterate q [i, j] as SS { R[i, j] = T[i, j] + M[i, j] }`
    const more = 'buffer R: f32[i, j] out'
    expect(left(body, ['o', 'power', 'off'], more)).not.toMatch(/iterate (o|power|off) /)
    expect(left(body, ['power', 'off', 'o'], more)).toContain('R[i, j] = 1 + M[i, j]')
  })

  test.each([
    [
      `${SCORE} iterate o [i, j] as SS { O[i, j] = S[i, j] }`,
      'score',
      'score computes S, and o reads it for O',
    ],
    ['iterate o [i, j] as SS { O[i, j] = M[i, j] }', 'o', 'o computes O, which is a result'],
    ['iterate o [i, j] as SS { O[i, j] = exp(0.0 * M[i, j]) }', 'o', 'o computes O, which is a result'],
    // What starts at −∞ would be 0.
    [
      'iterate off [i, j] as SS { S[i, j] = M[i, j] * 0.0 } iterate o [i, j] as SS { if (S[i, j] != 0.0) { O[i, j] max= M[i, j] } }',
      'o',
      'O would start from another value without o',
    ],
  ])('%s: %s stays', (body, name, message) => {
    const said = refusal(() => kernel(body).drop(name))
    expect([said.code, said.message]).toEqual(['schedule/drop', message])
  })
})

describe('structure shared by several tensors', () => {
  const both = `${SCORE}
    iterate t [i, j] as SS { T[i, j] = M[i, j] * S[i, j] }
    iterate o [i, p, j] as SSR { U[i, p] += T[i, j] * K[j, p] }
    iterate other [i, j] as SS { O[i, j] = r[i] }`
  const U = 'buffer U: f64[i, p] out'
  const blocks = `format blocks(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}`
  const names = ['o', 't', 'score']

  test('applies to all tensors without conditions, and to temporaries without other uses', () => {
    const k = kernel(both, U, 'f64', blocks)
    const carried = k.live('M', 'blocks', 2, { for: names }).show(1)
    expect(carried).toContain('buffer S: f64[io, jo, ii, ji] local')
    expect(carried).toContain('buffer T: f64[io, jo, ii, ji] local')
    expect(carried).not.toContain('if (')
    const masked = names.reduce((x, name) => x.mask(name, 'M'), k).live('M', 'blocks', 2)
    expect(masked.show(1)).toContain('if (')
    const some = k.mask('o', 'M').live('M', 'blocks', 2, { for: ['t', 'score'] })
    expect(some.show(1).match(/if \(/g)).toHaveLength(1)
  })

  test('can be another structure of the same tensor', () => {
    // What lies over the first lists alone is known to be 0 elsewhere no more: a result does not.
    const results = both.replaceAll('T[', 'R[')
    const twice = kernel(results, `${U}\n  buffer R: f64[i, j] out`, 'f64', blocks)
      .live('M', 'blocks', 2, { for: ['t', 'score'] })
      .live('M', 'blocks', 3, { for: ['o'] })
      .show(1)
    expect(twice).toMatch(/iterate t \[io, jo, ii, ji\]/)
    expect(twice).toMatch(/iterate o \[io_2, p, jo_2, ii_2, ji_2\]|iterate o \[io_2, jo_2, ii_2, ji_2, p\]/)
  })

  test('excludes inner iterations, which have some of the iterators', () => {
    const nested = `${SCORE}
    iterate rows [i] as S { iterate t [j] as S { T[i, j] = M[i, j] * S[i, j] } }
    iterate other [i, j] as SS { O[i, j] = M[i, j] * T[i, j] }`
    const said = refusal(() => kernel(nested, '', 'f64', blocks).live('M', 'blocks', 2, { for: ['t'] }))
    expect([said.code, said.message]).toEqual([
      'schedule/live-tensor',
      't does not iterate over each dimension of M that the format covers',
    ])
  })

  test('appears in the printed text and in JSON', () => {
    const carried = kernel(both, U, 'f64', blocks).live('M', 'blocks', 2, { capacity: 7, for: names })
    expect(carried.trace).toEqual(['M as blocks(2) live in place capacity 7 for o, t, score'])
    expect(carried.toJSON()).toMatchObject([{ for: names }])
  })

  test.each([
    ['M', ['t', 'scores'], 'schedule/unknown-nest', 'there is no iteration scores'],
    [
      'M',
      ['score', 't', 'o', 'extra'],
      'schedule/mask',
      'extra computes R where M is at its fill, and R is a result',
    ],
  ])('%s for %j is %s', (tensor, given, code, message) => {
    const more = `${U}\n  buffer R: f64[i, j] out`
    const k = kernel(`${both}\n  iterate extra [i, j] as SS { R[i, j] = r[i] }`, more, 'f64', blocks)
    const said = refusal(() => k.live(tensor, 'blocks', 2, { for: given }))
    expect([said.code, said.message]).toEqual([code, message])
  })
})

test('steps are printed and replayed', () => {
  const k = kernel(`${SCORE} iterate o [i, j] as SS { O[i, j] = M[i, j] * S[i, j] }`)
  const masked = k.mask('score', 'M')
  expect(masked.trace).toEqual(['mask score by M'])
  expect(k.replay(JSON.parse(JSON.stringify(masked.toJSON()))).show(1)).toBe(masked.show(1))
  expect(masked.undo().show(1)).toBe(k.show(1))
  expect(() => k.mask('score', 'M').mask('score', 'K')).not.toThrow(SptError)
})

test('sparse inputs are those that a kernel reads', () => {
  const names = sparseInputsOf(
    parseProgram(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      buffer A: f32[i, j] in
      buffer D: f32[i] in
      buffer U: f32[i, j] in
      buffer T: f32[i, j] local
      buffer B: f32[i, j] out
      iterate a [i, j] as SS { T[i, j] = A[i, j] * D[i] }
      iterate b [i, j] as SS { B[i, j] = T[i, j] + 1.0 }
    }`).kernel().compilation.source,
  ).map((b) => b.name)
  expect(names).toEqual(['A'])
})
