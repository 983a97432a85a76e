import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { zipSync } from 'fflate'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ByteSource, bytesSource } from '../../src/io/byte-source.ts'
import { npzArrays, npzChunks, openSafetensors, openWeights, readTensor } from '../../src/io/index.ts'
import { type SafetensorsPart, safetensorsChunks } from '../../src/io/safetensors/safetensors-write.ts'
import { type Weights, weightsOf } from '../../src/io/safetensors/weights.ts'
import { fromBf16, fromF16 } from '../../src/ir/values/half.ts'
import { property } from '../support/property.ts'
import { bytesOf, collect, problem, survives } from './support.ts'

let folder = ''
const at = (name: string) => join(folder, name)
const put = (name: string, content: string | Uint8Array) => {
  writeFileSync(at(name), content)
  return at(name)
}
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'spt-weights-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true })
})

interface Plain {
  readonly name: string
  readonly type: string
  readonly shape: readonly number[]
  readonly bytes: Uint8Array
}
const product = (shape: readonly number[]) => shape.reduce((p, n) => p * n, 1)

/** Bytes of an element, and how numpy calls the type; some it does not know. */
const TYPES: Readonly<Record<string, readonly [bytes: number, code?: string]>> = {
  ...{ F64: [8, 'f8'], F32: [4, 'f4'], F16: [2, 'f2'], BF16: [2], F8_E5M2: [1] },
  ...{ I64: [8, 'i8'], U64: [8, 'u8'], I16: [2, 'i2'], U16: [2, 'u2'], U8: [1, 'u1'], BOOL: [1, 'b1'] },
}
const isFloat = (type: string) => ['F64', 'F32', 'F16', 'BF16'].includes(type)

/** Small integers as floats, -0 among them; any bytes of other types. */
const NUMBER: Readonly<Record<string, (n: number) => ArrayBufferView>> = {
  F64: (n) => Float64Array.of(n),
  F32: (n) => Float32Array.of(n),
  F16: (n) => Uint16Array.of(Object.is(n, -0) ? 0x8000 : [0xc000, 0xbc00, 0, 0x3c00, 0x4000][n + 2]!),
  BF16: (n) => Uint16Array.of(Object.is(n, -0) ? 0x8000 : [0xc000, 0xbf80, 0, 0x3f80, 0x4000][n + 2]!),
}
const packed = (views: readonly ArrayBufferView[]) =>
  new Uint8Array(Buffer.concat(views.map((v) => Buffer.from(v.buffer, v.byteOffset, v.byteLength))))

const tensorArb = (types: readonly string[]) =>
  fc
    .tuple(fc.string({ maxLength: 4 }), fc.constantFrom(...types), fc.array(fc.nat(3), { maxLength: 4 }))
    .chain(([name, type, shape]) => {
      const count = product(shape)
      const bytes = isFloat(type)
        ? fc
            .array(fc.constantFrom(-2, -1, -0, 0, 1, 2), { minLength: count, maxLength: count })
            .map((list) => packed(list.map(NUMBER[type]!)))
        : fc.uint8Array({ minLength: count * TYPES[type]![0], maxLength: count * TYPES[type]![0] })
      return bytes.map((b): Plain => ({ name, type, shape, bytes: b }))
    })
const tensorsArb = (types: readonly string[]) =>
  fc.uniqueArray(tensorArb(types), {
    selector: (t) => t.name,
    minLength: 1,
    maxLength: 6,
  })

const partOf = ({ name, type, shape, bytes }: Plain): SafetensorsPart => ({
  name,
  type,
  shape,
  chunks: () => [bytes],
})
const written = (tensors: readonly Plain[]) => collect(safetensorsChunks(tensors.map(partOf)))

/** An `.npz` of numpy's, with arrays in either order of elements and of bytes. */
function archive(tensors: readonly Plain[], fortran: boolean, big: boolean): Uint8Array {
  const npy = ({ type, shape, bytes }: Plain): Uint8Array => {
    const [width, code] = TYPES[type]!
    const elements = Array.from({ length: product(shape) }, (_, e) => {
      const element = bytes.slice(e * width, (e + 1) * width)
      return big ? element.reverse() : element
    })
    const positions = elements.map((_, e) => {
      if (!fortran) return e
      let rest = e
      const index = shape
        .toReversed()
        .map((n) => {
          const k = rest % n
          rest = (rest - k) / n
          return k
        })
        .reverse()
      return index.reduceRight((p, k, d) => p * shape[d]! + k, 0)
    })
    const data: Uint8Array[] = []
    positions.forEach((p, e) => {
      data[p] = elements[e]!
    })
    const header = `{'descr': '${big ? '>' : '<'}${code}', 'fortran_order': ${fortran ? 'True' : 'False'}, 'shape': (${shape.map((n) => `${n},`).join('')})}\n`
    const head = Uint8Array.of(0x93, ...bytesOf('NUMPY'), 1, 0, header.length & 255, header.length >> 8)
    return packed([head, bytesOf(header), ...data])
  }
  return zipSync(Object.fromEntries(tensors.map((t) => [`n${t.name}.npy`, npy(t)])))
}

const READ: Readonly<Record<string, (v: DataView, at: number) => number>> = {
  F64: (v, k) => v.getFloat64(k, true),
  F32: (v, k) => v.getFloat32(k, true),
  F16: (v, k) => fromF16(v.getUint16(k, true)),
  BF16: (v, k) => fromBf16(v.getUint16(k, true)),
}

/** That a file gives exactly `tensors`, in any order. */
async function holds(weights: Weights, tensors: readonly Plain[], masks: readonly number[]): Promise<void> {
  const byName = new Map(tensors.map((t) => [t.name, t]))
  expect(new Set(weights.tensors.map((t) => t.name))).toEqual(new Set(byName.keys()))
  const layers: string[] = []
  for (const { name, type, shape, bytes } of tensors) {
    const part = weights.part(name)
    expect([part.type, part.shape]).toEqual([type, shape])
    expect(await collect(part.chunks())).toEqual(bytes)
    const cols = product(shape.slice(1))
    if (!isFloat(type) || shape.length < 2 || shape[0]! < 2 || cols < 2) {
      expect(await problem(() => weights.weights(name))).toContain('io/no-layer')
      expect(await problem(() => weights.masked(name, new Uint8Array(product(shape))))).toContain(
        'io/no-layer',
      )
      continue
    }
    layers.push(name)
    expect(weights.layers.find((l) => l.name === name)).toEqual({ name, rows: shape[0], cols })
    const [width] = TYPES[type]!
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    const numbers = Float32Array.from({ length: product(shape) }, (_, e) => READ[type]!(view, e * width))
    const first = await weights.weights(name)
    expect(first).toEqual(numbers)
    // An array of its own each time, however it is used.
    first.fill(9)
    expect(await weights.weights(name)).toEqual(numbers)
    const kept = Uint8Array.from(numbers, (_, e) => masks[e % masks.length]!)
    const masked = bytes.slice()
    kept.forEach((k, e) => {
      if (!k) masked.fill(0, e * width, (e + 1) * width)
    })
    const pruned = weights.masked(name, kept)
    expect([pruned.name, pruned.type, pruned.shape]).toEqual([name, type, shape])
    expect(await collect(pruned.chunks())).toEqual(masked)
    expect(await collect(weights.part(name).chunks())).toEqual(bytes)
    expect(await problem(() => weights.masked(name, kept.subarray(1)))).toContain('io/shape-mismatch')
  }
  expect(new Set(weights.layers.map((l) => l.name))).toEqual(new Set(layers))
}
const masksArb = fc.array(fc.nat(1), { minLength: 1, maxLength: 9 })

describe('tensors of a model: as bytes, as numbers, and with zeros', () => {
  property([tensorsArb(Object.keys(TYPES)), masksArb])('.safetensors', async (tensors, masks) => {
    await holds(await weightsOf(bytesSource('a.safetensors', await written(tensors))), tensors, masks)
  })
  property([
    tensorsArb(Object.keys(TYPES).filter((t) => TYPES[t]![1])),
    fc.boolean(),
    fc.boolean(),
    masksArb,
  ])('.npz, in either order of elements and of bytes', async (tensors, fortran, big, masks) => {
    const source = bytesSource('a.npz', archive(tensors, fortran, big))
    // Names have a letter before them: zip archives take no empty ones.
    await holds(
      await weightsOf(source),
      tensors.map((t) => ({ ...t, name: `n${t.name}` })),
      masks,
    )
  })
  property([tensorsArb(Object.keys(TYPES)), fc.integer({ min: 1, max: 3 }), masksArb])(
    'a model in several files',
    async (tensors, count, masks) => {
      const shards = new Map<string, Plain[]>()
      tensors.forEach((t, k) => {
        const file = `shard-${k % count}.safetensors`
        shards.set(file, [...(shards.get(file) ?? []), t])
      })
      for (const [file, list] of shards) put(file, await written(list))
      const map = [...shards].flatMap(([file, list]) => list.map((t) => [t.name, file] as const))
      const members = map.map(([name, file]) => `${JSON.stringify(name)}: "${file}"`)
      const index = put(
        'm.safetensors.index.json',
        `{"metadata": {"x": [1, {}]}, "weight_map": {${members}}}`,
      )
      await holds(await openWeights(index), tensors, masks)
    },
  )
})

property([tensorsArb(['F32', 'F16', 'I64'])])('layers with inputs first', async (tensors) => {
  const file = bytesSource('a.safetensors', await written(tensors))
  const weights = await weightsOf(file, { transposed: true })
  const asTheyLie = await weightsOf(bytesSource('a.safetensors', await written(tensors)))
  for (const { name, type, shape, bytes } of tensors) {
    const rows = shape.at(-1) ?? 0
    const cols = product(shape.slice(0, -1))
    if (!isFloat(type) || shape.length < 2 || rows < 2 || cols < 2) {
      expect(await problem(async () => weights.layer(name))).toContain('io/no-layer')
      continue
    }
    expect(weights.layer(name)).toEqual({ name, rows, cols })
    const [width] = TYPES[type]!
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    const expected = Float32Array.from({ length: rows * cols }, (_, at) => {
      const [r, c] = [Math.floor(at / cols), at % cols]
      return READ[type]!(view, (c * rows + r) * width)
    })
    expect(await weights.weights(name)).toEqual(expected)
    const kept = Uint8Array.from(expected, (v) => (v > 0 ? 1 : 0))
    const masked = await collect(weights.masked(name, kept).chunks())
    const left = new DataView(masked.buffer, masked.byteOffset)
    for (let at = 0; at < rows * cols; at++) {
      const value = READ[type]!(view, at * width)
      expect(READ[type]!(left, at * width)).toBe(value > 0 ? value : 0)
    }
    expect(await collect(weights.part(name).chunks())).toEqual(await collect(asTheyLie.part(name).chunks()))
  }
})

const plain = (name: string, shape: readonly number[] = [2, 3]): Plain => ({
  name,
  type: 'F32',
  shape,
  bytes: packed([Float32Array.from({ length: product(shape) }, (_, e) => e + 1)]),
})

test('layers larger than any piece', async () => {
  const large = plain('w', [400, 401])
  const weights = await weightsOf(bytesSource('a.safetensors', await written([large, plain('v')])))
  expect(Buffer.from((await weights.weights('w')).buffer).equals(Buffer.from(large.bytes))).toBe(true)
  const kept = Uint8Array.from({ length: 400 * 401 }, (_, e) => Number(e % 3 === 0))
  const zeros = await collect(weights.masked('w', kept).chunks())
  const numbers = new Float32Array(zeros.buffer, zeros.byteOffset, 400 * 401)
  expect(numbers.findIndex((x, e) => x !== (e % 3 === 0 ? e + 1 : 0))).toBe(-1)
})

describe('an index', () => {
  const indexed = (text: string) => put('i.safetensors.index.json', text)
  const map = (entries: Record<string, string>) => indexed(JSON.stringify({ weight_map: entries }))
  test.each([
    ['../s.safetensors'],
    ['/etc/s.safetensors'],
    ['a\\s.safetensors'],
    ['c:s.safetensors'],
    ['s\0.safetensors'],
    ['.safetensors'],
    ['s.bin'],
    [''],
    ['..'],
  ])('does not leave its folder: %s', async (file) => {
    // A tensor in the folder above would be found.
    const path = map({ w: file })
    for (const read of [() => openWeights(path), () => readTensor(`${path}#w`)])
      expect(await problem(read)).toMatch(/io\/(safetensors-index|not-found)/)
    if (file !== '.safetensors')
      expect(await problem(() => openWeights(path))).toContain('io/safetensors-index')
  })
  test('and its files have the same tensors', async () => {
    put('s1.safetensors', await written([plain('a'), plain('b')]))
    put('s2.safetensors', await written([plain('c')]))
    const whole = map({ a: 's1.safetensors', b: 's1.safetensors', c: 's2.safetensors' })
    expect((await openWeights(whole)).layers.map((l) => l.name)).toEqual(['a', 'b', 'c'])
    expect(await readTensor(`${whole}#c`)).toMatchObject({ shape: [2, 3], dtype: 'f32' })
    expect(await problem(() => readTensor(whole))).toContain('io/ambiguous')
    expect(await problem(() => readTensor(`${whole}#d`))).toContain('io/unknown-array')
    const less = map({ a: 's1.safetensors', c: 's2.safetensors' })
    expect(await problem(() => openWeights(less))).toContain(
      "does not list the tensor 'b', which 's1.safetensors' has",
    )
    // One tensor alone is read all the same.
    expect(await readTensor(`${less}#c`)).toMatchObject({ shape: [2, 3] })
    const more = map({ a: 's1.safetensors', b: 's1.safetensors', c: 's2.safetensors', d: 's2.safetensors' })
    for (const read of [() => openWeights(more), () => readTensor(`${more}#d`)])
      expect(await problem(read)).toContain("has the tensor 'd' in 's2.safetensors', which has it not")
    const gone = map({ a: 's3.safetensors' })
    expect(await problem(() => openWeights(gone))).toBe(
      `io/not-found: there is no file '${at('s3.safetensors')}'`,
    )
    const alone = bytesSource('i.safetensors.index.json', bytesOf(readFileSync(gone, 'utf8')))
    expect(await problem(() => weightsOf(alone))).toContain('only itself was given')
  })
  test.each([
    ['', 'io/empty'],
    ['{}', 'has no weight_map'],
    ['[]', "lacks '{'"],
    ['{"weight_map": {"a": 1}}', 'lacks a string'],
    ['{"weight_map": {"a": "s.safetensors", "a": "t.safetensors"}}', "has the key 'a' twice"],
    ['{"metadata": [{"a": [1, 2]}, "x\\"]}"], "weight_map": {"a": "../x"}}', 'no file of its folder'],
    ['{"metadata": {, "weight_map": {}}', 'lacks'],
    ['{"metadata": , "weight_map": {}}', 'lacks a value'],
    [`{"metadata": ${'['.repeat(100_000)}`, 'lacks a value'],
    ['{"weight_map": {}} x', 'lacks the end'],
  ])('that is invalid: %s', async (text, what) => {
    expect(await problem(() => openWeights(indexed(text)))).toContain(what)
  })
})

test('a file that changes after it was opened is a diagnostic', async () => {
  const bytes = await written([plain('a', [300, 300]), plain('b')])
  const path = put('changing.safetensors', bytes)
  const weights = await openWeights(path)
  expect((await weights.weights('b')).length).toBe(6)
  truncateSync(path, bytes.length - 10)
  expect(await problem(() => weights.weights('b'))).toBe(
    `io/changed: '${path}' had ${bytes.length} bytes when opened, and now has ${bytes.length - 10}`,
  )
  expect(await problem(() => collect(weights.part('a').chunks()))).toContain('io/changed')
  rmSync(path)
  expect(await problem(() => weights.weights('b'))).toContain('io/not-found')
  // Where the source does not tell its size anew, what is missing does.
  let size = bytes.length
  const shrinking: ByteSource = {
    ...bytesSource('a.safetensors', bytes),
    read: async (start, end) => bytes.subarray(start, Math.min(end, size)),
  }
  const open = await weightsOf(shrinking)
  for (size = bytes.length - 1; size > 0; size -= 997) {
    expect(await problem(() => open.weights('b'))).toContain('io/truncated')
    await survives(() => collect(open.masked('a', new Uint8Array(90_000)).chunks()))
  }
  expect(await problem(() => openSafetensors(shrinking))).toContain('io/safetensors-header')
})

describe('files without weights', () => {
  test('sparse matrices, texts, other files', async () => {
    const sparse = npzArrays({
      kind: 'coords',
      shape: [2, 2],
      coords: [Int32Array.of(0), Int32Array.of(1)],
      values: Float32Array.of(1),
      dtype: 'f32',
    })
    const npz = async (arrays: Parameters<typeof npzChunks>[0]) =>
      bytesSource('a.npz', await collect(npzChunks(arrays)))
    expect(await problem(async () => weightsOf(await npz(sparse)))).toContain('io/kind')
    const grouped = Object.fromEntries(Object.entries(sparse).map(([k, v]) => [`w_${k}`, v]))
    expect(await problem(async () => weightsOf(await npz(grouped)))).toContain('io/kind')
    expect(await problem(async () => weightsOf(await npz({ t: { text: 'abc' } })))).toBe(
      'io/unsupported: a.npz#t holds text, not numbers',
    )
    expect(await problem(() => weightsOf(bytesSource('a.npy', new Uint8Array(9))))).toContain(
      'io/unknown-extension',
    )
    expect(await problem(() => weightsOf(bytesSource('a.npz', new Uint8Array(99))))).toContain('io/corrupt')
  })
  test('numbers beyond f32', async () => {
    const wide: Plain = {
      name: 'w',
      type: 'F64',
      shape: [2, 2],
      bytes: packed([Float64Array.of(1, 1e300, 1, 1)]),
    }
    const weights = await weightsOf(bytesSource('a.safetensors', await written([wide])))
    expect(await problem(() => weights.weights('w'))).toBe(
      'io/value-range: a.safetensors#w, element 1: the value 1e+300 does not fit f32',
    )
    const odd = { ...wide, bytes: packed([Float64Array.of(Number.NaN, Number.POSITIVE_INFINITY, -0, 1)]) }
    const read = await (await weightsOf(bytesSource('a.safetensors', await written([odd])))).weights('w')
    expect(read).toEqual(Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY, -0, 1))
  })
})
