/** One mistake each: the code, and what the message must name. */
import { describe, expect, it } from 'vitest'
import { outOfMemory } from '../../src/columns/allocate.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { buildStorage } from '../../src/storage/build-storage.ts'
import { scatterValues } from '../../src/storage/entries/locate.ts'
import { toCoords } from '../../src/storage/entries/stored-coords.ts'
import { validateStored } from '../../src/storage/ready/validate.ts'
import { restrict } from '../../src/storage/storage.ts'
import type { StoredTensor, ValueArray } from '../../src/storage/tensor.ts'
import { refusal } from '../support/refusal.ts'
import {
  bitmap,
  denseFixed,
  denseVariable,
  elementList,
  run,
  sparseFixed,
  sparseVariable,
} from './arbitrary.ts'

function check(f: () => unknown, code: string, ...words: string[]): void {
  const d = refusal(f)
  expect(d.code).toBe(code)
  for (const w of words) expect(`${d.message} | ${d.expected} | ${d.hint}`).toContain(w)
  expect(d.expected).toBeTruthy()
  expect(d.hint).toBeTruthy()
}

const csr = [denseFixed('i'), sparseVariable('j', 'i')]
const ell = [denseFixed('i'), sparseFixed('j', 'i')]
const bits = [denseFixed('i'), bitmap('j', 'i')]
const runs = [denseFixed('i'), run('j', 'i')]
const single = elementList('i', 'j')
const ragged = [denseFixed('i'), denseVariable('j', 'i')]
const I = (...x: number[]): Int32Array => Int32Array.from(x)

function bind(
  axes: readonly StoredAxis[],
  arrays: StoredTensor['arrays'],
  values: ValueArray | null = null,
  more: { shape?: number[]; widths?: ReadonlyMap<string, number> } = {},
) {
  const sizes = [3, 5, 4, 4]
  return validateStored(
    axes,
    { extents: new Map(axes.map((a, k) => [a.name, sizes[k]!])), widths: more.widths },
    { kind: 'stored', shape: more.shape ?? sizes.slice(0, axes.length), arrays, values, dtype: 'f32' },
  )
}

describe('ready-made arrays', () => {
  const good = { indptr: I(0, 2, 2, 4), indices: I(1, 4, 0, 3) }

  it('accepts valid arrays unchanged', () => {
    const s = bind(csr, { j: good }, new Float32Array(4))
    expect(s.levels.get('j')!.indices).toBe(good.indices)
    expect(bind(ell, { j: { indices: I(0, 1, 5, 5, 3, 5) } }).size).toBe(6)
    expect(bind([sparseVariable('i', null)], { i: { indices: I(0, 2) } }).levels.get('i')!.indptr).toEqual(
      I(0, 2),
    )
  })
  it('accepts unsorted and repeated indices if they are declared', () => {
    const loose = [denseFixed('i'), sparseVariable('j', 'i', { ordered: false, unique: false })]
    expect(bind(loose, { j: { indptr: I(0, 3, 3, 4), indices: I(4, 1, 4, 3) } }).size).toBe(4)
    const unordered = [denseFixed('i'), sparseVariable('j', 'i', { ordered: false })]
    expect(bind(unordered, { j: { indptr: I(0, 3, 3, 4), indices: I(4, 1, 3, 4) } }).size).toBe(4)
    const repeated = [denseFixed('i'), sparseVariable('j', 'i', { unique: false })]
    expect(bind(repeated, { j: { indptr: I(0, 3, 3, 4), indices: I(1, 1, 3, 4) } }).size).toBe(4)
  })

  const table: [string, string, () => unknown, string[]][] = [
    ['no indptr', 'bind/missing-array', () => bind(csr, { j: { indices: I(1) } }), ['j', 'indptr']],
    ['no indices', 'bind/missing-array', () => bind(ell, {}), ['j', 'indices']],
    ['arrays of an unknown axis', 'bind/extra-array', () => bind(csr, { j: good, k: good }), ['k']],
    ['indptr of a fixed level', 'bind/extra-array', () => bind(ell, { j: good }), ['j', 'indptr']],
    [
      'another array class',
      'bind/array-type',
      () => bind(csr, { j: { ...good, indices: [1, 4, 0, 3] as unknown as Int32Array } }),
      ['indices', 'j', 'Array', 'Int32Array'],
    ],
    [
      'short indptr',
      'bind/indptr-length',
      () => bind(csr, { j: { ...good, indptr: I(0, 2, 4) } }),
      ['j', '3', '4'],
    ],
    [
      'indptr from 1',
      'bind/indptr-start',
      () => bind(csr, { j: { ...good, indptr: I(1, 2, 2, 4) } }),
      ['j', '1', '0'],
    ],
    [
      'falling indptr',
      'bind/indptr-order',
      () => bind(csr, { j: { ...good, indptr: I(0, 3, 2, 4) } }),
      ['from 3 to 2', 'position 2'],
    ],
    [
      'overflowed indptr',
      'bind/indptr-order',
      () => bind(csr, { j: { ...good, indptr: I(0, 3, -2147483648, 4) } }),
      ['overflowed'],
    ],
    [
      'indptr that ends early',
      'bind/indptr-end',
      () => bind(csr, { j: { ...good, indptr: I(0, 2, 2, 3) } }),
      ['3', '4'],
    ],
    [
      'index over the extent',
      'bind/index-range',
      () => bind(csr, { j: { ...good, indices: I(1, 5, 0, 3) } }),
      ['5', 'position 1', '0 to 4'],
    ],
    [
      'negative index',
      'bind/index-range',
      () => bind(csr, { j: { ...good, indices: I(1, 4, -7, 3) } }),
      ['-7', 'position 2'],
    ],
    [
      'padding as -1',
      'bind/index-range',
      () => bind(ell, { j: { indices: I(0, -1, 5) } }),
      ['-1', 'the extent (5)'],
    ],
    [
      'unsorted row',
      'bind/unsorted',
      () => bind(csr, { j: { ...good, indices: I(4, 1, 0, 3) } }),
      ['from 4 to 1', 'position 1', 'unordered'],
    ],
    [
      'repeated index',
      'bind/duplicate',
      () => bind(csr, { j: { ...good, indices: I(1, 4, 3, 3) } }),
      ['3', 'position 3', 'nonunique'],
    ],
    [
      'repeated index in an unordered row',
      'bind/duplicate',
      () =>
        bind([denseFixed('i'), sparseVariable('j', 'i', { ordered: false })], {
          j: { indptr: I(0, 3, 3, 4), indices: I(4, 1, 4, 3) },
        }),
      ['4', 'position 2'],
    ],
    [
      'padding first',
      'bind/padding',
      () => bind(ell, { j: { indices: I(5, 0, 5, 5, 3, 5) } }),
      ['position 1', 'j'],
    ],
    [
      'stored under padding',
      'bind/padding',
      () => bind([...ell, sparseFixed('k', 'j')], { j: { indices: I(0, 5, 1) }, k: { indices: I(0, 1, 2) } }),
      ['k', 'position 1', 'j'],
    ],
    [
      'segment under padding',
      'bind/padding',
      () =>
        bind([...ell, denseVariable('k', 'j')], { j: { indices: I(0, 5, 1) }, k: { indptr: I(0, 1, 2, 3) } }),
      ['k', 'position 1', 'j'],
    ],
    [
      'uneven fixed width',
      'bind/indices-length',
      () => bind(ell, { j: { indices: I(0, 1, 2, 3) } }),
      ['j', '4', '3'],
    ],
    [
      'another width than given',
      'bind/width',
      () => bind(ell, { j: { indices: I(0, 1, 2) } }, null, { widths: new Map([['j', 2]]) }),
      ['j', '6', '2'],
    ],
    [
      'ragged row over the extent',
      'bind/lengths',
      () => bind(ragged, { j: { indptr: I(0, 6, 6, 6) } }),
      ['6', '5', 'j'],
    ],
    [
      'too few values',
      'bind/values-length',
      () => bind(csr, { j: good }, new Float32Array(3)),
      ['3', '4', 'j'],
    ],
    [
      'values of another class',
      'bind/value-type',
      () => bind(csr, { j: good }, new Float64Array(4)),
      ['Float64Array'],
    ],
    [
      'a mask that is too short',
      'bind/mask-length',
      () => bind(bits, { j: { indptr: I(0, 1, 1, 1), mask: I(1, 0) } }),
      ['j', '2 words', '3'],
    ],
    [
      'mask bits beyond the extent',
      'bind/mask-range',
      () => bind(bits, { j: { indptr: I(0, 1, 2, 2), mask: I(1, 32, 0) } }),
      ['j', 'from 5', 'position 1'],
    ],
    [
      'a mask that counts otherwise',
      'bind/mask-count',
      () => bind(bits, { j: { indptr: I(0, 1, 2, 2), mask: I(1, 3, 0) } }),
      ['j', '2 bits', 'position 1', 'counts 1'],
    ],
    [
      'too few starts of runs',
      'bind/starts-length',
      () => bind(runs, { j: { indptr: I(0, 1, 1, 1), starts: I(1, 0) } }),
      ['j', '2', '3'],
    ],
    [
      'a run beyond the extent',
      'bind/runs',
      () => bind(runs, { j: { indptr: I(0, 1, 3, 3), starts: I(1, 4, 0) } }),
      ['j', '4 to 5', 'position 1', '0 to 4'],
    ],
    [
      'a run that starts below 0',
      'bind/runs',
      () => bind(runs, { j: { indptr: I(0, 1, 3, 3), starts: I(-1, 0, 0) } }),
      ['j', '-1', 'position 0'],
    ],
    [
      'a singleton under an element without a coordinate',
      'bind/padding',
      () => bind(single, { i: { indices: I(0, 1) }, j: { indices: I(0, 5) } }),
      ['j', 'position 1', '5'],
    ],
    [
      'a coordinate twice on singleton axes',
      'bind/duplicate',
      () => bind(single, { i: { indices: I(0, 0) }, j: { indices: I(2, 2) } }),
      ['(0, 2)'],
    ],
    ['no mask', 'bind/missing-array', () => bind(bits, { j: { indptr: I(0, 0, 0, 0) } }), ['mask']],
    [
      'a mask where there is none',
      'bind/extra-array',
      () => bind(csr, { j: { ...good, mask: I(0) } }),
      ['j', 'mask'],
    ],
    [
      'another shape',
      'bind/shape',
      () => bind(csr, { j: good }, null, { shape: [3, 6] }),
      ['[3, 6]', '[3, 5]'],
    ],
    [
      'more elements than i32 counts',
      'bind/too-large',
      () =>
        validateStored(
          [denseFixed('i'), denseFixed('j')],
          {
            extents: new Map([
              ['i', 2 ** 31 - 1],
              ['j', 2 ** 23],
            ]),
          },
          { kind: 'stored', shape: [2 ** 31 - 1, 2 ** 23], arrays: {}, values: null, dtype: 'f32' },
        ),
      ['more than 9007199254740991 elements', 'at most'],
    ],
  ]
  it.each(table)('%s', (_, code, f, words) => check(f, code, ...words))
})

it('only allocation failures are reported as out of memory', () => {
  const bug = new TypeError('no function')
  expect(() => outOfMemory(bug, 3, 'positions')).toThrow(bug)
  expect(refusal(() => outOfMemory(new RangeError('no'), 3, 'positions')).code).toBe('bind/out-of-memory')
})

describe('coordinates', () => {
  const extents = new Map([
    ['i', 3],
    ['j', 5],
  ])
  const build = (coords: Int32Array[], axes: readonly StoredAxis[] = csr, more: object = {}) =>
    buildStorage({ axes, extents, coords, ...more })
  const at = [I(0, 2), I(1, 4)]

  const table: [string, string, () => unknown, string[]][] = [
    ['missing array', 'bind/coordinates', () => build([I(0)]), ['1', 'i, j']],
    ['unequal lengths', 'bind/coordinates', () => build([I(0), I(0, 1)]), ['j', '2', '1']],
    [
      'another class',
      'bind/coordinates',
      () => build([I(0), [0] as unknown as Int32Array]),
      ['j', 'Int32Array'],
    ],
    [
      '1-based columns',
      'bind/coordinate-range',
      () => build([I(0, 1), I(1, 5)]),
      ['entry 1', '5', 'j', 'from 1'],
    ],
    ['negative row', 'bind/coordinate-range', () => build([I(-1), I(1)]), ['entry 0', '-1', 'i']],
    ['no extent', 'bind/extent', () => buildStorage({ axes: csr, extents: new Map(), coords: at }), ['i']],
    [
      'no integer extent',
      'bind/extent',
      () => buildStorage({ axes: csr, extents: new Map([...extents, ['j', 2 ** 31]]), coords: at }),
      ['j', '2147483648'],
    ],
    [
      'width too small',
      'bind/width',
      () => build([I(0, 1, 1), I(0, 1, 2)], ell, { widths: new Map([['j', 1]]) }),
      ['j', 'position 1 of i', '2'],
    ],
    [
      'width that is no integer',
      'bind/width',
      () => build(at, ell, { widths: new Map([['j', 1.5]]) }),
      ['1.5'],
    ],
    ['child before parent', 'bind/axis-order', () => build(at, [...csr].reverse()), ['j', 'i']],
    ['an axis twice', 'bind/axis-order', () => build([I(0), I(0)], [csr[0]!, csr[0]!]), ['i', 'twice']],
    [
      'two children',
      'bind/branching',
      () => build([...at, I(0, 0)], [...csr, sparseVariable('k', 'i')]),
      ['j', 'k', 'i'],
    ],
    [
      'too many elements',
      'bind/too-large',
      () =>
        buildStorage({
          axes: [denseFixed('i'), denseFixed('j')],
          extents: new Map([
            ['i', 2 ** 31 - 1],
            ['j', 2 ** 23],
          ]),
          coords: [I(), I()],
        }),
      ['more than 9007199254740991 elements'],
    ],
    [
      'too many padded positions',
      'bind/too-large',
      () =>
        buildStorage({
          axes: ell,
          extents: new Map([
            ['i', 1_000_000],
            ['j', 5],
          ]),
          coords: at,
          widths: new Map([['j', 1_000_000]]),
        }),
      ['1000000000000', 'j'],
    ],
    [
      'a coordinate that is not stored',
      'bind/absent-coordinate',
      () => scatterValues(build(at), { coords: [I(0), I(3)], values: null, dtype: 'f32' }, 'f32', 0),
      ['entry 0', '(0, 3)', '(i, j)'],
    ],
    [
      'fewer values than entries',
      'bind/values-length',
      () => scatterValues(build(at), { coords: at, values: Float32Array.of(1), dtype: 'f32' }, 'f32', 0),
      ['1', '2'],
    ],
    [
      'values in another class',
      'bind/value-type',
      () => scatterValues(build(at), { coords: at, values: Float32Array.of(1, 2), dtype: 'f64' }, 'f32', 0),
      ['Float32Array', 'f64'],
    ],
    [
      'values of another length',
      'bind/values-length',
      () => toCoords(build(at), new Float32Array(3), 'f32'),
      ['3', '2'],
    ],
    ['an axis of another storage', 'bind/unknown-axis', () => restrict(build(at), ['i', 'q']), ['q']],
  ]
  it.each(table)('%s', (_, code, f, words) => check(f, code, ...words))

  it('hints at other sizes if an extent is bound, but too large', () => {
    const hint = (sizes: ReadonlyMap<string, number>): string => {
      try {
        buildStorage({ axes: csr, extents: sizes, coords: at })
      } catch (e) {
        return (e as { diagnostics: { hint: string }[] }).diagnostics[0]!.hint
      }
      return ''
    }
    expect(hint(new Map())).toBe('bind the sizes that determine the extent')
    expect(hint(new Map([...extents, ['j', 2 ** 31]]))).toBe('bind other sizes, or partition the tensor')
  })
})
