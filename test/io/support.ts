/** What the tests of this room share. */
import fc from 'fast-check'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Chunks } from '../../src/io/byte-source.ts'
import { valueArray } from '../../src/io/element-arrays.ts'
import type { Dtype } from '../../src/ir/values/dtype.ts'
import type { CoordTensor, Tensor, ValueArray } from '../../src/storage/tensor.ts'

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** `bytes` in pieces of `size`, in one buffer that is reused, as a file's stream may do. */
export function* pieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  const buffer = new Uint8Array(size)
  for (let at = 0; at < bytes.length; at += size) {
    const piece = bytes.subarray(at, at + size)
    buffer.set(piece)
    yield buffer.subarray(0, piece.length)
    buffer.fill(0xff)
  }
}

export async function collect(chunks: Chunks): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const c of chunks) parts.push(c.slice())
  return new Uint8Array(Buffer.concat(parts))
}

/** The code and message of the error that `work` throws; fails on any other outcome. */
export async function problem(work: () => unknown): Promise<string> {
  try {
    await work()
  } catch (error) {
    if (error instanceof SptError) return error.message
    throw error
  }
  throw new Error('nothing was thrown')
}

/** Runs `work`, which may succeed or throw an `SptError`, and nothing else. */
export async function survives(work: () => unknown): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    if (error instanceof SptError) return false
    throw error
  }
}

/** Elements as readable text, sorted: storage order does not matter. */
export function elements(t: Tensor): string[] {
  if (t.kind !== 'coords') throw new Error(`a ${t.kind} tensor`)
  return Array.from(
    t.coords[0]!,
    (_, e) => `${t.coords.map((c) => c[e]).join(',')}=${t.values?.[e] ?? 1}`,
  ).sort()
}

/** Integers that every numeric type but bool holds exactly. */
const SMALL: Readonly<Record<Dtype, fc.Arbitrary<number>>> = {
  f64: fc.double({ noNaN: true }),
  f32: fc.float({ noNaN: true }),
  f16: fc.integer({ min: 0, max: 0x7bff }),
  bf16: fc.integer({ min: 0, max: 0x7f7f }),
  i32: fc.integer(),
  u32: fc.nat(0xffffffff),
  i8: fc.integer({ min: -128, max: 127 }),
  u8: fc.nat(255),
  bool: fc.nat(1),
}

export function valuesArb(dtype: Dtype, length: number): fc.Arbitrary<ValueArray> {
  return fc.array(SMALL[dtype], { minLength: length, maxLength: length }).map((list) => {
    const out = valueArray(dtype, length, 'test')
    out.set(list)
    return out
  })
}

/** Coordinate tensors of the given rank: empty, with empty dimensions, duplicates, patterns. */
export function coordsArb(rank: number, dtypes: readonly Dtype[]): fc.Arbitrary<CoordTensor> {
  return fc
    .record({
      shape: fc.array(fc.nat(9), { minLength: rank, maxLength: rank }),
      count: fc.nat(12),
      dtype: fc.constantFrom(...dtypes),
      pattern: fc.boolean(),
    })
    .chain(({ shape, count, dtype, pattern }) => {
      const n = shape.includes(0) ? 0 : count
      return fc
        .tuple(
          fc.tuple(
            ...shape.map((s) =>
              fc
                .array(fc.nat(Math.max(0, s - 1)), { minLength: n, maxLength: n })
                .map((c) => Int32Array.from(c)),
            ),
          ),
          valuesArb(dtype, n),
        )
        .map(([coords, values]) => ({
          kind: 'coords' as const,
          shape,
          coords,
          values: pattern ? null : values,
          dtype,
        }))
    })
}

/** Whether two arrays hold the same bytes (`toEqual` takes seconds for long ones). */
export const sameBytes = (a: ArrayBufferView, b: ArrayBufferView): boolean =>
  Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(Buffer.from(b.buffer, b.byteOffset, b.byteLength))
