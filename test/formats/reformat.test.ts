import { describe, expect, it } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { runSync } from '../../src/ast/work.ts'
import { allocate } from '../../src/columns/allocate.ts'
import { Frame } from '../../src/columns/column-engine.ts'
import { bindArguments } from '../../src/formats/instance/format-arguments.ts'
import { formatInstance } from '../../src/formats/instance/instantiate-format.ts'
import { makeArrayNames } from '../../src/formats/instance/translate-names.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import type { Expr } from '../../src/ir/expressions/expr.ts'
import { add, ceildiv, constant, div, int, mod, mul, variable } from '../../src/ir/expressions/expr.ts'
import type { Format, FormatParam } from '../../src/ir/formats/format.ts'
import type { TypedArray } from '../../src/ir/values/arrays.ts'
import { assembleTrees } from '../../src/storage/assembly/tree-assembly.ts'
import { HOST } from '../../src/storage/engines/host/engine.ts'
import { refusal } from '../support/refusal.ts'
import { denseFixed, sparseFixed, sparseVariable } from './arbitrary.ts'

const v = variable
const param = (name: string, more: Partial<FormatParam> = {}): FormatParam => ({
  name,
  kind: 'integer',
  default: null,
  measured: false,
  ...more,
})

const PLAIN = { kind: 'format', sorts: [], queries: [], lists: [], where: null, claims: [] } as const

const bsr: Format = {
  ...PLAIN,
  name: 'bsr',
  params: [param('b')],
  over: ['i', 'j'],
  axes: [
    { ...denseFixed('io'), extent: ceildiv(v('i'), v('b')) },
    { ...sparseVariable('jo', 'io'), extent: ceildiv(v('j'), v('b')) },
    { ...denseFixed('ii'), extent: v('b') },
    { ...denseFixed('ji'), extent: v('b') },
  ],
  order: ['io', 'jo', 'ii', 'ji'],
  map: [div(v('i'), v('b')), div(v('j'), v('b')), mod(v('i'), v('b')), mod(v('j'), v('b'))],
  inverse: [add(mul(v('io'), v('b')), v('ii')), add(mul(v('jo'), v('b')), v('ji'))],
}

const ell: Format = {
  ...PLAIN,
  name: 'ell',
  params: [param('w', { measured: true })],
  over: ['i', 'j'],
  axes: [
    { ...denseFixed('io'), extent: v('i') },
    { ...(sparseFixed('jo', 'io') as StoredAxis & { kind: 'sparse_fixed' }), extent: v('j'), width: v('w') },
  ],
  order: ['io', 'jo'],
  map: [v('i'), v('j')],
  inverse: [v('io'), v('jo')],
}

/** The kernel's axes have other names than the format's dimensions. */
const over: StoredAxis[] = [
  { ...denseFixed('row'), extent: v('m') },
  { ...sparseVariable('col', 'row'), extent: v('n') },
]

function instantiateFormat(
  format: Format,
  args: readonly Expr[],
  axes: readonly StoredAxis[],
  rename = (name: string): string => name,
) {
  const bound = bindArguments(format, args, rename)
  const arrayNames = makeArrayNames(format, '', new Set(), rename)
  return formatInstance(format, bound, axes, { axis: rename, arrayNames, query: rename })
}

describe('instances of formats', () => {
  it('substitutes arguments, dimensions and names', () => {
    const f = instantiateFormat(bsr, [int(4)], over, (n) => `A_${n}`)
    expect(f.text).toBe('bsr(4)')
    expect(f.order).toEqual(['A_io', 'A_jo', 'A_ii', 'A_ji'])
    expect(f.axes[1]).toMatchObject({ name: 'A_jo', parent: 'A_io', extent: ceildiv(v('n'), int(4)) })
    expect(f.map[2]).toEqual(mod(v('row'), int(4)))
    expect(f.inverse[0]).toEqual(add(mul(v('A_io'), int(4)), v('A_ii')))
    expect(f.measured).toEqual([])
  })

  it('measures sizes without a value or default', () => {
    const open = instantiateFormat(ell, [], over, (n) => `A_${n}`)
    expect(open.measured.map((p) => p.name)).toEqual(['A_w'])
    expect(open.axes[1]).toMatchObject({ width: v('A_w') })
    expect(instantiateFormat(ell, [int(3)], over).axes[1]).toMatchObject({ width: int(3) })
    const half = param('c', { default: div(v('b'), int(2)) })
    const two = { ...bsr, params: [param('b'), half], inverse: [v('c'), v('jo')] }
    expect(instantiateFormat(two, [int(8)], over).inverse[0]).toEqual(int(4))
  })

  it('rejects wrong arguments', () => {
    expect(() => instantiateFormat(bsr, [], over)).toThrow('format/arguments: format bsr has 0')
    expect(() => instantiateFormat(bsr, [int(1), int(2)], over)).toThrow('format/arguments')
    expect(() => instantiateFormat(bsr, [int(2)], over.slice(1))).toThrow('format/over')
    expect(() => instantiateFormat(bsr, [int(0)], over)).toThrow(
      'format/division-by-zero: format bsr divides by b, which is 0',
    )
    expect(() => instantiateFormat(bsr, [int(-2)], over)).toThrow(
      'format/division-by-zero: format bsr divides by b, which is -2',
    )
    for (const x of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => instantiateFormat(bsr, [constant(x, 'f64')], over)).toThrow(
        `format/argument-kind: b of format bsr is given ${x}`,
      )
  })
})

/** A kernel over a sparse matrix, and a format whose masks have h × w bits. */
const MASKED = `format masked(h, w) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis jo = sparse_variable(io, ceildiv(j, w))
  axis e = bitmap(jo, h * w)
  map (i, j) -> (i / h, j / w, i % h * w + j % w)
  inverse (io, jo, e) -> (io * h + e / w, jo * w + e % w)
}
kernel sums(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate s [i, j] as SR { y[i] += A[i, j] }
}`

describe('counts beyond every type', () => {
  it('are reported exactly, or by a lower bound', () => {
    const kernel = parseProgram(MASKED).kernel()
    const messageOf = (f: () => unknown) => refusal(f).message
    const bits = (h: number, w: number) => messageOf(() => kernel.as('A', 'masked', h, w))
    expect(bits(64, 64)).toContain('masks of 4096 bits')
    expect(bits(65536, 65536)).toContain('masks of 4294967296 bits')
    expect(bits(2 ** 30, 2 ** 30)).toContain('masks of more than 9007199254740991 bits')
    expect(messageOf(() => allocate(2 ** 31, 'entries'))).toContain('2147483648 entries')
    expect(messageOf(() => allocate(2 ** 60, 'entries'))).toContain('more than 9007199254740991 entries')
  })
})

/** Levels over axes of which some sizes are open. */
function built(
  axes: readonly StoredAxis[],
  sizes: readonly [string, number][],
  open: string,
  coords: Int32Array[],
) {
  const frame = new Frame<TypedArray>(HOST, coords[0]!.length, new Map(sizes))
  for (const [k, a] of axes.entries()) frame.set(a.name, coords[k]!, false)
  const at = new Map(axes.map((a) => [a.name, v(a.name)]))
  return { ...runSync(assembleTrees(frame, axes, at, [{ name: open }])), sizes: frame.sizes }
}

describe('buildLevels', () => {
  it('uses the larger width for axes that share a measured width', () => {
    const axes: StoredAxis[] = [
      { ...denseFixed('i'), extent: v('k') },
      { ...(sparseFixed('j', 'i') as StoredAxis & { kind: 'sparse_fixed' }), extent: int(9), width: v('w') },
      { ...(sparseFixed('l', 'j') as StoredAxis & { kind: 'sparse_fixed' }), extent: int(9), width: v('w') },
    ]
    const coords = [Int32Array.of(3, 3, 0), Int32Array.of(1, 1, 8), Int32Array.of(0, 5, 2)]
    const { levels, size, sizes } = built(axes, [['k', 4]], 'w', coords)
    expect(sizes.get('w')).toBe(2)
    expect(levels.get('j')!.width).toBe(2)
    expect(size).toBe(16)
  })

  it('names a missing size', () => {
    const axes: StoredAxis[] = [{ ...denseFixed('i'), extent: add(v('m'), v('k')) }]
    expect(() => built(axes, [['m', 1]], 'k', [new Int32Array(0)])).toThrow(
      'bind/missing-size: missing size k (the extent of axis i depends on it)',
    )
  })
})
