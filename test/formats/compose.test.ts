import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { add, binary, div, type Expr, int, mod, mul, sub, variable } from '../../src/ir/expressions/expr.ts'
import { substitute } from '../../src/ir/expressions/expr-tree.ts'
import { keyOf } from '../../src/ir/expressions/structural-equality.ts'
import type { Instance, PartInstance } from '../../src/ir/formats/format.ts'
import type { PartTree } from '../../src/ir/formats/part-tree.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { convertTensor, partsToCoords } from '../../src/storage/entries/stored-parts.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { runs, scaled } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { remapParts } from '../support/remap-parts.ts'
import {
  bitmap,
  denseFixed,
  denseUnder,
  denseVariable,
  lines,
  sparseFixed,
  sparseVariable,
} from './arbitrary.ts'
import { givenFor, matrices, matrix } from './user-formats.ts'

const [row, col] = [variable('row'), variable('col')]
const OVER: readonly StoredAxis[] = [
  { ...denseFixed('row'), extent: variable('m') },
  { ...sparseVariable('col', 'row'), extent: variable('n') },
]

/** A part that stores coordinates as they are. */
const plain = (label: string): PartInstance => ({
  label,
  instance: {
    text: 'plain',
    constants: new Map(),
    axes: [
      { ...denseFixed('io'), extent: variable('m') },
      { ...sparseVariable('jo', 'io'), extent: variable('n') },
    ],
    order: ['io', 'jo'],
    names: new Map(),
    arrayNames: new Map(),
    sorts: [],
    lists: [],
    queries: [],
    map: [row, col],
    inverse: [variable('io'), variable('jo')],
    where: null,
    tables: [],
    claims: [],
    measured: [],
  },
})
const composed = (tree: PartTree, parts: readonly PartInstance[]): Instance => ({
  text: 'composed',
  over: OVER,
  tree,
  parts,
  given: [],
})

const value = (e: Expr, i: number, j: number): number =>
  evaluate(
    e,
    new Map([
      ['row', i],
      ['col', j],
    ]),
  )

/** The coordinate that a message names. */
function coordinateIn(message: string): [number, number] {
  const found = /\(row, col\) = \((-?\d+), (-?\d+)\)/.exec(message)
  return [Number(found![1]), Number(found![2])]
}

const condition = fc
  .tuple(
    fc.constantFrom<Expr>(row, col, sub(col, row), mod(row, int(2)), div(col, int(3)), add(row, col)),
    fc.constantFrom('lt', 'ge', 'eq', 'ne'),
    fc.integer({ min: -2, max: 12 }),
  )
  .map(([e, op, c]) => binary(op as 'lt', e, int(c)))

/** All in one part. */
const alone = (part: PartInstance): Instance => composed({ kind: 'leaf', part: 0 }, [part])

describe('parts', () => {
  it('with random conditions store each coordinate once, or are rejected with a counterexample', () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(
        matrices,
        fc.array(condition, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        (t, wheres, rest) => {
          const labels = [...wheres.map((_, k) => `p${k}`), ...(rest ? ['rest'] : [])]
          const tree: PartTree = {
            kind: 'cases',
            queries: [],
            cases: labels.map((text, part) => ({
              text,
              where: wheres[part] ?? null,
              child: { kind: 'leaf', part },
            })),
          }
          const holding = (i: number, j: number): number[] => {
            const held = wheres.flatMap((w, k) => (value(w, i, j) !== 0 ? [k] : []))
            return held.length === 0 && rest ? [wheres.length] : held
          }
          const expected = [...t.coords[0]!].map((i, e) => holding(i, t.coords[1]![e]!))
          const instance = composed(tree, labels.map(plain))
          const split = () => remapParts(instance, t.coords, null, givenFor(t.shape))
          const wrong = expected.some((x) => x.length !== 1)
          if (wrong) {
            const { code, message } = refusal(split)
            const held = holding(...coordinateIn(message))
            seen.add(code)
            expect(code).toBe(held.length === 0 ? 'format/leak' : 'format/overlap')
            expect(held.length).not.toBe(1)
            // It is one of the stored ones, and both parts are named.
            const [i, j] = coordinateIn(message)
            expect([...t.coords[0]!].some((x, e) => x === i && t.coords[1]![e] === j)).toBe(true)
            if (held.length > 1) for (const k of held.slice(0, 2)) expect(message).toContain(`p${k}`)
            return
          }
          seen.add('split')
          split().forEach(({ entries }, k) => {
            const own = expected.flatMap((x, e) => (x[0] === k ? [e] : []))
            expect(entries === null ? expected.map((_, e) => e) : [...entries]).toEqual(own)
          })
        },
      ),
      { numRuns: runs(125) },
    )
    expect([...seen].sort()).toEqual(['format/leak', 'format/overlap', 'split'])
  })

  it('of nested numbers and conditions add up to the tensor', () => {
    const tree: PartTree = {
      kind: 'index',
      text: 'three ranges',
      queries: [],
      index: div(col, int(7)),
      total: true,
      implied: [],
      children: [
        { kind: 'leaf', part: 2 },
        {
          kind: 'cases',
          queries: [
            { name: 'length', kind: 'count', of: [col], by: [row] },
            { name: 'x', kind: 'value' },
          ],
          cases: [
            {
              text: 'short',
              where: binary('lt', variable('length'), int(2)),
              child: { kind: 'leaf', part: 0 },
            },
            {
              text: 'else',
              where: null,
              child: {
                kind: 'index',
                text: 'parity',
                queries: [{ name: 'r', kind: 'rank', of: [row], by: [] }],
                index: mod(variable('r'), int(2)),
                total: true,
                implied: [],
                children: [
                  { kind: 'leaf', part: 1 },
                  { kind: 'leaf', part: 3 },
                ],
              },
            },
          ],
        },
        { kind: 'leaf', part: 4 },
      ],
    }
    const parts = ['a', 'b', 'c', 'd', 'e'].map(plain)
    fc.assert(
      fc.property(matrices, (t) => {
        const values = { values: t.values!, dtype: t.dtype }
        const split = remapParts(composed(tree, parts), t.coords, values, givenFor(t.shape))
        const n = t.coords[0]!.length
        const owner = new Array<number>(n).fill(-1)
        split.forEach(({ entries }, k) => {
          for (const e of entries ?? owner.keys()) {
            expect(owner[e]).toBe(-1)
            owner[e] = k
          }
          if (entries) expect([...entries]).toEqual([...entries].sort((a, b) => a - b))
        })
        const cols = (e: number): number => Math.floor(t.coords[1]![e]! / 7)
        const middle = owner.flatMap((_, e) => (cols(e) === 1 ? [e] : []))
        const lengths = middle.map(
          (e) =>
            new Set(middle.filter((x) => t.coords[0]![x] === t.coords[0]![e]).map((x) => t.coords[1]![x]))
              .size,
        )
        const long = [...new Set(middle.filter((_, k) => lengths[k]! >= 2).map((e) => t.coords[0]![e]!))]
        long.sort((a, b) => a - b)
        owner.forEach((k, e) => {
          const at = middle.indexOf(e)
          const expected =
            cols(e) === 0
              ? 2
              : cols(e) === 2
                ? 4
                : lengths[at]! < 2
                  ? 0
                  : long.indexOf(t.coords[0]![e]!) % 2
                    ? 3
                    : 1
          expect(k).toBe(expected)
        })
        const stored = convertTensor(t, composed(tree, parts), givenFor(t.shape))
        const back = partsToCoords(stored)
        expect(lines(back.coords, back.values!, true)).toEqual(lines(t.coords, t.values!, false))
      }),
      { numRuns: runs(75) },
    )
  })

  it('are rejected if a number is out of range', () => {
    const tree: PartTree = {
      kind: 'index',
      text: 'two ranges',
      queries: [],
      index: div(col, int(2)),
      total: false,
      implied: [],
      children: [
        { kind: 'leaf', part: 0 },
        { kind: 'leaf', part: 1 },
      ],
    }
    const t = matrix(
      [2, 6],
      [
        [0, 1, 1],
        [1, 4, 1],
        [1, 5, 1],
      ],
    )
    expect(
      refusal(() => remapParts(composed(tree, [plain('a'), plain('b')]), t.coords, null, givenFor([2, 6]))),
    ).toMatchObject({
      code: 'format/leak',
      message: 'no part of composed holds (row, col) = (1, 4): it is beyond the last part of two ranges',
    })
  })
})

/** A bijection of a box: how coordinates go forth, and back, and the box they fill. */
interface Bijection {
  readonly map: readonly Expr[]
  /** Over variables `x0`, `x1`, …, one for each of `map`. */
  readonly inverse: readonly Expr[]
  readonly extents: readonly number[]
}

const x = (k: number): Expr => variable(`x${k}`)

/** One more step on coordinate k: a split, a skew, an affine permutation, an exchange. */
function step(b: Bijection, kind: number, k: number, c: number): Bijection {
  const at = k % b.map.length
  const extent = b.extents[at]!
  const other = (at + 1) % b.map.length
  const put = <T>(xs: readonly T[], ...ys: T[]): T[] => [...xs.slice(0, at), ...ys, ...xs.slice(at + 1)]
  const undo = (forms: readonly Expr[]): Expr[] => {
    const names = new Map(forms.map((e, d) => [`x${d}`, e]))
    return b.inverse.map((e) => substitute(e, names))
  }
  const same = b.map.map((_, d) => x(d))
  switch (kind % 4) {
    case 0: {
      const size = 1 + (c % 4)
      const later = (d: number): Expr => x(d < at ? d : d + 1)
      return {
        map: put(b.map, div(b.map[at]!, int(size)), mod(b.map[at]!, int(size))),
        inverse: undo(b.map.map((_, d) => (d === at ? add(mul(x(at), int(size)), x(at + 1)) : later(d)))),
        extents: put(b.extents, Math.ceil(extent / size), size),
      }
    }
    case 1: {
      if (other === at) return b
      const turn = (sign: 'add' | 'sub', e: readonly Expr[]): Expr =>
        mod(binary(sign, e[at]!, mul(int(1 + (c % 3)), e[other]!)), int(extent))
      return { ...b, map: put(b.map, turn('add', b.map)), inverse: undo(put(same, turn('sub', same))) }
    }
    case 2: {
      const units = Array.from({ length: extent }, (_, p) => p).filter((p) => gcd(p, extent) === 1)
      const p = units[c % Math.max(1, units.length)] ?? 1
      const q = Array.from({ length: extent }, (_, y) => y).find((y) => (y * p) % extent === 1 % extent) ?? 0
      const shift = c % 5
      return {
        ...b,
        map: put(b.map, mod(add(mul(b.map[at]!, int(p)), int(shift)), int(extent))),
        inverse: undo(put(same, mod(mul(sub(x(at), int(shift)), int(q)), int(extent)))),
      }
    }
    default: {
      const swapped = <T>(xs: readonly T[]): T[] =>
        xs.map((_, d) => xs[d === at ? other : d === other ? at : d]!)
      return { map: swapped(b.map), inverse: undo(swapped(same)), extents: swapped(b.extents) }
    }
  }
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b))

/** Axes of random kinds over a box: each is a root, or under the one before it. */
function axesOver(extents: readonly number[], picks: readonly number[]): StoredAxis[] {
  return extents.map((extent, k) => {
    const [name, parent] = [`x${k}`, `x${k - 1}`]
    const pick = k === 0 ? picks[k]! % 2 : picks[k]! % 8
    const axis = [
      denseFixed(name),
      sparseVariable(name, null),
      denseUnder(name, parent),
      sparseVariable(name, parent),
      denseVariable(name, parent),
      bitmap(name, parent),
      sparseFixed(name, parent),
      sparseVariable(name, parent, { unique: false }),
    ][pick]!
    return axis.kind === 'sparse_fixed'
      ? { ...axis, extent: int(extent), width: variable(`w${k}`) }
      : { ...axis, extent: int(extent) }
  })
}

interface Described {
  readonly instance: Instance
  readonly bijection: Bijection
  readonly tensor: CoordTensor
}

const described: fc.Arbitrary<Described> = fc
  .tuple(
    matrices.filter((t) => t.shape.every((n) => n > 0)),
    fc.array(fc.tuple(fc.nat(3), fc.nat(9), fc.nat(20)), { maxLength: 4 }),
    fc.array(fc.nat(100), { minLength: 6, maxLength: 6 }),
  )
  .map(([tensor, steps, picks]) => {
    const start: Bijection = { map: [row, col], inverse: [x(0), x(1)], extents: tensor.shape }
    const bijection = steps.reduce((b, [kind, k, c]) => step(b, kind, k, c), start)
    const axes = axesOver(bijection.extents, picks)
    const part: PartInstance = {
      label: '',
      instance: {
        ...plain('').instance,
        text: 'described',
        axes,
        order: axes.map((a) => a.name),
        map: bijection.map,
        inverse: bijection.inverse,
        measured: axes.flatMap((a) =>
          a.kind === 'sparse_fixed' ? [{ name: keyOf(a.width).split(':')[0]! }] : [],
        ),
      },
    }
    return { instance: composed({ kind: 'leaf', part: 0 }, [part]), bijection, tensor }
  })

describe('random descriptions', () => {
  it('round-trip every tensor', () => {
    const kinds = new Set<string>()
    fc.assert(
      fc.property(described, ({ instance, tensor }) => {
        for (const a of instance.parts[0]!.instance.axes) kinds.add(a.kind)
        const stored = convertTensor(tensor, instance, givenFor(tensor.shape))
        const back = partsToCoords(stored)
        expect(lines(back.coords, back.values!, true)).toEqual(lines(tensor.coords, tensor.values!, false))
      }),
      { numRuns: runs(250) },
    )
    expect(kinds.size).toBe(5)
  })

  it('with a wrong inverse are rejected with a counterexample', () => {
    let refused = 0
    fc.assert(
      fc.property(described, fc.nat(1), fc.integer({ min: -1, max: 1 }), (d, k, by) => {
        const [part] = d.instance.parts
        const inverse = d.bijection.inverse.map((e, at) =>
          at === k ? mul(add(e, int(by)), int(1 + by * by)) : e,
        )
        const wrong = { ...part!, instance: { ...part!.instance, inverse } }
        const place = () => remapParts(alone(wrong), d.tensor.coords, null, givenFor(d.tensor.shape))
        if (by === 0 || d.tensor.coords[0]!.length === 0) {
          place()
          return
        }
        const back = (i: number, j: number): number[] => {
          const there = d.bijection.map.map((e) => value(e, i, j))
          return inverse.map((e) => evaluate(e, new Map(there.map((v, at) => [`x${at}`, v]))))
        }
        const fails = [...d.tensor.coords[0]!].some((i, e) => {
          const j = d.tensor.coords[1]![e]!
          return back(i, j).join() !== `${i},${j}`
        })
        if (!fails) {
          place()
          return
        }
        refused++
        const { code, message } = refusal(place)
        expect(code).toBe('format/not-inverse')
        const at = coordinateIn(message)
        expect(back(...at)).not.toEqual(at)
        expect(message).toContain(`back to (${back(...at).join(', ')})`)
      }),
      { numRuns: runs(125) },
    )
    expect(refused).toBeGreaterThan(scaled(20))
  })

  it('with a map out of range are rejected with the coordinate', () => {
    const part = plain('')
    const high = { ...part, instance: { ...part.instance, map: [row, add(col, int(2))] } }
    const t = matrix(
      [2, 4],
      [
        [0, 1, 1],
        [1, 2, 1],
      ],
    )
    const { code, message } = refusal(() => remapParts(alone(high), t.coords, null, givenFor([2, 4])))
    expect(code).toBe('format/map-range')
    expect(message).toContain('(row, col) = (1, 2)')
    expect(message).toContain('jo is 4')
  })
})
