import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ByteSource, bytesSource } from '../../src/io/byte-source.ts'
import { readTensorFrom, tensorChunks } from '../../src/io/dispatch.ts'
import { convertValues } from '../../src/io/element-arrays.ts'
import { openSafetensors, type Safetensors } from '../../src/io/safetensors/safetensors.ts'
import type { SafetensorsPart } from '../../src/io/safetensors/safetensors-write.ts'
import { densePart, safetensorsChunks } from '../../src/io/safetensors/safetensors-write.ts'
import { DTYPES } from '../../src/ir/values/dtype.ts'
import { property } from '../support/property.ts'
import { bytesOf, collect, problem, sameBytes, survives, valuesArb } from './support.ts'

const product = (shape: readonly number[]) => shape.reduce((p, n) => p * n, 1)

interface Plain {
  readonly type: string
  readonly shape: readonly number[]
  readonly bytes: Uint8Array
}

/** The format once more, believing everything. */
function independent(file: Uint8Array): Map<string, Plain> {
  const view = Buffer.from(file)
  const length = Number(view.readBigUInt64LE(0))
  const header = Object.entries(JSON.parse(view.toString('utf8', 8, 8 + length)) as object)
  return new Map(
    header.flatMap(([name, { dtype, shape, data_offsets }]) => {
      if (name === '__metadata__') return []
      const [start, end] = data_offsets as [number, number]
      return [[name, { type: dtype, shape, bytes: file.slice(8 + length + start, 8 + length + end) }]]
    }),
  )
}

/** Bytes of the types, by this file's own table. */
const BYTES: Readonly<Record<string, number>> = {
  ...{
    F64: 8,
    F32: 4,
    F16: 2,
    BF16: 2,
    I64: 8,
    I32: 4,
    I16: 2,
    I8: 1,
    U64: 8,
    U32: 4,
    U16: 2,
    U8: 1,
    BOOL: 1,
  },
  ...{ C64: 8, F8_E4M3: 1, F8_E5M2: 1, F8_E8M0: 1, F4: 0.5, F6_E2M3: 0.75, F6_E3M2: 0.75 },
}
const plainArb = fc
  .tuple(fc.constantFrom(...Object.keys(BYTES)), fc.array(fc.nat(4), { maxLength: 4 }))
  .filter(([type, shape]) => Number.isInteger(product(shape) * BYTES[type]!))
  .chain(([type, shape]) => {
    const length = product(shape) * BYTES[type]!
    return fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => ({ type, shape, bytes }))
  })
const nameArb = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.constantFrom(
      '',
      '__proto__',
      'constructor',
      '0',
      '1',
      '../../a',
      '/etc/a',
      'a\0b',
      'a"\\',
      'ü→😀',
      'x#y',
    ),
  )
  .filter((n) => n !== '__metadata__')
const textsArb = fc.uniqueArray(fc.tuple(nameArb, fc.string({ unit: 'binary' })), {
  selector: ([n]) => n,
  maxLength: 3,
})
const fileArb = fc.uniqueArray(fc.tuple(nameArb, plainArb), { selector: ([n]) => n, maxLength: 5 })

const partsOf = (tensors: Iterable<readonly [string, Plain]>): SafetensorsPart[] =>
  Array.from(tensors, ([name, { type, shape, bytes }]) => ({ name, type, shape, chunks: () => [bytes] }))
const written = (tensors: Iterable<readonly [string, Plain]>, metadata?: ReadonlyMap<string, string>) =>
  collect(safetensorsChunks(partsOf(tensors), metadata))
const opened = (file: Uint8Array) => openSafetensors(bytesSource('a.safetensors', file))
async function contents(file: Safetensors): Promise<Map<string, Plain>> {
  const out = new Map<string, Plain>()
  for (const { name, type, shape } of file.entries.values())
    out.set(name, { type, shape, bytes: await collect(file.chunks(name)) })
  return out
}

/** A file with this header and this many bytes of data, 0 1 2 …; `length` as the first eight bytes say it. */
function file(header: string | Uint8Array, data = 0, length?: bigint): Uint8Array {
  const text = typeof header === 'string' ? bytesOf(header) : header
  const out = Buffer.alloc(8 + text.length + data)
  out.writeBigUInt64LE(length ?? BigInt(text.length))
  out.set(text, 8)
  for (let k = 0; k < data; k++) out[8 + text.length + k] = k
  return new Uint8Array(out)
}
const entry = (start: number, end: number, type = 'U8', shape: readonly number[] = [end - start]) =>
  `{"dtype":"${type}","shape":[${shape}],"data_offsets":[${start},${end}]}`
const refused = (header: string | Uint8Array, data = 0, length?: bigint) =>
  problem(() => opened(file(header, data, length)))

describe('write ∘ read = id', () => {
  property([fileArb, textsArb])('any types, shapes, names and texts, bit for bit', async (tensors, texts) => {
    const bytes = await written(tensors, new Map(texts))
    const back = await opened(bytes)
    expect(await contents(back)).toEqual(new Map(tensors))
    expect(back.metadata).toEqual(new Map(texts))
    const plain = independent(bytes)
    expect(plain).toEqual(new Map(tensors))
    // Aligned: the header, and in it each tensor whose type has whole bytes, as far as mapped memory needs it.
    const data = 8 + Number(Buffer.from(bytes).readBigUInt64LE(0))
    expect(data % 8).toBe(0)
    for (const { type, start } of back.entries.values()) expect(start % Math.ceil(BYTES[type]!)).toBe(0)
    expect(sameBytes(await written(tensors, new Map(texts)), bytes)).toBe(true)
    // Names in the order of the data.
    const starts = Array.from(back.entries.values(), (e) => e.start)
    expect(starts).toEqual(starts.toSorted((a, b) => a - b))
  })
  const denseArb = fc
    .tuple(fc.array(fc.nat(4), { maxLength: 3 }), fc.constantFrom(...DTYPES))
    .chain(([shape, dtype]) =>
      valuesArb(dtype, product(shape)).map((values) => ({ kind: 'dense' as const, shape, values, dtype })),
    )
  property([denseArb])('dense tensors of all types, alone in a file', async (tensor) => {
    const source = bytesSource('a.SafeTensors', await collect(tensorChunks('a.SafeTensors', tensor)))
    expect(await readTensorFrom(source)).toEqual(tensor)
    expect(await readTensorFrom(source, { address: 'tensor', shape: tensor.shape })).toEqual(tensor)
  })
  property([denseArb])('conversion to f64 is exact', async (tensor) => {
    const back = await opened(await collect(safetensorsChunks([densePart('', tensor)])))
    const { values } = await back.dense('', 'f64')
    expect(values).toEqual(convertValues(tensor.values, tensor.dtype, 'f64', ''))
  })
})

test('unsupported element types', async () => {
  const wide = new BigInt64Array([1n, -2n, 2147483647n])
  const tensors = new Map<string, Plain>([
    ['i64', { type: 'I64', shape: [3], bytes: new Uint8Array(wide.buffer) }],
    ['i16', { type: 'I16', shape: [2], bytes: new Uint8Array(Int16Array.of(-3, 4).buffer) }],
    ['u16', { type: 'U16', shape: [2], bytes: new Uint8Array(Uint16Array.of(3, 65535).buffer) }],
    ['bf16', { type: 'BF16', shape: [1], bytes: new Uint8Array(Uint16Array.of(0x3fc0).buffer) }],
    ['bool', { type: 'BOOL', shape: [2], bytes: Uint8Array.of(0, 7) }],
    ['u64', { type: 'U64', shape: [1], bytes: new Uint8Array(BigUint64Array.of(2n ** 32n).buffer) }],
    ['f8', { type: 'F8_E4M3', shape: [1], bytes: Uint8Array.of(1) }],
  ])
  const back = await opened(await written(tensors))
  const values = async (name: string, dtype?: 'f32') => [...(await back.dense(name, dtype)).values]
  expect(await values('i64')).toEqual([1, -2, 2147483647])
  expect(await values('i16')).toEqual([-3, 4])
  expect(await values('u16')).toEqual([3, 65535])
  expect(await values('bf16')).toEqual([0x3fc0])
  expect(await values('bf16', 'f32')).toEqual([1.5])
  expect(await values('bool')).toEqual([0, 1])
  expect(await problem(() => values('u64'))).toContain('io/value-range')
  expect(await problem(() => values('f8'))).toContain(
    'io/unsupported: a.safetensors#f8 has elements of the type F8_E4M3',
  )
  expect(await problem(() => values('f9'))).toBe("io/unknown-array: a.safetensors has no tensor 'f9'")
})

test('tensors larger than any piece', async () => {
  const values = Float32Array.from({ length: 200_003 }, (_, k) => k % 1021)
  const dense = { kind: 'dense' as const, shape: [200_003], values, dtype: 'f32' as const }
  const bytes = await collect(
    safetensorsChunks([densePart('a', dense), densePart('b', { ...dense, values: values.toReversed() })]),
  )
  const back = await opened(bytes)
  expect(sameBytes((await back.dense('b')).values, values.toReversed())).toBe(true)
  expect([...(await back.dense('a', 'f64')).values.slice(-2)]).toEqual([200_001 % 1021, 200_002 % 1021])
})

test('a tensor is read separately, in pieces, without allocation beyond the file size', async () => {
  const part = (name: string, n: number) =>
    densePart(name, { kind: 'dense', shape: [n], values: new Uint8Array(n), dtype: 'u8' })
  const bytes = await collect(safetensorsChunks([part('large', 3_000_000), part('small', 10)]))
  const reads: [number, number][] = []
  const source: ByteSource = {
    ...bytesSource('a.safetensors', bytes),
    read: async (start, end) => {
      reads.push([start, end])
      return bytes.subarray(start, end)
    },
  }
  const back = await openSafetensors(source)
  await back.dense('small')
  expect(reads.slice(2)).toEqual([[bytes.length - 10, bytes.length]])
  await back.dense('large')
  expect(Math.max(...reads.map(([a, b]) => b - a))).toBeLessThan(300_000)
  // 2^48 elements are promised by a header of a few bytes.
  expect(await refused(`{"a":${entry(0, 2 ** 48)}}`, 8)).toContain('beyond the file')
})

describe('inconsistent headers', () => {
  test('the length', async () => {
    expect(await problem(() => opened(new Uint8Array(7)))).toContain('io/safetensors-header')
    expect(await refused('{}', 0, 3n)).toBe(
      'io/safetensors-header: a.safetensors: not a .safetensors file (a header of 3 bytes in a file of 10)',
    )
    for (const length of [100_000_001n, 2n ** 53n + 1n, 2n ** 64n - 1n])
      expect(await refused('{}', 0, length)).toContain('at most 100000000 are read')
    expect(await refused('', 0)).toContain("does not begin with '{'")
    // A file that says it is larger than it is.
    const source = { ...bytesSource('a.safetensors', file('{}')), size: 1000 }
    expect(await problem(() => openSafetensors(source))).toContain('belong to no tensor')
    expect(
      await problem(() =>
        openSafetensors({ ...source, read: async (a, b) => file('{}', 0, 5n).subarray(a, b) }),
      ),
    ).toContain('its header is cut off')
  })
  test.each([
    ['no UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d), 'is not UTF-8'],
    ['a byte order mark', '\ufeff{}', "does not begin with '{'"],
    ['a space first', ' {}', "does not begin with '{'"],
    ['a list', '[]', "does not begin with '{'"],
    ['no end', '{', 'lacks a string in quotes at character 1'],
    ['no end of a string', '{"a', 'lacks a quote that ends the string at character 1'],
    ['text after the end', '{} {}', 'lacks the end at character 3'],
    ['a comma at the end', `{"a":${entry(0, 1)},}`, 'lacks a string in quotes'],
    ['a half of a pair', `{"\\ud800":${entry(0, 1)}}`, 'lacks a string of whole characters'],
    ['a line break in a name', `{"a\nb":${entry(0, 1)}}`, 'lacks a string of whole characters'],
    ['a name twice', `{"a":${entry(0, 1)},"\\u0061":${entry(0, 1)}}`, "has the key 'a' twice"],
    ['metadata twice', '{"__metadata__":{},"__metadata__":{}}', "has the key '__metadata__' twice"],
    ['a key twice', '{"a":{"dtype":"U8","dtype":"U8"}}', "has the key 'dtype' twice"],
    ['metadata that are no texts', '{"__metadata__":{"a":1}}', 'lacks a string in quotes'],
    ['metadata that are a list', '{"__metadata__":[]}', "lacks '{'"],
    ['a tensor that is a number', '{"a":1}', "lacks '{'"],
    ['a tensor that is __proto__', '{"__proto__":{"polluted":1}}', "has the key 'polluted'"],
    ['a shape below 0', '{"a":{"shape":[-1]}}', 'lacks an integer from 0'],
    ['a shape that is -0', '{"a":{"shape":[-0]}}', 'lacks an integer from 0'],
    ['a fraction', '{"a":{"shape":[1.5]}}', 'lacks an integer from 0'],
    ['an exponent', '{"a":{"shape":[1e2]}}', 'lacks an integer from 0'],
    ['a zero before', '{"a":{"shape":[01]}}', 'lacks an integer from 0'],
    ['a shape of texts', '{"a":{"shape":["1"]}}', 'lacks an integer from 0'],
    ['2^53', '{"a":{"shape":[9007199254740992]}}', 'lacks an integer from 0'],
    ['as many digits as one likes', `{"a":{"shape":[${'9'.repeat(1000)}]}}`, 'lacks an integer from 0'],
    ['depth', `{"a":${'['.repeat(100_000)}`, "lacks '{'"],
  ])('header: %s', async (_, header, what) => {
    const said = await refused(header, 1)
    expect(said).toMatch(/^io\/safetensors-(header|tensor): a\.safetensors: /)
    expect(said).toContain(what)
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
  })
  test.each([
    ['no such type', entry(0, 1, 'F31'), "has elements of the type 'F31'"],
    ["a name of all objects'", entry(0, 1, '__proto__'), "has elements of the type '__proto__'"],
    ['nothing said', '{}', 'lacks its dtype'],
    ['one offset', '{"dtype":"U8","shape":[1],"data_offsets":[0]}', 'two data_offsets'],
    ['three offsets', '{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}', 'more than 2 integers'],
    ['offsets that fall', entry(1, 0, 'U8', [1]), 'takes 1 bytes, and its data_offsets are [1, 0]'],
    ['another size', entry(0, 1, 'F32', [1]), 'takes 4 bytes, and its data_offsets are [0, 1]'],
    ['another size of a scalar', entry(0, 2, 'U8', []), 'takes 1 bytes'],
    ['more than can be', entry(0, 1, 'U8', [2 ** 40, 2 ** 40]), 'cannot have the shape'],
    ['more than can be, times 0', entry(0, 0, 'U8', [2 ** 40, 2 ** 40, 0]), 'cannot have the shape'],
    ['a part of a byte', entry(0, 1, 'F4', [1]), 'cannot have the shape 1 of F4'],
    ['65 dimensions', entry(0, 1, 'U8', Array(65).fill(1)), 'more than 64 integers'],
  ])('tensor: %s', async (_, text, what) => {
    const said = await refused(`{"a":${text}}`, 1)
    expect(said).toContain("io/safetensors-tensor: a.safetensors: the tensor 'a' ")
    expect(said).toContain(what)
  })
  test.each([
    ['beyond the file', `{"a":${entry(0, 9)}}`, 'its tensors end 1 bytes beyond the file'],
    ['bytes of none', `{"a":${entry(0, 7)}}`, 'the last 1 bytes belong to no tensor'],
    ['no tensors', '{}', 'the last 8 bytes belong to no tensor'],
    ['a hole', `{"a":${entry(0, 3)},"b":${entry(5, 8)}}`, "2 bytes before the tensor 'b' belong to none"],
    ['a hole at first', `{"a":${entry(1, 8)}}`, "1 bytes before the tensor 'a' belong to none"],
    [
      'overlap',
      `{"b":${entry(2, 8)},"a":${entry(0, 3)}}`,
      "the tensor 'b' overlaps the one before it by 1 bytes",
    ],
    [
      'equal',
      `{"a":${entry(0, 8)},"b":${entry(0, 8)}}`,
      "the tensor 'b' overlaps the one before it by 8 bytes",
    ],
    [
      'nothing within',
      `{"a":${entry(0, 8)},"b":${entry(3, 3)}}`,
      "the tensor 'b' overlaps the one before it by 5 bytes",
    ],
  ])('data: %s', async (_, header, what) => {
    expect(await refused(header, 8)).toBe(`io/safetensors-data: a.safetensors: ${what}`)
  })
  test('tensors in any order of the header, empty ones where another begins', async () => {
    const back = await opened(
      file(`{"b":${entry(3, 8)},"e":${entry(3, 3)},"a":${entry(0, 3)}, "__metadata__": {} } `, 8),
    )
    expect([...back.entries.keys()]).toEqual(['a', 'e', 'b'])
    expect([...(await back.dense('b')).values]).toEqual([3, 4, 5, 6, 7])
  })
  property([
    fileArb,
    fc.array(fc.tuple(fc.nat(600), fc.nat(255)), { minLength: 1, maxLength: 4 }),
    fc.option(fc.nat(600)),
  ])('any change gives a diagnostic, or a consistent file', async (tensors, changes, cut) => {
    const bytes = await written(tensors)
    for (const [at, byte] of changes) bytes[at % bytes.length] = byte
    const broken = cut === null ? bytes : bytes.slice(0, cut % bytes.length)
    await survives(async () => {
      const back = await contents(await opened(broken))
      expect(back).toEqual(independent(broken))
    })
  })
  property([
    fc.array(fc.constantFrom(...'{}[]",:\\ 0-9.aeF', '"U8"', '"shape":', '[0,', '\\u0061'), {
      maxLength: 30,
    }),
  ])('random JSON tokens', async (tokens) => {
    await survives(async () => {
      const back = await opened(file(`{${tokens.join('')}`))
      expect(await contents(back)).toEqual(independent(file(`{${tokens.join('')}`)))
    })
  })
})

describe('addresses', () => {
  const u8 = (...v: number[]): Plain => ({ type: 'U8', shape: [v.length], bytes: Uint8Array.from(v) })
  const two = async () =>
    bytesSource('m.safetensors', await written(Object.entries({ 'a.weight': u8(1, 2), b: u8(3) })))
  test('by name, which a single tensor does not need', async () => {
    expect(await readTensorFrom(await two(), { address: 'b' })).toMatchObject({ shape: [1], dtype: 'u8' })
    expect(await problem(async () => readTensorFrom(await two()))).toBe(
      'io/ambiguous: m.safetensors holds 2 tensors',
    )
    expect(await problem(async () => readTensorFrom(await two(), { address: 'a' }))).toBe(
      "io/unknown-array: m.safetensors has no tensor 'a'",
    )
    expect(await problem(() => readTensorFrom(bytesSource('m.safetensors', file('{}'))))).toBe(
      'io/empty: m.safetensors holds no tensors',
    )
    expect(await problem(async () => readTensorFrom(await two(), { address: 'b', shape: [2] }))).toContain(
      'io/shape-mismatch',
    )
  })
})

test('unwritable tensors', async () => {
  const part = (name: string, type = 'U8', shape: readonly number[] = [1]): SafetensorsPart => ({
    name,
    type,
    shape,
    chunks: () => [new Uint8Array(1)],
  })
  const write = (...parts: SafetensorsPart[]) => problem(() => collect(safetensorsChunks(parts)))
  expect(await write(part('__metadata__'))).toContain('io/safetensors-tensor')
  expect(await write(part('a'), part('a'))).toContain('another is called so')
  expect(await write(part('\ud800'))).toContain('it is no whole text')
  expect(await write(part('a', 'F31'))).toContain("has elements of the type 'F31'")
  expect(await write(part('a', 'U8', [2 ** 40, 2 ** 40]))).toContain('cannot have the shape')
  await expect(collect(safetensorsChunks([part('a', 'U8', [2])]))).rejects.toThrow('gave other than 2 bytes')
  await expect(collect(safetensorsChunks([part('a', 'U8', [0])]))).rejects.toThrow('gave other than 0 bytes')
  const sparse = {
    kind: 'coords' as const,
    shape: [1],
    coords: [Int32Array.of(0)],
    values: null,
    dtype: 'f32' as const,
  }
  expect(await problem(() => tensorChunks('a.safetensors', sparse))).toBe(
    'io/kind: a sparse tensor cannot be written as .safetensors',
  )
})
