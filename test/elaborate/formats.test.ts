import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { print, printExpr } from '../../src/ast/print/print.ts'
import { parseFormatExpression } from '../../src/elaborate/index.ts'
import { keyOf } from '../../src/ir/expressions/structural-equality.ts'
import type { AnyFormat, Composition, Format } from '../../src/ir/formats/format.ts'
import { parse } from '../../src/schedule/steps/language.ts'
import { runs } from '../support/cases.ts'
import { FORMATS } from './format-texts.ts'
import { errors, read } from './support.ts'

const formats = read(FORMATS).formats
const description = (name: string): Format => {
  const f = formats.get(name)
  if (f?.kind !== 'format') throw new Error(`no description ${name}`)
  return f
}
const composition = (name: string): Composition => {
  const f = formats.get(name)
  if (f?.kind !== 'composition') throw new Error(`no composition ${name}`)
  return f
}
const keys = (list: readonly Parameters<typeof keyOf>[0][]): string[] => list.map(keyOf)
/** Nodes as data, without places. */
const bare = (x: unknown): unknown => JSON.parse(JSON.stringify(x, (k, v) => (k === 'span' ? undefined : v)))

test('a format is elaborated with the names it declares', () => {
  const format = read(`format bsr(b, w: size, c = 2 * b) over (i, j) {
    axis jo = sparse_fixed(io, ceildiv(j, b), w)
    axis io = dense_fixed(ceildiv(i, b))
    axis ii = dense_fixed(b)
    axis ji = dense_fixed(b)
    map (r, s) -> (s / b, r / b, r % b, s % b)
    inverse (jo, io, p, q) -> (io * b + p, jo * b + q)
  }`).formats.get('bsr') as Format
  expect(format.axes.map((a) => a.name)).toEqual(['io', 'jo', 'ii', 'ji'])
  expect(format.order).toEqual(['jo', 'io', 'ii', 'ji'])
  expect(format.params.map((p) => [p.name, p.measured, p.default !== null])).toEqual([
    ['b', false, false],
    ['w', true, false],
    ['c', false, true],
  ])
  expect(format.map[0]).toMatchObject({ op: 'div', a: { name: 'j' }, b: { name: 'b' } })
  expect(format.inverse[1]).toMatchObject({ op: 'add', b: { kind: 'var', name: 'ji' } })
})

test('the printed text means the same', () => {
  const text = print(parse({ name: 't', text: FORMATS }))
  expect(bare([...read(text).formats])).toEqual(bare([...formats]))
  expect(print(parse({ name: 't', text }))).toBe(text)
})

describe('descriptions', () => {
  test('queries become columns, each once, those they use before them', () => {
    const f = description('sell')
    expect(bare(f.queries)).toEqual([
      { kind: 'place', sort: 'place', of: bare(read1('i')), name: 'place_1' },
      { kind: 'rank', of: [bare(read1('j'))], by: [bare(read1('i'))], name: 'rank_1' },
    ])
    expect(keys(f.map)).toEqual([
      '(div place_1:index c:index)',
      'rank_1:index',
      '(mod place_1:index c:index)',
      'j:index',
    ])
    expect(keys(f.inverse)).toEqual(['row[(add (mul so:index c:index) ii:index)]', 'jo:index'])
    const [sort] = f.sorts
    expect(sort).toMatchObject({ place: 'place', at: 'row', dim: 'i' })
    expect(keyOf(sort!.key)).toBe('(neg count_1:index)')
    expect(keyOf(sort!.within!)).toBe('s:index')
    expect(sort!.queries.map((q) => q.kind)).toEqual(['count'])
  })

  test('a query within a query comes first', () => {
    const f = only(`format f(c) over (i, j) {
      sort i by count(j by i) -> (place, row)
      axis a = dense_fixed(i)
      axis b = dense_fixed(j)
      map (i, j) -> (place[i], rank(j by place[i] / c))
      inverse (a, b) -> (row[a], b)
    }`) as Format
    expect(f.queries.map((q) => q.kind)).toEqual(['place', 'rank'])
    const rank = f.queries[1]!
    expect(rank.kind === 'rank' && keys(rank.by)).toEqual(['(div place_1:index c:index)'])
  })

  test('names of queries avoid those of the format', () => {
    const f = only(`format f(rank_1) over (i, j) {
      axis count_1 = dense_fixed(i)
      axis b = sparse_fixed(count_1, j, rank_1)
      map (i, j) -> (count(j by i) + rank(j by i) % rank_1, j)
      inverse (count_1, b) -> (count_1, b)
    }`) as Format
    expect(f.queries.map((q) => q.name)).toEqual(['count_2', 'rank_2'])
  })

  test('extents, sizes, segments, loads of lists', () => {
    const dia = description('dia')
    expect(keys(dia.map)).toEqual(['(sub (add (sub j:index i:index) size(i):index) 1:index)', 'i:index'])
    expect(keys(dia.axes.map((a) => a.extent))).toEqual(['(sub (add i:index j:index) 1:index)', 'i:index'])
    const vbr = description('vbr')
    expect(vbr.params.map((p) => p.kind)).toEqual(['list', 'list'])
    expect(vbr.queries.map((q) => q.kind === 'find' && q.list)).toEqual(['rows', 'cols'])
    expect(keyOf(vbr.axes[0]!.extent)).toBe('segments of rows:index')
    expect(keyOf(vbr.map[2]!)).toBe('(sub i:index rows[find_1:index])')
    expect(keyOf(vbr.inverse[1]!)).toBe('(add cols[jo:index] ji:index)')
  })

  test('operands of maps may be renamed, in queries too', () => {
    const text = (i: string, j: string) => `format f over (i, j) {
      axis a = dense_fixed(i)
      axis b = dense_fixed(j)
      map (${i}, ${j}) -> (${i} + size(${i}), rank(${j} by ${i}))
      inverse (a, b) -> (a, b)
    }`
    expect(bare(only(text('r', 'c')))).toEqual(bare(only(text('i', 'j'))))
    expect(bare(only(text('j', 'i')))).toEqual(bare(only(text('i', 'j'))))
  })

  test('conditions, claims, measured and constant parameters', () => {
    expect(keyOf(description('band').where!)).toBe(
      '(and (le (sub i:index j:index) l:index) (le (sub j:index i:index) u:index))',
    )
    expect(description('padded').claims).toEqual([
      { axis: 'jo', claim: 'full' },
      { axis: 'jo', claim: 'compact' },
    ])
    expect(description('padded').params[0]).toMatchObject({ kind: 'integer', measured: true })
    expect(composition('dense_blocks').params[1]).toMatchObject({
      kind: 'real',
      default: { kind: 'const', value: 0.5, dtype: 'f64' },
    })
  })
})

describe('compositions', () => {
  test('rules nest, and name their children', () => {
    const [partition] = composition('hyb').parts
    expect(partition).toMatchObject({ kind: 'partition', dim: 'j', as: 'p' })
    if (partition?.kind !== 'partition') throw new Error('no partition')
    const [bucket] = partition.parts
    expect(bucket).toMatchObject({ kind: 'bucket', dims: ['i'], as: 'width', split: true })
    if (bucket?.kind !== 'bucket') throw new Error('no bucket')
    expect(bucket.widths.map((w) => [keyOf(w.value), w.power && keyOf(w.power), w.doubling])).toEqual([
      ['1:index', null, false],
      ['2:index', null, false],
      ['2:index', 'k:index', true],
    ])
    const [part] = bucket.parts
    expect(part?.kind === 'part' && part.use.format).toBe(formats.get('rows_ell'))
    expect(part?.kind === 'part' && keys(part.use.args)).toEqual(['width:index'])
  })

  test('density is the fill ratio of a block', () => {
    const [blocks, rest] = composition('dense_blocks').parts
    if (blocks?.kind !== 'part' || rest?.kind !== 'part') throw new Error('no parts')
    expect(blocks.name).toBe('blocks')
    const [count] = blocks.queries
    if (count?.kind !== 'count') throw new Error('no count')
    expect(keys(count.of)).toEqual(['i:index', 'j:index'])
    expect(keys(count.by)).toEqual(['(div i:index b:index)', '(div j:index b:index)'])
    expect(keyOf(blocks.where!)).toBe('(ge (div (f64 count_1:index) (f64 (mul b:index b:index))) t:f64)')
    expect([rest.name, rest.where]).toEqual([null, null])
  })

  test('lists are passed on by name, sets are tested for membership', () => {
    const [vbr] = composition('lists').parts
    expect(vbr?.kind === 'part' && keys(vbr.use.args)).toEqual(['r:index', 'r:index'])
    const [held] = composition('by_mask').parts
    expect(held?.kind === 'part' && bare(held.queries)).toEqual([{ kind: 'held', set: 'm', name: 'held_1' }])
    expect(held?.kind === 'part' && keyOf(held.where!)).toBe('(ne held_1:index 0:index)')
  })
})

describe('formats composed in place', () => {
  const kernel = `
    kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      buffer A: f32[i, j] in
      buffer s: f32[] out
      iterate it [i, j] as RR { s[] += A[i, j] }
    }`
  const applied = (steps: string, params = '') => {
    const all = read(`${FORMATS}${kernel} schedule k.s${params} { ${steps} }`)
    return [...all.schedules.get('k')!.get('s')!.formats.values()]
  }

  test('a schedule contains the composition, over the parameters that it uses', () => {
    const [a] = applied('A as bsr(n) where (top(m + n by i)) + csr', '(m = 2, n = 3, unused = 4)')
    expect(a!.format).toMatchObject({ kind: 'composition', over: ['i', 'j'] })
    expect(a!.format.name).toBe('bsr(n) where (top(m + n by i)) + csr')
    expect(a!.format.params.map((p) => p.name)).toEqual(['n', 'm'])
    expect(a!.args.map((x) => (typeof x === 'string' ? x : printExpr(x)))).toEqual(['n', 'm'])
  })

  test('a format alone has its arguments', () => {
    const [a, b] = applied('A as dense_blocks(4, 0.25) A as vbr(rows, cols)')
    expect(a!.format).toMatchObject({ kind: 'composition', name: 'dense_blocks' })
    expect(b!.args).toEqual(['rows', 'cols'])
  })

  test('lists and sets of the data are parameters', () => {
    const [a] = applied('A as csr where (held(mask)) + vbr(rows) where (find(rows, i) > 1) + csr')
    expect(a!.format.params).toMatchObject([
      { name: 'mask', kind: 'set' },
      { name: 'rows', kind: 'list' },
    ])
    expect(a!.args).toEqual([])
  })

  test('each part has constants; its buffers can be named', () => {
    const [a, b] = applied(`A as csr
      each part of A as p { unroll it.jo by p.width; cache_read p at p.io in shared; p as bsr(p.w) where (i < p.w) + csr }
      merge parts of A
      atomic A_w4`)
    expect(a!.format.name).toBe('csr')
    expect(b!.format.params.map((x) => x.name)).toEqual(['p.w'])
  })

  test('from TypeScript: the same program, with open integer parameters', () => {
    expect(parseFormatExpression('bsr(16)', formats)).toEqual({ format: formats.get('bsr'), args: [16] })
    expect(parseFormatExpression('dense_blocks(2 * 2, 1.0 / 4)', formats).args).toEqual([4, 0.25])
    expect(parseFormatExpression('vbr(r, c)', formats).args).toEqual(['r', 'c'])
    const { format, args } = parseFormatExpression(
      ' bsr(n) where (density(n) >= 0.5 and i < size(i) - m) + csr ',
      formats,
    )
    expect(args).toEqual([])
    expect(format.name).toBe('bsr(n) where (density(n) >= 0.5 and i < size(i) - m) + csr')
    expect(format.params.map((p) => p.name)).toEqual(['n', 'm'])
    expect(bare(parseFormatExpression(format.name, formats).format)).toEqual(bare(format))
  })

  test('one part with a condition is a composition, which may omit elements', () => {
    const { format } = parseFormatExpression('csr where (i < j)', formats)
    expect(format.kind).toBe('composition')
  })

  test.each([
    ['', 'parse/unexpected'],
    ['bsr(', 'parse/unclosed'],
    ['brs(2)', 'check/unknown-format'],
    ['bsr(n)', 'check/unknown-name'],
    ['bsr(2, 3)', 'check/arguments'],
    ['bsr(0.5)', 'check/coordinate-type'],
    ['vbr(1, c)', 'check/argument-type'],
    ['csr + bsr(2)', 'check/rest-not-last'],
    ['bsr(2) where (i) + csr', 'check/condition'],
    ['bsr(2) where (i < 3) + brs(2)', 'check/unknown-format'],
    ['bsr(2) where (segments(1) < 3) + csr', 'check/not-given'],
  ])('%s is rejected: %s', (text, code) => {
    const said = (): unknown => parseFormatExpression(text, formats)
    expect(said).toThrow(SptError)
    expect(said).toThrow(code)
  })
})

test('a composition may name formats declared after it, and not itself through them', () => {
  const text = (second: string) => `
    format a over (i, j) { part b where (i < j) part csr }
    format b over (i, j) { part ${second} }`
  expect(read(FORMATS + text('csr')).formats.get('b')).toBeDefined()
  expect(errors(FORMATS + text('a')).map((d) => d.code)).toEqual(['check/format-cycle'])
})

test('a program with displaced words is accepted or rejected, and never crashes the parser', () => {
  const pieces = FORMATS.split(/\b/)
  const words = pieces.flatMap((x, k) => (/\w/.test(x) ? [k] : []))
  const place = fc.constantFrom(...words)
  let rejected = 0
  fc.assert(
    fc.property(fc.array(fc.tuple(place, place), { minLength: 1, maxLength: 2 }), (swaps) => {
      const text = [...pieces]
      for (const [to, from] of swaps) text[to] = pieces[from]!
      try {
        read(text.join(''))
      } catch (e) {
        expect(e).toBeInstanceOf(SptError)
        if ((e as SptError).diagnostics[0]!.code.startsWith('check/')) rejected++
      }
    }),
    { numRuns: runs(300) },
  )
  expect(rejected).toBeGreaterThan(10)
})

function only(text: string): AnyFormat {
  const [f] = read(text).formats.values()
  if (!f) throw new Error('no format')
  return f
}
function read1(name: string): unknown {
  return { kind: 'var', name, dtype: 'index' }
}
