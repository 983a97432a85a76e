import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { convertValues } from '../../src/io/element-arrays.ts'
import { type NpyOptions, readNpy } from '../../src/io/numpy/npy.ts'
import { npyChunks } from '../../src/io/numpy/npz-write.ts'
import { DTYPES, type Dtype } from '../../src/ir/values/dtype.ts'
import { property } from '../support/property.ts'
import { bytesOf, collect, pieces, problem, survives, valuesArb } from './support.ts'

const bytes = (name: string) => new Uint8Array(readFileSync(new URL(`fixtures/${name}`, import.meta.url)))
const fixture = (name: string, dtype?: Dtype) =>
  readNpy(pieces(bytes(name), 7), { name, dtype, bytes: bytes(name).length })

/** A version 1 file with this header text. */
function file(header: string, body: readonly number[] = []): Uint8Array {
  return Uint8Array.of(
    0x93,
    ...bytesOf('NUMPY'),
    1,
    0,
    header.length & 255,
    header.length >> 8,
    ...bytesOf(header),
    ...body,
  )
}
const read = (b: Uint8Array, options: NpyOptions = {}) => readNpy([b], { name: 'a.npy', ...options })

const shapeArb = fc.array(fc.nat(4), { maxLength: 3 })

describe('write ∘ read = id', () => {
  const tensorArb = fc
    .tuple(shapeArb, fc.constantFrom(...DTYPES.filter((d) => d !== 'bf16')))
    .chain(([shape, dtype]) =>
      valuesArb(
        dtype,
        shape.reduce((p, n) => p * n, 1),
      ).map((values) => ({ kind: 'dense' as const, shape, values, dtype })),
    )
  property([tensorArb, fc.integer({ min: 1, max: 100 })])(
    'all types and shapes, in any cut',
    async (tensor, size) => {
      const file = await collect(npyChunks(tensor.values, tensor.shape, tensor.dtype))
      expect(await readNpy(pieces(file, size), { bytes: file.length })).toEqual(tensor)
    },
  )
  property([valuesArb('bf16', 5)])('bf16 is stored as f32', async (values) => {
    const file = await collect(npyChunks(values, [5], 'bf16'))
    expect((await readNpy([file])).dtype).toBe('f32')
    expect(await readNpy([file], { dtype: 'bf16' })).toEqual({
      kind: 'dense',
      shape: [5],
      values,
      dtype: 'bf16',
    })
  })
  test('data are aligned for mapping', async () => {
    for (const shape of [[], [3], [1, 2, 3, 4, 5]])
      expect(npyChunks(new Float32Array(0), shape, 'f32')[0]!.length % 64).toBe(0)
  })
})

describe('files written by NumPy', () => {
  const types: [string, Dtype][] = [
    ['f8', 'f64'],
    ['f4', 'f32'],
    ['f2', 'f16'],
    ['i8', 'i32'],
    ['i4', 'i32'],
    ['u4', 'u32'],
    ['i2', 'i32'],
  ]
  const files = [
    ...types.flatMap(([code, dtype]) => [
      [`le-${code}.npy`, dtype] as const,
      [`be-${code}.npy`, dtype] as const,
    ]),
    ['le-u8.npy', 'u32'] as const,
    ['le-u2.npy', 'i32'] as const,
    ['i1.npy', 'i8'] as const,
    ['u1.npy', 'u8'] as const,
    ['v2.npy', 'i32'] as const,
    ['v3.npy', 'i32'] as const,
    ['fortran.npy', 'f32'] as const,
  ]
  test.each(files)('%s is %s', async (name, dtype) => {
    const t = await fixture(name)
    expect(t).toMatchObject({ kind: 'dense', shape: [2, 3], dtype })
    expect([...convertValues(t.values, dtype, 'f64', name)]).toEqual([0, 1, 2, 3, 4, 100])
    for (const to of ['f64', 'f32', 'f16', 'i32', 'u8', 'i8'] as const) {
      const converted = await fixture(name, to)
      expect(converted.dtype).toBe(to)
      expect([...convertValues(converted.values, to, 'f64', name)]).toEqual([0, 1, 2, 3, 4, 100])
    }
  })
  test('bool, scalars, empty arrays, Fortran order in three dimensions', async () => {
    expect(await fixture('bool.npy')).toMatchObject({
      dtype: 'bool',
      values: Uint8Array.of(0, 1, 0, 1, 0, 0),
    })
    expect(await fixture('scalar.npy')).toMatchObject({ shape: [], values: Float64Array.of(2.5) })
    expect(await fixture('none.npy')).toMatchObject({ shape: [0, 3], values: new Float32Array(0) })
    expect([...(await fixture('fortran-3d.npy')).values]).toEqual(Array.from({ length: 24 }, (_, k) => k))
  })
})

describe('64-bit integers', () => {
  const wide = (signed: boolean, value: bigint) => {
    const b = new DataView(new ArrayBuffer(8))
    b.setBigInt64(0, value, true)
    return file(`{'descr': '<${signed ? 'i' : 'u'}8', 'fortran_order': False, 'shape': (1,), }`, [
      ...new Uint8Array(b.buffer),
    ])
  }
  property([fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })])('become rounded doubles', async (v) => {
    expect((await read(wide(true, v), { dtype: 'f64' })).values[0]).toBe(Number(v))
  })
  test('become 32-bit integers if they fit, otherwise the place is reported', async () => {
    expect((await read(wide(true, -(2n ** 31n)))).values[0]).toBe(-2147483648)
    expect((await read(wide(false, 2n ** 32n - 1n))).values[0]).toBe(4294967295)
    expect(await problem(() => read(wide(true, 2n ** 31n)))).toBe(
      'io/value-range: a.npy, element 0: the value 2147483648 does not fit i32',
    )
    expect(await problem(() => read(wide(false, 2n ** 32n)))).toContain('does not fit u32')
    const digits = '9007199254740993'
    for (const [signed, v] of [
      [true, BigInt(digits)],
      [true, -BigInt(digits)],
      [false, 2n ** 64n - 1n],
    ] as const)
      expect(await problem(() => read(wide(signed, v)))).toContain(`element 0: the value ${v} does not fit`)
  })
})

describe('diagnostics', () => {
  const head = (descr: string, shape = '(1,)', order = 'False') =>
    `{'descr': ${descr}, 'fortran_order': ${order}, 'shape': ${shape}, }`
  test.each([
    ['text', bytesOf('1 2 3\n'), 'io/npy-header: a.npy: not a .npy file'],
    [
      'version',
      Uint8Array.of(0x93, ...bytesOf('NUMPY'), 9, 0, 0, 0),
      'io/unsupported: a.npy: version 9 of .npy',
    ],
    ['complex', file(head("'<c16'")), "io/unsupported: a.npy: elements of type '<c16' (complex numbers"],
    ['objects', file(head("'|O'")), "io/unsupported: a.npy: elements of type '|O' (Python objects"],
    ['dates', file(head("'<M8[ns]'")), "io/unsupported: a.npy: elements of type '<M8[ns]'"],
    [
      'long doubles',
      file(head("'<f16'")),
      "io/unsupported: a.npy: elements of type '<f16' (extended-precision floats)",
    ],
    ['records', file(head("[('a', '<f4')]")), 'io/unsupported: a.npy: structured elements'],
    ['text elements', file(head("'|S2'"), [65, 66]), 'io/unsupported: a.npy holds text, not numbers'],
    ['no type', file("{'shape': (1,)}"), 'io/npy-header: a.npy: the .npy header names no element type'],
    [
      'no order',
      file(head("'<f4'", '(1,)', '0')),
      'io/npy-header: a.npy: the .npy header names no storage order',
    ],
    [
      'no shape',
      file("{'descr': '<f4', 'fortran_order': False}"),
      'io/npy-header: a.npy: the .npy header names no shape',
    ],
    [
      'another key',
      file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'title': 1}"),
      "io/npy-header: a.npy: the .npy header has the key 'title'",
    ],
    [
      'a key twice',
      file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), \"shape\": (2,)}"),
      "io/npy-header: a.npy: the .npy header has the key 'shape' twice",
    ],
    [
      'negative size',
      file(head("'<f4'", '(-1,)')),
      "io/npy-header: a.npy: the .npy header has the size '-1' in its shape",
    ],
    [
      'too many elements',
      file(head("'<f4'", '(9999999999, 9999999999)')),
      'io/npy-header: a.npy: the .npy header promises more',
    ],
    [
      'too few bytes',
      file(head("'<f4'"), [0, 0]),
      'io/truncated: a.npy: the file ends before the 1 elements',
    ],
    [
      'too many bytes',
      file(head("'<f4'"), [0, 0, 0, 0, 0]),
      'io/extra-data: a.npy: more bytes follow the 1 elements',
    ],
  ])('%s', async (_, b, message) => {
    expect(await problem(() => read(b))).toContain(message)
  })
  test('a header beyond the file size allocates nothing', async () => {
    const b = file(head("'<f8'", '(1000000, 1000000)'))
    expect(await problem(() => read(b, { bytes: b.length }))).toContain('io/truncated')
  })
  test('every prefix is rejected; a changed byte gives a tensor or a diagnostic', async () => {
    for (const name of ['le-i8.npy', 'fortran.npy', 'v2.npy']) {
      const whole = bytes(name)
      for (let n = 0; n < whole.length; n++) {
        expect(await survives(() => read(whole.subarray(0, n)))).toBe(false)
        for (const value of [0, 39, 57, 255]) {
          const changed = whole.slice()
          changed[n] = value
          await survives(() => read(changed, { bytes: changed.length }))
        }
      }
    }
  })
})
