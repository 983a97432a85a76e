/** One text for tensors of any order: what it stands for, what it can hold, and what is said about mistakes in it. */
import { describe, expect, it } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { render } from '../../src/ast/diagnostics/render.ts'
import { formatOfOrder } from '../../src/ir/formats/format.ts'
import { coords, type SptError } from '../../src/node.ts'
import { refusal } from '../support/refusal.ts'

const tree = `format tree over (d...) {
  axis o[0] = sparse_variable(d[0])
  axis o[k] = sparse_variable(o[k - 1], d[k]) for k from 1
  map (d...) -> (d...)
  inverse (o...) -> (o...)
}
`
/** The same for three dimensions, by hand. */
const byHand = `format tree over (d0, d1, d2) {
  axis o0 = sparse_variable(d0)
  axis o1 = sparse_variable(o0, d1)
  axis o2 = sparse_variable(o1, d2)
  map (d0, d1, d2) -> (d0, d1, d2)
  inverse (o0, o1, o2) -> (o0, o1, o2)
}
`

const withoutSpans = (x: unknown): unknown =>
  JSON.parse(JSON.stringify(x, (key, value) => (key === 'span' ? undefined : value)))

const cube = (order: number) =>
  coords(
    Array.from({ length: order }, (_, k) => 4 + k),
    Array.from({ length: order }, (_, k) => Int32Array.of(3, 0, (k * 2) % 4, 0)),
    Float32Array.of(1, 2, 3, 4),
  )

const points = (t: { coords: readonly Int32Array[]; values: ArrayLike<number> | null }): string[] =>
  Array.from(t.coords[0]!, (_, e) => `${t.coords.map((c) => c[e]).join()}=${t.values?.[e]}`).sort()

/** The points of `cube`, equal coordinates added up. */
const summed = (order: number): string[] => {
  const at = (f: (k: number) => number): string => Array.from({ length: order }, (_, k) => f(k)).join()
  return [`${at(() => 3)}=1`, `${at(() => 0)}=6`, `${at((k) => (k * 2) % 4)}=3`].sort()
}

/** The diagnostic of a text, as it is read. */
const complaint = (text: string): string => {
  const e = refusalOf(() => parseProgram(text))
  return render(e.diagnostics, [{ name: 'text.spt', text }])
}
const refusalOf = (work: () => unknown): SptError => {
  try {
    work()
  } catch (e) {
    return e as SptError
  }
  throw new Error('nothing was refused')
}
const format = (body: string, over = 'd...'): string => `format f over (${over}) {\n${body}\n}\n`
const IDENTITY = 'map (d...) -> (d...)\ninverse (o...) -> (o...)'

describe('a list of dimensions', () => {
  it('expands to the hand-written declaration', () => {
    const listed = parseProgram(tree).formats.get('tree')!
    const plain = parseProgram(byHand).formats.get('tree')!
    expect(withoutSpans(formatOfOrder(listed, 3))).toEqual(withoutSpans(plain))
    expect(formatOfOrder(listed, 3)).toBe(formatOfOrder(listed, 3))
    expect(formatOfOrder(listed, 2).over).toEqual(['d0', 'd1'])
  })

  it('stands next to single dimensions, and axes in several lists', () => {
    const text = `format slices(b) over (r, d...) {
      axis ro = dense_fixed(r)
      axis o[0] = sparse_variable(ro, ceildiv(d[0], b))
      axis o[k] = sparse_variable(o[k - 1], ceildiv(d[k], b)) for k from 1
      axis e[k] = dense_fixed(b) for k from 0 to order(d) - 1
      map (r, x...) -> (r, x[k] / b for k from 0, x[k] % b for k from 0)
      inverse (ro, o..., e...) -> (ro, o[k] * b + e[k] for k from 0)
    }`
    const slices = parseProgram(text).format('slices', 2)
    for (const order of [2, 3, 4]) {
      const t = cube(order)
      const stored = slices.convert(t)
      expect(stored.parts[0]!.axes).toHaveLength(2 * order - 1)
      expect(points(stored.toCoords())).toEqual(points(slices.withOrder(order).convert(t).toCoords()))
      expect(points(stored.toCoords())).toEqual(summed(order))
    }
    expect(refusalOf(() => slices.convert(cube(1))).diagnostics[0]).toMatchObject({
      code: 'format/order',
      expected: '2 dimensions or more',
    })
  })

  it('in conditions, queries and compositions, of the first format also in place', () => {
    const text = `${tree}
    format heavy(n) over (d...) {
      part top = tree where (top(n by d[0]) and count(d... by d[k] for k from 0) == 1)
      part tree
    }
    format ranges over (x...) { partition x[1] into 2 { part heavy(1) } }`
    const program = parseProgram(text)
    for (const order of [2, 3, 5])
      for (const written of [
        'heavy(1)',
        'ranges',
        'tree where (d[order(d) - 1] < 2 and size(d[0]) > 1) + tree',
      ]) {
        const f = program.format(written)
        expect(points(f.convert(cube(order)).toCoords())).toHaveLength(3)
        expect(f.withOrder(order).parts.length).toBe(written === 'ranges' ? 4 : 2)
      }
    const [low, high] = program.format('tree where (d[0] < 1) + tree').describe(cube(3)).parts
    expect([low!.stored, high!.stored]).toEqual([2, 1])
  })

  it('stores a tensor in a kernel', async () => {
    const kernel = `${tree}
    kernel sums(m: size, n: size, l: size, d: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis k = sparse_variable(j, l)
      axis f = dense_fixed(d)
      buffer A: f32[i, j, k, f] in
      buffer S: f32[i, f] out
      iterate sum [i, j, k, f] as SRRS { S[i, f] += A[i, j, k, f] }
    }
    schedule sums.stored { A as tree; reorder (o0, f, o1, o2) }`
    const { plan } = parseProgram(kernel).kernel('sums').schedule('stored').compilation
    expect(plan.steps.length).toBeGreaterThan(0)
  })

  it('requires the order if parts depend on it', () => {
    const open = parseProgram(tree).format('tree')
    expect(open.text).toBe('tree')
    expect(refusal(() => open.dimensions).code).toBe('api/order')
    expect(open.withOrder(2).dimensions).toEqual(['d0', 'd1'])
    expect(refusal(() => open.withOrder(-1)).code).toBe('api/argument')
  })
})

describe('mistakes', () => {
  it.each([
    [
      'a list without an index',
      format(`axis o[0] = sparse_variable(d)\n${IDENTITY}`),
      'check/list-without-index',
      'd',
    ],
    [
      'copies of one name',
      format(`axis o = dense_fixed(d[k]) for k from 0\n${IDENTITY}`),
      'check/list-without-index',
      'o',
    ],
    [
      'a parent of no list',
      format(
        `axis o[0] = dense_fixed(d[0])\naxis o[k] = sparse_variable(p[k - 1], d[k]) for k from 1\n${IDENTITY}`,
      ),
      'check/unknown-list',
      'p[k - 1]',
    ],
    [
      'an index below',
      format(`axis o[k] = sparse_variable(o[k - 1], d[k]) for k from 0\n${IDENTITY}`),
      'check/list-index',
      'k - 1',
    ],
    [
      'an index above',
      format(`axis o[k] = sparse_variable(d[k + 1]) for k from 0\n${IDENTITY}`),
      'check/list-index',
      'k + 1',
    ],
    [
      'a gap',
      format(`axis o[0] = dense_fixed(d[0])\naxis o[2] = dense_fixed(d[1])\n${IDENTITY}`),
      'check/list-index',
      'o[0]',
    ],
    [
      'a number that is not known',
      `format f(b) over (d...) {\naxis o[b] = dense_fixed(d[0])\n${IDENTITY}\n}`,
      'check/list-number',
      'b',
    ],
    [
      'a number that is taken',
      format(`axis o[d] = dense_fixed(d[0]) for d from 0\n${IDENTITY}`),
      'check/duplicate',
      'd',
    ],
    [
      'too many copies',
      format(`axis o[k] = dense_fixed(1) for k from 0 to 1000000000\n${IDENTITY}`),
      'check/list-range',
      'for k from 0 to 1000000000',
    ],
    [
      'an index far above',
      format(`axis o[2147483647] = sparse_variable(d[0])\n${IDENTITY}`),
      'check/list-range',
      '2147483647',
    ],
    [
      'copies far apart',
      format(`axis o[k * 1000000] = sparse_variable(d[k]) for k from 1\n${IDENTITY}`),
      'check/list-range',
      'k * 1000000',
    ],
    [
      'no end',
      format('axis o[k] = dense_fixed(i) for k from 0\nmap (i) -> (i)\ninverse (o...) -> (o[0])', 'i'),
      'check/list-range',
      'for k from 0',
    ],
    [
      'two lists',
      format(`axis o[k] = dense_fixed(d[k]) for k from 0\n${IDENTITY}`, 'd..., e...'),
      'check/list-twice',
      'e',
    ],
    [
      'a list of two meanings',
      format(`axis d[k] = dense_fixed(2) for k from 0\n${IDENTITY}`),
      'check/duplicate',
      'd[k]',
    ],
    [
      'a list in a map',
      format('axis o[k] = dense_fixed(d[k]) for k from 0\nmap (d) -> (d...)\ninverse (o...) -> (o...)'),
      'check/list-without-index',
      'd',
    ],
    [
      'an unknown list in a map',
      format('axis o[k] = dense_fixed(d[k]) for k from 0\nmap (d...) -> (x...)\ninverse (o...) -> (o...)'),
      'check/unknown-list',
      'x',
    ],
    [
      'no list',
      format('axis o = dense_fixed(order(i))\nmap (i) -> (i)\ninverse (o) -> (o)', 'i'),
      'check/unknown-list',
      'order(i)',
    ],
    ['a kernel', 'kernel k(n: size) {\n  axis i[0] = dense_fixed(n)\n}', 'parse/list', 'i[0]'],
    [
      'a kernel with copies',
      'kernel k(n: size) {\n  axis i = dense_fixed(n) for k from 0\n}',
      'parse/list',
      'for k from 0',
    ],
    [
      'a spread in a kernel',
      'kernel k(n: size) {\n axis i = dense_fixed(n)\n buffer y: f32[i] out\n iterate a [i] as S { y[i] = exp(i...) }\n}',
      'check/list-here',
      'i...',
    ],
  ] as const)('%s', (_, text, code, marked) => {
    const { diagnostics } = refusalOf(() => parseProgram(text))
    const found = diagnostics.find((d) => d.code === code)
    expect(found, complaint(text)).toBeDefined()
    expect(text.slice(found!.span!.start, found!.span!.end)).toBe(marked)
  })

  it('a tensor of too low an order', () => {
    const text = format(`axis o[k] = dense_fixed(d[k]) for k from 0\n${IDENTITY}\nwhere (d[2] < 9)`)
    const program = parseProgram(text)
    expect(points(program.format('f').convert(cube(3)).toCoords())).toHaveLength(3)
    const refused = refusalOf(() => program.format('f').convert(cube(2)))
    const { code, message, span } = refused.diagnostics[0]!
    expect(code).toBe('check/list-index')
    expect(message).toBe('there is no d[2]: the list d has 2 elements here')
    expect(text.slice(span!.start, span!.end)).toBe('2')
  })

  it('an impossible order', () => {
    const text = tree.replaceAll('tree', 'f')
    const family = parseProgram(text).format('f')
    expect(() => family.withOrder(65)).toThrow('format f is over (d...), and this tensor has 65 dimensions')
    expect(() => family.withOrder(1e9)).toThrow('format/order')
  })

  it('a part for another order', () => {
    const text = `format pair over (i, j) { axis a = dense_fixed(i); axis b = dense_fixed(j)
      map (i, j) -> (i, j); inverse (a, b) -> (a, b) }
    format f over (d...) { part pair }`
    expect(complaint(text)).toContain('format pair is over (i, j), and format f over (d0, d1, d2, d3)')
  })

  it('a recursive format', () => {
    expect(complaint('format a over (d...) { part b }\nformat b over (d...) { part a }')).toContain(
      'check/format-cycle',
    )
  })
})
