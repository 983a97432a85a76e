/** Matrices that launches take: what the driver is told of them, and when. */
import { expect, test } from 'vitest'
import { int, variable } from '../../src/ir/expressions/expr.ts'
import type { CudaDriver, DriverCalls } from '../../src/runtime/cuda/driver.ts'
import { MATRIX_BYTES, Matrices, type MatrixSpec } from '../../src/runtime/cuda/pack-arguments.ts'
import { FakeDriver } from './cuda-fake.ts'

type Encode = Parameters<NonNullable<DriverCalls['cuTensorMapEncodeTiled']>>

/** A driver that says what it was asked for, and answers with `code`. */
function driverOf(code = 0): { readonly driver: CudaDriver; readonly asked: Encode[] } {
  const fake = new FakeDriver()
  const asked: Encode[] = []
  const encode = (...args: Encode): number => {
    asked.push(args)
    return code
  }
  const driver: CudaDriver = {
    path: fake.path,
    calls: { ...fake.calls, cuTensorMapEncodeTiled: encode },
    // Hosts align to 16 bytes at least; descriptions want more.
    addressOf: (block) => fake.addressOf(block) + 16n,
    readString: (address) => fake.readString(address),
  }
  return { driver, asked }
}

const specOf = (dtype: MatrixSpec['dtype'], box: readonly [number, number], swizzle: number): MatrixSpec => ({
  kind: 'matrix',
  name: 'A_matrix',
  buffer: 'A',
  dtype,
  matrix: { rows: variable('m'), columns: int(72), box, swizzle },
})

test('columns come first, strides in bytes', () => {
  const { driver, asked } = driverOf()
  const at = new Matrices(driver).encode(specOf('f16', [32, 64], 128), 0x1000n, 100, 72)
  expect(at % 64n).toBe(0n)
  const [map, type, rank, address, sizes, strides, box, steps, interleave, swizzle, , fill] = asked[0]!
  expect(map).toBe(at)
  // CU_TENSOR_MAP_DATA_TYPE_FLOAT16; no interleave; CU_TENSOR_MAP_SWIZZLE_128B; zeros outside.
  expect([type, rank, address, interleave, swizzle, fill]).toEqual([6, 2, 0x1000n, 0, 3, 0])
  expect([[...sizes], [...strides], [...box], [...steps]]).toEqual([[72n, 100n], [144n], [64, 32], [1, 1]])
  expect(MATRIX_BYTES).toBe(128)
})

test.each([
  ['f32', 0, 7, 0],
  ['bf16', 32, 9, 1],
  ['f16', 64, 6, 2],
  ['i32', 128, 3, 3],
] as const)('%s, swizzled within %i bytes', (dtype, swizzle, type, code) => {
  const { driver, asked } = driverOf()
  new Matrices(driver).encode(specOf(dtype, [8, 8], swizzle), 0n, 8, 8)
  expect([asked[0]![1], asked[0]![9]]).toEqual([type, code])
})

test('is encoded again if its address or its sizes change', () => {
  const { driver, asked } = driverOf()
  const matrices = new Matrices(driver)
  const spec = specOf('f32', [8, 8], 0)
  const first = matrices.encode(spec, 0x100n, 8, 8)
  expect(matrices.encode(spec, 0x100n, 8, 8)).toBe(first)
  expect(asked).toHaveLength(1)
  matrices.encode(spec, 0x200n, 8, 8)
  matrices.encode(spec, 0x200n, 16, 8)
  matrices.encode(spec, 0x200n, 16, 12)
  matrices.encode(specOf('f32', [8, 8], 0), 0x200n, 16, 12)
  expect(asked).toHaveLength(5)
})

test('without elements it is described as one row', () => {
  const { driver, asked } = driverOf()
  new Matrices(driver).encode(specOf('f32', [8, 8], 0), 0x100n, 0, 0)
  expect([[...asked[0]![4]], [...asked[0]![5]]]).toEqual([[1n, 1n], [16n]])
})

test('is rejected with a reason', () => {
  const { driver } = driverOf()
  const matrices = new Matrices(driver)
  const spec = specOf('f16', [8, 8], 0)
  expect(() => matrices.encode(spec, 0x100n, 8, 12)).toThrow(
    /device\/matrix: A has rows of 12 elements of f16/,
  )
  expect(() => matrices.encode(spec, 0x108n, 8, 16)).toThrow(/device\/matrix: A begins at address 264/)
  const old = new FakeDriver()
  expect(() => new Matrices(old).encode(spec, 0x100n, 8, 16)).toThrow(
    /device\/matrix: the NVIDIA driver cannot/,
  )
  // What the driver refuses is not kept.
  const failing = driverOf(1)
  const others = new Matrices(failing.driver)
  for (const times of [1, 2]) {
    expect(() => others.encode(spec, 0x100n, 8, 16)).toThrow(/cuTensorMapEncodeTiled/)
    expect(failing.asked).toHaveLength(times)
  }
})
