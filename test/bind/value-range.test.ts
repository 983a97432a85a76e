/** A finite value is bound as a finite value of its buffer's type, or refused by name and place. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Bindable, coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { readNpy } from '../../src/io/numpy/npy.ts'
import { npyChunks } from '../../src/io/numpy/npz-write.ts'
import { readEdges } from '../../src/io/text/edges.ts'
import { readMatrixMarket } from '../../src/io/text/matrix-market.ts'
import type { Dtype } from '../../src/ir/values/dtype.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { decoder, type ValueArray } from '../../src/storage/tensor.ts'

/** The largest finite values, and the least that rounds to an infinity. */
const FLOATS = {
  f64: [Number.MAX_VALUE, Number.POSITIVE_INFINITY],
  f32: [(2 - 2 ** -23) * 2 ** 127, (2 - 2 ** -24) * 2 ** 127],
  f16: [65504, 65520],
  bf16: [(2 - 2 ** -7) * 2 ** 127, (2 - 2 ** -8) * 2 ** 127],
} as const
const INTS = {
  i32: [-2147483648, 2147483647],
  u32: [0, 4294967295],
  i8: [-128, 127],
  u8: [0, 255],
  bool: [0, 1],
} as const
const TYPES = [...Object.keys(FLOATS), ...Object.keys(INTS)] as Dtype[]

function fits(dtype: Dtype, x: number): boolean {
  if (Object.hasOwn(FLOATS, dtype))
    return !Number.isFinite(x) || Math.abs(x) < FLOATS[dtype as keyof typeof FLOATS][1]
  const [lo, hi] = INTS[dtype as keyof typeof INTS]
  return Number.isInteger(x) && x >= lo && x <= hi
}

const value = fc.oneof(
  fc.constantFrom(
    ...[...Object.values(FLOATS), ...Object.values(INTS)].flat().flatMap((x) => [x, -x, x + 1, x - 1, x / 2]),
    Number.NaN,
    0.5,
    -0,
    1e300,
    -1e300,
  ),
  fc.integer(),
  fc.double(),
)

const bytes = async function* (text: string) {
  yield new TextEncoder().encode(text)
}
const printed = (x: number): string =>
  Number.isFinite(x) ? String(x) : Number.isNaN(x) ? 'nan' : x > 0 ? 'inf' : '-inf'

const kernels = Promise.all(
  TYPES.map(async (t) => {
    const text = `
kernel k(m: size, a: ${t}) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(3)
  buffer X: ${t}[i, j] in
  buffer Y: ${t}[i, j] out
  iterate c [i, j] as SS { Y[i, j] = X[i, j] }
}`
    return [t, await parseProgram(text).kernel().build(createCpuDevice())] as const
  }),
)

test('bound, written, read and given as a scalar', async () => {
  const compiled = new Map(await kernels)
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...TYPES), value, async (dtype, x) => {
      const k = compiled.get(dtype)!
      const values = [0, 0, 0, 0, x, 0]
      const run = async (X: Bindable, a = 0) => (await k({ X, a, m: 2 })).Y!.values!
      const stored = (t: { readonly values: ValueArray | null }) => t.values!
      const doors: readonly (readonly [string, () => Promise<ValueArray>, number])[] = [
        ['X[1, 1]', () => run(values), 4],
        ['X[1, 1]', () => run(dense([2, 3], values)), 4],
        [
          'X[1, 1]',
          () =>
            run(
              coords(
                [2, 3],
                [
                  [0, 1],
                  [2, 1],
                ],
                [1, x],
              ),
            ),
          4,
        ],
        [
          'X[1, 1]',
          () =>
            run(
              coords(
                [2, 3],
                [
                  [1, 1],
                  [1, 1],
                ],
                [x, 0],
              ),
            ),
          4,
        ],
        [
          'X[1, 1]',
          async () => {
            const p = await k.bind({ X: dense([2, 3], new Uint8Array(6)), a: 0 })
            await p.set('X', values)
            await p.run()
            const y = (await p.get('Y')).values!
            p.free()
            return y
          },
          4,
        ],
        ['a is', () => run(new Uint8Array(6), x), -1],
        [
          'm:3',
          async () =>
            stored(
              await readMatrixMarket(
                bytes(`%%MatrixMarket matrix coordinate real general\n2 3 1\n2 2 ${printed(x)}\n`),
                { name: 'm', dtype },
              ),
            ),
          0,
        ],
        ['m:1', async () => stored(await readEdges(bytes(`1 2 ${printed(x)}\n`), { name: 'm', dtype })), 0],
        [
          'm, element 1',
          async () =>
            stored(await readNpy(npyChunks(Float64Array.of(0, x), [2], 'f64'), { name: 'm', dtype })),
          1,
        ],
      ]
      for (const [place, open, at] of doors) {
        const result = await open().catch((e: Error) => e)
        if (!fits(dtype, x)) {
          expect(result).toBeInstanceOf(Error)
          expect((result as Error).message).toMatch(/(value|scalar)-range/)
          expect((result as Error).message).toContain(place)
          expect((result as Error).message).toContain(String(x))
          continue
        }
        expect(result).not.toBeInstanceOf(Error)
        if (at < 0) continue
        const got = (result as ValueArray)[at]!
        const y = decoder(dtype)?.(got) ?? got
        if (Number.isFinite(x)) expect(Number.isFinite(y)).toBe(true)
        else expect(y).toBe(x)
      }
    }),
  )
})

test('decimals beyond f64 precision are not rounded to infinity', async () => {
  const file = (text: string) => readEdges(bytes(`0 1 ${text}\n`), { name: 'm' })
  await expect(file('1e400')).rejects.toThrow('io/value-range: m:1: the value 1e400')
  expect([...(await file('-inf')).values!]).toEqual([Number.NEGATIVE_INFINITY])
})
