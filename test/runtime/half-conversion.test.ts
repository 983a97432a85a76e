import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../src/ir/values/dtype.ts'
import { fromBf16, fromF16, toBf16, toF16 } from '../../src/ir/values/half.ts'
import { roundTo } from '../../src/ir/values/words.ts'
import type { HostArray } from '../../src/runtime/device.ts'
import { deviceToHost, hostToDevice, wordDtype } from '../../src/runtime/webgpu/widened-elements.ts'
import { property } from '../support/property.ts'

const PATTERNS = Uint16Array.from({ length: 65536 }, (_, k) => k)

/** The value of a pattern, from the definition of the format. */
function defined(bits: number, fractionBits: number, bias: number): number {
  const exponentBits = 15 - fractionBits
  const sign = bits >>> 15 ? -1 : 1
  const exponent = (bits >>> fractionBits) & ((1 << exponentBits) - 1)
  const fraction = bits & ((1 << fractionBits) - 1)
  if (exponent === (1 << exponentBits) - 1) return fraction === 0 ? sign * Infinity : NaN
  const scale = 2 ** (Math.max(exponent, 1) - bias - fractionBits)
  return sign * (fraction + (exponent === 0 ? 0 : 1 << fractionBits)) * scale
}

const FORMATS = [
  { dtype: 'f16', fraction: 10, bias: 15, bits: toF16, value: fromF16 },
  { dtype: 'bf16', fraction: 7, bias: 127, bits: toBf16, value: fromBf16 },
] as const

const narrow = (dtype: Dtype, x: number): number => deviceToHost(dtype, Float32Array.of(x).buffer)[0]!

describe.each(FORMATS)('$dtype', ({ dtype, fraction, bias, bits, value }) => {
  const wide = hostToDevice(dtype, PATTERNS)

  test('widening gives the value that the format defines, for every pattern', () => {
    for (let p = 0; p < 65536; p++) {
      if (!Object.is(wide[p], defined(p, fraction, bias)))
        expect({ p, got: wide[p] }).toEqual({ p, got: defined(p, fraction, bias) })
      if (!Object.is(value(p), wide[p]!)) expect(value(p)).toBe(wide[p])
    }
  })

  test('narrowing undoes widening for every pattern, NaN payloads included', () => {
    expect(deviceToHost(dtype, (wide as Float32Array).slice().buffer as ArrayBuffer)).toEqual(PATTERNS)
  })

  test('every midpoint rounds to even, and other values to the nearest', () => {
    const infinity = bits(Infinity)
    const word = new Float32Array(1)
    const wordBits = new Uint32Array(word.buffer)
    for (let p = 0; p < infinity; p++) {
      const low = defined(p, fraction, bias)
      // The successor of the largest finite value stands for infinity when rounding.
      const high = p + 1 === infinity ? 2 ** (bias + 1) : defined(p + 1, fraction, bias)
      const middle = low / 2 + high / 2
      const even = p % 2 === 0 ? p : p + 1
      const got = [
        narrow(dtype, middle),
        bits(middle),
        bits(middle * (1 - 2 ** -50)),
        bits(middle * (1 + 2 ** -50)),
      ]
      const want = [even, even, p, p + 1]
      if (got.some((g, k) => g !== want[k])) expect({ p, got }).toEqual({ p, got: want })
      // The f32 words next to the midpoint.
      word[0] = middle
      for (const [step, near] of [
        [-1, p],
        [1, p + 1],
      ] as const) {
        const beside = Uint32Array.of(wordBits[0]! + step)
        const found = deviceToHost(dtype, beside.buffer)[0]
        if (found !== near) expect({ p, step, found }).toEqual({ p, step, found: near })
      }
      if (bits(-middle) !== even + 0x8000) expect(bits(-middle)).toBe(even + 0x8000)
    }
  })

  property([fc.float()])('rounding a number and narrowing its f32 word agree', (x) => {
    if (Number.isNaN(x)) expect(value(bits(x))).toBeNaN()
    else expect(narrow(dtype, x)).toBe(bits(x))
  })

  test('signed zeros and values below half the least subnormal keep their sign', () => {
    expect([bits(0), bits(-0), bits(1e-300), bits(-1e-300)]).toEqual([0, 0x8000, 0, 0x8000])
    expect([narrow(dtype, -0), narrow(dtype, -Infinity)]).toEqual([0x8000, bits(Infinity) + 0x8000])
  })
})

const INTEGERS: Readonly<Record<string, { array: (v: number[]) => HostArray; min: number; max: number }>> = {
  i8: { array: (v) => Int8Array.from(v), min: -128, max: 127 },
  u8: { array: (v) => Uint8Array.from(v), min: 0, max: 255 },
  bool: { array: (v) => Uint8Array.from(v), min: 0, max: 1 },
  i32: { array: (v) => Int32Array.from(v), min: -(2 ** 31), max: 2 ** 31 - 1 },
  u32: { array: (v) => Uint32Array.from(v), min: 0, max: 2 ** 32 - 1 },
}

describe.each(Object.entries(INTEGERS))('%s', (dtype, { array, min, max }) => {
  property([fc.array(fc.integer({ min, max }))])('round-trips through words', (values) => {
    const words = hostToDevice(dtype as Dtype, array(values))
    expect(words.BYTES_PER_ELEMENT).toBe(4)
    expect([...words]).toEqual(values)
    const back = deviceToHost(dtype as Dtype, words.slice().buffer as ArrayBuffer)
    expect(back).toEqual(array(values))
  })
})

test('words are not copied', () => {
  const values = Float32Array.of(1, 2)
  expect(hostToDevice('f32', values)).toBe(values)
})

test('a partial length reads only that many words', () => {
  expect(deviceToHost('i8', Int32Array.of(1, -2, 3).buffer, 2)).toEqual(Int8Array.of(1, -2))
})

test('f64 is rejected with the tensor named', () => {
  expect(() => wordDtype('f64', 'A')).toThrow(SptError)
  expect(() => wordDtype('f64', 'A')).toThrow(/no-f64: A is f64/)
  expect(() => hostToDevice('f64', new Float64Array(1))).toThrow(/no-f64/)
  expect(() => deviceToHost('f64', new ArrayBuffer(8))).toThrow(/no-f64/)
})

test('scalars are rounded to their type', () => {
  expect(roundTo('f32', 0.1)).toBe(Math.fround(0.1))
  expect(roundTo('f16', 2049)).toBe(2048)
  expect(roundTo('bf16', 257)).toBe(256)
  expect([roundTo('i8', 200), roundTo('u8', 257), roundTo('bool', 3), roundTo('u32', -1)]).toEqual([
    -56, 1, 1, 4294967295,
  ])
  expect(roundTo('f64', 0.1)).toBe(0.1)
})
