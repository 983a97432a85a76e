import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { elaborate } from '../../src/elaborate/index.ts'
import { instantiate } from '../../src/formats/instance/instantiate.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { ceildiv, div, int, mod, variable } from '../../src/ir/expressions/expr.ts'
import { freeVars } from '../../src/ir/expressions/expr-tree.ts'
import { keyOf } from '../../src/ir/expressions/structural-equality.ts'
import type { Format, Instance } from '../../src/ir/formats/format.ts'
import { segmentsOf } from '../../src/ir/formats/format-tables.ts'
import type { PartTree } from '../../src/ir/formats/part-tree.ts'
import { programOf } from '../../src/schedule/steps/language.ts'
import { runs, scaled } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { refusal } from '../support/refusal.ts'
import { remapParts } from '../support/remap-parts.ts'
import { denseFixed, sparseVariable } from './arbitrary.ts'
import { bijection, holdsAt, mutated, points } from './bijections.ts'
import { givenFor, matrices, written } from './user-formats.ts'

const BASE = `format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format ell(w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format pieces(w) over (i, j) {
  axis io = sparse_variable(i) nonunique
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format band(l, u = l) over (i, j) {
  axis io = dense_fixed(i)
  axis bo = dense_fixed(l + u + 1)
  map (i, j) -> (i, j - i + l)
  inverse (io, bo) -> (io, io + bo - l)
  where (i - j <= l and j - i <= u)
}
format cut(rows: list) over (i, j) {
  axis io = dense_fixed(segments(rows))
  axis ii = dense_variable(io, i)
  axis jo = sparse_variable(ii, j)
  map (i, j) -> (find(rows, i), i - rows[find(rows, i)], j)
  inverse (io, ii, jo) -> (rows[io] + ii, jo)
}
`
const of = (text: string, ...args: readonly (number | string)[]): Instance => written(BASE + text, ...args)
const labels = (i: Instance): string[] => i.parts.map((p) => p.label)
const codeOf = (f: () => unknown): string => refusal(f).code

describe('parts', () => {
  it('of one format: no label, and a leaf', () => {
    const one = of('format x over (i, j) { part csr }')
    expect(labels(one)).toEqual([''])
    expect(one.tree).toEqual({ kind: 'leaf', part: 0 })
    expect(one.parts[0]!.instance.order).toEqual(['io', 'jo'])
  })

  it('are labelled by their distinguishing conditions, from the root down', () => {
    const text = `format x(c, k) over (i, j) {
      partition j into c as p {
        bucket i by length into 1, 2 .. 2 ^ k as width split {
          part top = pieces(width) where (value > 0)
          part pieces(width)
          }
      }
    }`
    const x = of(text, 2, 2)
    const buckets = ['w1', 'w2', 'w4'].flatMap((w) => [`${w}_top`, `${w}_pieces`])
    expect(labels(x)).toEqual(['p0', 'p1'].flatMap((p) => buckets.map((b) => `${p}_${b}`)))
    expect(labels(of(text, 1, 2))).toEqual(buckets)
    expect(x.text).toBe('x(2, 2)')
    const last = x.parts.at(-1)!.instance
    expect(last.text).toBe('pieces(4)')
    expect(last.order).toEqual(['io_p1_w4_pieces', 'jo_p1_w4_pieces'])
    expect([...last.constants]).toEqual([
      ['c', 2],
      ['k', 2],
      ['p', 1],
      ['width', 4],
      ['w', 4],
    ])
  })

  it('have labels of their own, and measured sizes too', () => {
    const x = of('format x over (i, j) { part ell where (i < j) part ell where (i > j) part ell(3) }')
    expect(labels(x)).toEqual(['ell', 'ell_2', 'ell_3'])
    expect(x.parts.map((p) => p.instance.measured.map((m) => m.name))).toEqual([['w_ell'], ['w_ell_2'], []])
    const shared = of('format x(w: size) over (i, j) { part ell(w) where (i < j) part ell(w) }')
    expect(shared.parts.map((p) => p.instance.measured.map((m) => m.name))).toEqual([['w'], ['w']])
    expect(shared.parts[1]!.instance.axes[1]).toMatchObject({ width: variable('w') })
  })

  it('nest: a composition can be a part', () => {
    const x = of(`format inner(t: real) over (i, j) { part a = csr where (value >= t) part b = csr }
      format x over (i, j) { part inner(0.5) where (i == j) part rest = inner(2) }`)
    expect(labels(x)).toEqual(['inner_a', 'inner_b', 'rest_a', 'rest_b'])
    expect(x.parts[0]!.instance.constants.get('t')).toBe(0.5)
    expect(x.parts[2]!.instance.constants.get('t')).toBe(2)
  })

  it('evaluate each query once per level', () => {
    const names: string[] = []
    const look = (t: PartTree): void => {
      if (t.kind === 'leaf') return
      names.push(...t.queries.map((q) => q.name))
      for (const c of t.kind === 'cases' ? t.cases.map((y) => y.child) : t.children) look(c)
    }
    const few = 'count(j by i) <= 2'
    look(
      of(
        `format x over (i, j) { part csr where (not (${few}) and rank(j by i) == 0) part ell where (${few}) part csr }`,
      ).tree,
    )
    expect(names).toEqual(
      ['count_1#0', 'rank_1#0'].map((n) => expect.stringMatching(n.replace('_1', '\\w*'))),
    )
    names.length = 0
    look(
      of(`format y over (i, j) { part ell where (${few}) part csr }
      format x over (i, j) { part y where (${few}) part csr }`).tree,
    )
    expect(names).toHaveLength(2)
    expect(new Set(names).size).toBe(2)
  })
})

describe('buckets and ranges', () => {
  const bucket = (widths: string, split = ''): Instance =>
    of(`format x(z) over (i, j) { bucket i by length into ${widths} as w ${split} { part pieces(w) } }`, 0)

  it('widths double up to the end, which is a width', () => {
    expect(labels(bucket('1, 2 .. 2 ^ 5'))).toEqual(['w1', 'w2', 'w4', 'w8', 'w16', 'w32'])
    expect(labels(bucket('3 .. 20'))).toEqual(['w3', 'w6', 'w12', 'w20'])
    expect(labels(bucket('1 .. 2 ^ z'))).toEqual([''])
    expect(labels(bucket('2, 5, 6 .. 12'))).toEqual(['w2', 'w5', 'w6', 'w12'])
  })

  it('rejects widths that do not ascend, and meaningless numbers', () => {
    for (const widths of ['2 + z, 2', '4 + z, 1', '4 + z .. 2', 'z, 1', '2 ^ (z + 40)', '2 ^ (z - 1)'])
      expect(
        codeOf(() => bucket(widths)),
        widths,
      ).toBe('format/bucket-widths')
    const ranges = (n: number) => () => of('format x(n) over (i, j) { partition j into n { part csr } }', n)
    expect(codeOf(ranges(0))).toBe('format/partition')
    expect(codeOf(ranges(-3))).toBe('format/partition')
    expect(ranges(256)().parts.length).toBe(256)
    expect(codeOf(ranges(257))).toBe('format/too-many-parts')
    expect(codeOf(ranges(1e9))).toBe('format/too-many-parts')
    const nested = 'format x over (i, j) { partition i into 20 { partition j into 20 { part csr } } }'
    expect(codeOf(() => of(nested))).toBe('format/too-many-parts')
    expect(labels(ranges(1)())).toEqual([''])
    expect(ranges(1)().tree).toEqual({ kind: 'leaf', part: 0 })
  })

  /** What each part should hold, one coordinate after the other. */
  const expected = (
    coords: readonly Int32Array[],
    n: number,
    c: number,
    widths: readonly number[],
  ): Map<string, Set<string>> => {
    const out = new Map<string, Set<string>>()
    const rows = new Map<string, Set<number>>()
    const range = (j: number): number => Math.floor(j / Math.ceil(n / c))
    coords[0]!.forEach((i, e) => {
      const key = `${range(coords[1]![e]!)} ${i}`
      rows.set(key, (rows.get(key) ?? new Set()).add(coords[1]![e]!))
    })
    const last = widths.at(-1)!
    for (const [key, cols] of rows) {
      const [p, i] = key.split(' ')
      const sorted = [...cols].sort((a, b) => a - b)
      for (let at = 0; at < sorted.length; at += last) {
        const piece = sorted.slice(at, at + last)
        const w = widths.find((x) => piece.length <= x)!
        const one = c === 1 && widths.length === 1
        const part = one ? '' : c === 1 ? `w${w}` : `p${p}_w${w}`
        for (const j of piece) out.set(part, (out.get(part) ?? new Set()).add(`${i},${j}`))
      }
    }
    return out
  }

  it('assign each piece of a row to the first width that holds it', () => {
    const text = `format x(c, k) over (i, j) {
      partition j into c { bucket i by length into 1 .. 2 ^ k as w split { part pieces(w) } }
    }`
    const instances = [1, 2, 3].map((c) => [0, 1, 2].map((k) => of(text, c, k)))
    fc.assert(
      fc.property(matrices, fc.constantFrom(1, 2, 3), fc.constantFrom(0, 1, 2), (t, c, k) => {
        const x = instances[c - 1]![k]!
        const parts = remapParts(x, t.coords, null, givenFor(t.shape))
        const widths = Array.from({ length: k + 1 }, (_, b) => 2 ** b)
        const found = new Map<string, Set<string>>()
        parts.forEach(({ entries }, p) => {
          const at = entries ?? Int32Array.from(t.coords[0]!, (_, e) => e)
          if (at.length === 0) return
          found.set(
            x.parts[p]!.label,
            new Set(Array.from(at, (e) => `${t.coords[0]![e]},${t.coords[1]![e]}`)),
          )
        })
        expect(found).toEqual(expected(t.coords, t.shape[1]!, c, widths))
      }),
      { numRuns: runs(150) },
    )
  })

  it('without `split`, reject rows that are too long', () => {
    const t = { coords: [Int32Array.of(0, 0, 0), Int32Array.of(0, 1, 2)], shape: [1, 3] }
    const split = (x: Instance): unknown => remapParts(x, t.coords, null, givenFor(t.shape))
    expect(codeOf(() => split(bucket('1, 2')))).toBe('format/leak')
    split(bucket('1, 2', 'split'))
  })
})

describe('arguments', () => {
  it('are numbers, names of lists and sets, defaults', () => {
    expect(of('format x(l) over (i, j) { part band(l) }', 2).parts[0]!.instance.constants.get('u')).toBe(2)
    const cut = of('format x(r: list) over (i, j) { part cut(r) }', 'steps')
    expect(cut.given).toEqual([{ name: 'steps', kind: 'list' }])
    const part = cut.parts[0]!.instance
    expect(part.tables).toMatchObject([{ name: 'rows', kind: 'list', source: 'steps', fill: variable('m') }])
    expect(part.axes[0]!.extent).toEqual(variable(segmentsOf('steps')))
    expect(part.queries).toMatchObject([{ kind: 'find', list: 'steps' }])
    expect(of('format x(own: list) over (i, j) { part cut(own) }').given).toEqual([
      { name: 'own', kind: 'list' },
    ])
    expect(of('format x(m: set) over (i, j) { part csr where (held(m)) part csr }').given).toEqual([
      { name: 'm', kind: 'set' },
    ])
  })

  it('without a matching parameter are rejected', () => {
    const x =
      'format x(b, t: real = 0.5, m: set) over (i, j) { part csr where (held(m) and value > t) part pieces(b) }'
    expect(codeOf(() => of(x))).toBe('format/arguments')
    expect(codeOf(() => of(x, 1, 1, 'm', 4))).toBe('format/arguments')
    expect(codeOf(() => of(x, 1.5))).toBe('format/argument-kind')
    expect(codeOf(() => of(x, 'b'))).toBe('format/argument-kind')
    expect(codeOf(() => of(x, 1, 't'))).toBe('format/argument-kind')
    expect(codeOf(() => of(x, 1, Number.NaN))).toBe('format/argument-kind')
    expect(codeOf(() => of(x, 1, 0.5, 3))).toBe('format/argument-kind')
    expect(codeOf(() => of(x, 2 ** 40))).toBe('format/argument-kind')
    expect(of(x, 1, 1e-3, 'mask').text).toBe('x(1, 0.001, mask)')
    const both = 'format x(r: list, m: set) over (i, j) { part cut(r) where (held(m)) part csr }'
    expect(codeOf(() => of(both, 'same', 'same'))).toBe('format/argument-kind')
  })

  it('that give an invalid axis are rejected', () => {
    expect(codeOf(() => of('format x(w) over (i, j) { part pieces(w) }', 0))).toBe('format/extent')
    expect(codeOf(() => of('format x(l) over (i, j) { part band(l, l) part csr }', -1))).toBe('format/extent')
    const sorted = `format x(s) over (i, j) {
      sort i by -count(j by i) within s -> (place, row)
      axis io = dense_fixed(i)
      axis jo = sparse_variable(io, j)
      map (i, j) -> (place[i], j)
      inverse (io, jo) -> (row[io], jo)
    }`
    expect(codeOf(() => of(sorted, 0))).toBe('format/sort-window')
    expect(of(sorted, 4).parts[0]!.instance.sorts[0]).toMatchObject({ dim: 'row', within: int(4) })
    const divides = 'format x(s) over (i, j) { part csr where (i % s == 0) part csr }'
    expect(codeOf(() => of(divides, 0))).toBe('format/division-by-zero')
  })

  it('are substituted once: axes of a kernel may have names of parameters', () => {
    const { formats } = elaborate(
      programOf({
        name: 'test.spt',
        text: `format blocks(b) over (i, j) {
          axis io = dense_fixed(ceildiv(i, b))
          axis jo = sparse_variable(io, ceildiv(j, b))
          axis ii = dense_fixed(b)
          axis ji = dense_fixed(b)
          map (i, j) -> (i / b, j / b, i % b, j % b)
          inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
        }`,
      }),
    )
    const over: readonly StoredAxis[] = [
      { ...denseFixed('j'), extent: variable('i') },
      { ...sparseVariable('b', 'j'), extent: variable('io') },
    ]
    const use = (b: number): Instance =>
      instantiate({ format: formats.get('blocks')!, args: [b] }, over, (name) => `${name}_2`)
    const plain = [variable('j'), variable('b'), int(0), int(0)]
    expect(use(1).parts[0]!.instance.map.map(keyOf)).toEqual(plain.map(keyOf))
    const { map, axes } = use(3).parts[0]!.instance
    expect(keyOf(map[1]!)).toBe(keyOf(div(variable('b'), int(3))))
    expect(keyOf(map[2]!)).toBe(keyOf(mod(variable('j'), int(3))))
    expect(axes[1]).toMatchObject({ name: 'jo_2', parent: 'io_2', extent: ceildiv(variable('io'), int(3)) })
  })
})

describe('the condition under which a format stores an element', () => {
  it('includes the condition of its part', () => {
    const alone = of('format x over (i, j) { part band(1, 2) }')
    expect(alone.tree).toMatchObject({ kind: 'cases', cases: [{ child: { kind: 'leaf', part: 0 } }] })
    expect(alone.parts[0]!.instance.where).not.toBeNull()
    const both = of('format x over (i, j) { part band(1, 2) where (value > 0) part csr }')
    if (both.tree.kind !== 'cases') throw new Error(both.tree.kind)
    expect([...freeVars(both.tree.cases[0]!.where!)].sort()).toEqual(
      ['col', 'row', both.tree.queries[0]!.name].sort(),
    )
    expect(both.tree.cases[1]!.where).toBeNull()
  })

  it('has as many dimensions as are replaced', () => {
    const { formats } = elaborate(programOf({ name: 'test.spt', text: BASE }))
    const use = { format: formats.get('csr')!, args: [] }
    expect(codeOf(() => instantiate(use, [denseFixed('row', 3)], (n) => n))).toBe('format/over')
  })

  it('does not depend on measured sizes', () => {
    const open = 'format x(w: size) over (i, j) { part ell(w) where (count(j by i) <= w) part csr }'
    expect(codeOf(() => of(open))).toBe('format/condition')
    expect(labels(of(open, 3))).toEqual(['ell', 'csr'])
  })
})

describe('formats that are wrong for some tensor are rejected at declaration', () => {
  const blocks = (map: string, inverse: string): string => `format x(b) over (i, j) {
    axis io = dense_fixed(ceildiv(i, b))
    axis jo = dense_fixed(j)
    axis ii = dense_fixed(b)
    map (i, j) -> (${map})
    inverse (io, jo, ii) -> (${inverse})
  }`

  it('with a coordinate: maps', () => {
    expect(refusal(() => of(blocks('i / b, j, i % b', 'io * b + ii, ii'), 2))).toMatchObject({
      code: 'format/not-inverse',
      message: expect.stringContaining(
        '(row, col) = (0, 1) of 1 × 2 goes to (io, jo, ii) = (0, 1, 0), and that back to (0, 0)',
      ),
    })
    expect(refusal(() => of(blocks('i / b, j + 1, i % b', 'io * b + ii, jo - 1'), 2))).toMatchObject({
      code: 'format/map-range',
      message: expect.stringMatching(/\(row, col\) = \(\d+, \d+\) of \d+ × \d+ at \d+ on axis jo/),
    })
    // Only blocks of this size show it.
    expect(codeOf(() => of(blocks('i / b, j, min(i % b, 40)', 'io * b + ii, jo'), 64))).toBe(
      'format/not-inverse',
    )
    expect(of(blocks('i / b, j, i % b', 'io * b + ii, jo'), 64).text).toBe('x(64)')
  })

  it('with a coordinate: parts', () => {
    const parts = (a: string, b: string) => () =>
      of(`format x over (i, j) { part csr where (${a}) part ell where (${b}) }`)
    expect(refusal(parts('i <= j', 'i >= j'))).toMatchObject({
      code: 'format/overlap',
      message: expect.stringMatching(
        /\(row, col\) = \(\d+, \d+\) of \d+ × \d+ belongs to both csr and ell of x/,
      ),
    })
    const alike = refusal(() =>
      of('format x over (i, j) { part csr where (i <= j) part csr where (i >= j) }'),
    )
    expect(alike.message).toMatch(/belongs to both csr \(part 1\) and csr \(part 2\) of x/)
    expect(alike.labels).toMatchObject([{ text: 'csr (part 1) takes it, too' }])
    expect(refusal(parts('i < j', 'i > j'))).toMatchObject({
      code: 'format/leak',
      message: expect.stringContaining('(row, col) = (0, 0)'),
    })
    parts('i <= j', 'i > j')()
    parts('j % 3 == 0', 'j % 3 != 0')()
    const nested = `format inner over (i, j) { part csr where (i < j) part ell where (i > j) }
      format x over (i, j) { partition j into 2 { part csr where (i == j) part inner } }`
    of(nested)
    expect(codeOf(() => of(nested.replace('i == j', 'i == j + 1')))).toBe('format/leak')
  })

  it('for the elements of each part', () => {
    const upper = `format upper over (i, j) {
      axis io = dense_fixed(i)
      axis d = sparse_variable(io, j)
      map (i, j) -> (i, j - i)
      inverse (io, d) -> (io, io + d)
    }
    `
    of(`${upper}format x over (i, j) { part upper where (i <= j) part csr }`)
    of(`${upper}format x over (i, j) { part csr where (i > j) part upper }`)
    of(`${upper}format x(m: set) over (i, j) { part upper where (held(m)) part csr }`)
    expect(codeOf(() => of(`${upper}format x over (i, j) { part upper where (i <= j + 1) part csr }`))).toBe(
      'format/map-range',
    )
    expect(
      codeOf(() =>
        of(`${upper}format x over (i, j) { bucket i by length into 1, 2 as w split { part upper } }`),
      ),
    ).toBe('format/map-range')
    const half = `format half(p) over (i, j) {
      axis io = dense_fixed(i)
      axis jo = sparse_variable(io, ceildiv(j, 2))
      map (i, j) -> (i, j - p * ceildiv(size(j), 2))
      inverse (io, jo) -> (io, jo + p * ceildiv(size(j), 2))
    }
    `
    of(`${half}format x over (i, j) { partition j into 2 as p { part half(p) } }`)
    expect(
      codeOf(() => of(`${half}format x over (i, j) { partition j into 2 as p { part half(1 - p) } }`)),
    ).toBe('format/map-range')
  })

  it('with a coordinate: between block boundaries, and for any measured size', () => {
    const at = (map: string) => (): Instance =>
      of(`format x(h: size) over (i, j) {
        axis io = sparse_variable(h)
        axis jo = sparse_variable(io, j)
        map (i, j) -> (${map}, j)
        inverse (io, jo) -> (io, jo)
      }`)
    expect(at('i')().parts[0]!.instance.measured.length).toBe(1)
    // 12 is where blocks may begin, 49 is more than any extent that is tried whole.
    const { code, message } = refusal(at('select(i * i == 49, 5, i)'))
    expect(code).toBe('format/not-inverse')
    expect(message).toContain('(7, 0)')
    expect(refusal(at('i - 1'))).toMatchObject({ code: 'format/map-range', expected: '0 or more' })
  })

  it('real arithmetic in arguments is evaluated at once', () => {
    const part = (t: string, r: number): Instance =>
      of(
        `format dense(t: real) over (i, j) { part ell where (density(2) >= t) part csr }
        format x(r: real) over (i, j) { part dense(${t}) }`,
        r,
      )
    expect(part('(r + 0.5) / 2.0', 0.25).tree).toEqual(part('r', 0.375).tree)
  })

  it('formats that depend on the tensor are checked later', () => {
    of('format x over (i, j) { part csr where (value < 0) part ell where (value > 0) }')
    of('format x over (i, j) { part band(1, 1) }')
    const within = `format x over (i, j) {
      axis io = dense_fixed(i)
      axis jo = dense_fixed(4)
      map (i, j) -> (i, rank(j by i))
      inverse (io, jo) -> (io, jo)
      where (count(j by i) <= 4)
    }`
    of(within)
  })

  it('for any map: exactly the errors that brute force finds', () => {
    const small = points(5)
    let wrong = 0
    fc.assert(
      fc.property(choiceNumbers(40), (numbers) => {
        const c = new Choices(numbers)
        const right = bijection(c)
        const m = c.chance(70) ? mutated(right, c) : right
        const order = m.map.map((_, k) => `x${k}`)
        const format: Format = {
          kind: 'format',
          name: 'generated',
          params: [],
          over: ['i', 'j'],
          sorts: [],
          lists: [],
          queries: [],
          axes: order.map((name, k) => ({ ...denseFixed(name), extent: m.extents[k]! })),
          order,
          map: m.map,
          inverse: m.inverse,
          where: null,
          claims: [],
        }
        const over = [
          { ...denseFixed('i'), extent: variable('m') },
          { ...denseFixed('j'), extent: variable('n') },
        ]
        const accepted = (): boolean => {
          try {
            instantiate({ format, args: [] }, over, (name) => name)
            return true
          } catch {
            return false
          }
        }
        const [inverse, range] = holdsAt(m, small)
        if (!inverse || !range) wrong++
        // Larger samples may show what small ones do not.
        if (!inverse || !range) expect(accepted()).toBe(false)
        else if (m === right) expect(accepted()).toBe(true)
      }),
      { numRuns: runs(150) },
    )
    expect(wrong).toBeGreaterThan(scaled(20))
  })
})
