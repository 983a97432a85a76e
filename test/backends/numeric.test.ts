/** What the printed texts compute where targets differ: infinities, NaN, integers at their ends, narrow types. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Dtype } from '../../src/ir/values/dtype.ts'
import { dense, devices, load, type ValueArray } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'
import { sample } from '../support/cases.ts'

const FLOATS = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  3,
  -3,
  7,
  10,
  -10,
  30,
  100,
  -100,
  300,
  -200,
  5000,
  1e9,
  3e9,
  -3e9,
  1e38,
  1e-30,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NaN,
]

const INTS: Readonly<Record<'i32' | 'u32' | 'i8' | 'u8', readonly number[]>> = {
  i32: [0, 1, -1, 7, -7, 2147483647, -2147483648, 65537],
  u32: [0, 1, 7, 4294967295, 2147483648, 65537],
  i8: [0, 1, -1, 7, -7, 127, -128],
  u8: [0, 1, 7, 255, 128],
}

const ARRAY = {
  f32: Float32Array,
  i32: Int32Array,
  u32: Uint32Array,
  i8: Int8Array,
  u8: Uint8Array,
  bool: Uint8Array,
} as const
type Plain = keyof typeof ARRAY

const pairs = (xs: readonly number[]): [number[], number[]] => [
  xs.flatMap((x) => xs.map(() => x)),
  xs.flatMap(() => xs),
]

const all = new Map<string, Device>()
beforeAll(async () => {
  all.set('cpu', await devices.cpu())
  all.set('webgpu', await devices.webgpu())
})
afterAll(async () => {
  for (const d of all.values()) await d.dispose()
})

/** out[i] = e over a and b, on a device. */
async function evaluate(
  device: Device,
  e: string,
  from: Plain,
  to: Dtype,
  [a, b]: readonly [readonly number[], readonly number[]],
): Promise<ValueArray> {
  const source = `kernel each(n: size) {
  axis i = dense_fixed(n)
  buffer a: ${from}[i] in
  buffer b: ${from}[i] in
  buffer out: ${to}[i] out
  iterate body [i] as S { let x = a[i]  let y = b[i]  out[i] = ${e} }
}`
  const compiled = await (await load(source)).kernel().build(device)
  const typed = (v: readonly number[]) => dense([v.length], ARRAY[from].from(v), from)
  try {
    return (await compiled({ a: typed(a), b: typed(b) })).out!.values!
  } finally {
    compiled.release()
  }
}

/** Special values to the letter, others to a relative or absolute error. */
function expectClose(
  got: ValueArray,
  want: readonly number[],
  label: string,
  args: readonly (readonly number[])[],
): void {
  want.forEach((w, k) => {
    const g = got[k]!
    const near = Math.abs(g - w) <= 5e-5 * Math.max(Math.abs(w), 1)
    const ok = Number.isNaN(w) ? Number.isNaN(g) : g === w || (Number.isFinite(w) && near)
    if (!ok) expect.fail(`${label} of ${args.map((a) => a[k]).join(', ')} is ${g}, not ${w}`)
  })
}

const f32 = (x: number): number => {
  const r = Math.fround(x)
  // WebGPU may flush what is below the smallest normal number.
  return Math.abs(r) < 2 ** -126 ? 0 : r
}

const even = (x: number): number => {
  const f = Math.floor(x)
  return x - f < 0.5 || (x - f === 0.5 && f % 2 === 0) ? f : f + 1
}

const UNARY: Readonly<Record<string, (x: number) => number>> = {
  exp: Math.exp,
  exp2: (x) => 2 ** x,
  log: Math.log,
  log1p: Math.log1p,
  sqrt: Math.sqrt,
  rsqrt: (x) => 1 / Math.sqrt(x),
  abs: Math.abs,
  tanh: Math.tanh,
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  floor: Math.floor,
  ceil: Math.ceil,
  round: even,
  sign: Math.sign,
}

const BINARY: Readonly<Record<string, (x: number, y: number) => number>> = {
  'max(x, y)': Math.max,
  'min(x, y)': Math.min,
  'x + y': (x, y) => x + y,
  'x * y': (x, y) => x * y,
  'select(x > y, x, y)': (x, y) => (x > y ? x : y),
  'select(x != y, 1, 0)': (x, y) => (x !== y ? 1 : 0),
  'select(x != x, 1, 0)': (x) => (Number.isNaN(x) ? 1 : 0),
  'select(x == x and not (x < y), 1, 0)': (x, y) => (!Number.isNaN(x) && !(x < y) ? 1 : 0),
  'select(x == -inf, 1, select(x == inf, 2, 3))': (x) => (x === -Infinity ? 1 : x === Infinity ? 2 : 3),
  'select(x > y, nan, select(x < y, -inf, inf))': (x, y) =>
    x > y ? Number.NaN : x < y ? -Infinity : Infinity,
}

/** Between two values of some type, beyond the range of some, below the least of some. */
const LITERALS = [
  ...[
    '0.1',
    '-0.1',
    '0.5',
    '1.005',
    '16777217',
    '16777217.0',
    '2049',
    '2051',
    '-257',
    '259.0',
    '65519',
    '65520.0',
  ],
  ...['70000.0', '-70000', '3.4e38', '3.3961775e38', '1e39', '1e-7', '2.98e-8', '2.99e-8', 'inf'],
]

/** Whatever a shader's compiler says of such. */
const OVERFLOWING: Readonly<Record<'f32' | 'i32', Readonly<Record<string, number>>>> = {
  f32: {
    'rsqrt(0.0)': Infinity,
    'sqrt(-1.0)': Number.NaN,
    'log(-1.0)': Number.NaN,
    'log(0.0)': -Infinity,
    'pow(-8.0, 0.5)': Number.NaN,
    'exp(100.0)': Infinity,
    'f32(1.0) / f32(0.0)': Infinity,
    'f32(5.0) % f32(0.0)': Number.NaN,
    'f32(3.4e38) + f32(3.4e38)': Infinity,
    'f32((bf16(3e38) + bf16(1e36)) + bf16(3e38))': Infinity,
    'f32(f16(60000.0) * f16(60000.0))': 3.6e9,
  },
  i32: {
    'i32(i8(select(true, 200, i32(x))))': -56,
    'i32(2147483647) + i32(1)': -2147483648,
    'i32(65536) * i32(65536) + 5': 5,
    '-i32(-2147483648)': -2147483648,
    'abs(i32(-2147483648))': -2147483648,
    'i32(u32(0) - u32(1))': -1,
    'shift_left(-1, 31)': -2147483648,
    'ceildiv(i32(2147483647), i32(2))': 1073741824,
    'i32(f32(3e9))': 2147483647,
    'i32(f32(16777217))': 16777216,
  },
}

describe.each(['cpu', 'webgpu'])('%s', (kind) => {
  const run = (e: string, from: Plain, to: Dtype, args: readonly [readonly number[], readonly number[]]) =>
    evaluate(all.get(kind)!, e, from, to, args)

  test.each(Object.keys(UNARY))('%s of special values', async (fn) => {
    const xs = FLOATS.map(Math.fround)
    const got = await run(`${fn}(x)`, 'f32', 'f32', [xs, xs])
    expectClose(
      got,
      xs.map((x) => f32(UNARY[fn]!(x))),
      fn,
      [xs],
    )
  })

  test.each(['sin', 'cos'] as const)('%s far from 0', async (fn) => {
    const xs = [...Array.from({ length: 200 }, (_, k) => (k - 100) * 3.7), Number.NaN, Infinity].map(
      Math.fround,
    )
    const got = await run(`${fn}(x)`, 'f32', 'f32', [xs, xs])
    // WGSL promises 2^-11 inside one turn.
    xs.forEach((x, k) => {
      const want = Math[fn](x)
      if (Number.isNaN(want)) expect(got[k]).toBeNaN()
      else expect(Math.abs(got[k]! - want)).toBeLessThan(5e-4)
    })
  })

  test.each(Object.keys(BINARY))('%s of special values', async (e) => {
    const [a, b] = pairs(FLOATS.map(Math.fround))
    const got = await run(e, 'f32', 'f32', [a, b])
    expectClose(
      got,
      a.map((x, k) => f32(BINARY[e]!(x, b[k]!))),
      e,
      [a, b],
    )
  })

  test('bits of integers', async () => {
    const words = [0, 1, 2, 3, 255, -1, -2, 2147483647, -2147483648, 0x55555555, -0x55555556, 65537]
    const counts = await run('popcount(x)', 'i32', 'i32', [words, words])
    expect([...counts]).toEqual(words.map((x) => (x >>> 0).toString(2).replaceAll('0', '').length))
    const [a, b] = pairs(words)
    const places = b.map((_, k) => k % 37)
    const shifted = await run('shift_left(x, y)', 'i32', 'i32', [a, places])
    const wide = (x: number, n: number): number => Number(BigInt.asIntN(32, BigInt(x) << BigInt(n % 32)))
    expect([...shifted]).toEqual(a.map((x, k) => wide(x, places[k]!)))
    const right = await run('shift_right(x, y)', 'i32', 'i32', [a, places])
    expect([...right]).toEqual(a.map((x, k) => (x >>> (places[k]! % 32)) | 0))
    const constants = await run('shift_left(-1, 3) + popcount(-1) + 0 * x', 'i32', 'i32', [[7], [7]])
    expect([...constants]).toEqual([24])
  })

  test('powers, of negative numbers too', async () => {
    const [a, b] = pairs([0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 10, Infinity, -Infinity, Number.NaN])
    expectClose(
      await run('abs(pow(x, y))', 'f32', 'f32', [a, b]),
      a.map((x, k) => f32(Math.abs(x ** b[k]!))),
      'pow',
      [a, b],
    )
    const finite = pairs([1, -1, 2, -2, 3, -3])
    expectClose(
      await run('pow(x, y)', 'f32', 'f32', finite),
      finite[0].map((x, k) => f32(x ** finite[1][k]!)),
      'pow',
      finite,
    )
  })

  test('reductions keep infinities and NaN', async () => {
    const source = (reducer: string) => `kernel fold(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer a: f32[i, j] in
  buffer out: f32[i] out
  iterate body [i, j] as SR { out[i] ${reducer}= a[i, j] }
}`
    const rows = [
      [1, -Infinity],
      [-Infinity, -Infinity],
      [Infinity, 3],
      [Number.NaN, 1],
      [1, Number.NaN],
      [-5, -7],
    ]
    for (const [reducer, f] of [
      ['max', Math.max],
      ['min', Math.min],
    ] as const) {
      const compiled = await (await load(source(reducer))).kernel().build(all.get(kind)!)
      const got = await compiled({ a: dense([rows.length, 2], rows.flat()) })
      expect([...got.out!.values!]).toEqual(rows.map((r) => f(...r)))
      const empty = await compiled({ a: dense([2, 0], []) })
      expect([...empty.out!.values!]).toEqual(
        reducer === 'max' ? [-Infinity, -Infinity] : [Infinity, Infinity],
      )
      compiled.release()
    }
  })

  describe.each(['i32', 'u32', 'i8', 'u8'] as const)('%s', (t) => {
    const wrap = (x: bigint): number => ARRAY[t].of(Number(BigInt.asIntN(32, x)))[0]!
    const floor = (x: bigint, y: bigint): bigint => (x % y !== 0n && x < 0n !== y < 0n ? x / y - 1n : x / y)
    const magnitude = (x: bigint): bigint => {
      const least = t === 'i32' && x === -(2n ** 31n)
      return x < 0n && !least ? -x : x
    }
    const OPS: Readonly<Record<string, (x: bigint, y: bigint) => bigint>> = {
      'x + y': (x, y) => x + y,
      'x - y': (x, y) => x - y,
      'x * y': (x, y) => x * y,
      '(x * y) * x + y': (x, y) => x * y * x + y,
      'x / y': (x, y) => (y === 0n ? 0n : floor(x, y)),
      'x % y': (x, y) => (y === 0n ? 0n : x - y * floor(x, y)),
      'ceildiv(x, y)': (x, y) => (y === 0n ? 0n : -floor(-x, y)),
      'ceildiv(x, 4)': (x) => -floor(-x, 4n),
      ...(t.startsWith('i') && {
        'ceildiv(x, -3)': (x) => -floor(-x, -3n),
        'ceildiv(7, x)': (x) => (x === 0n ? 0n : -floor(-7n, x)),
      }),
      '-x': (x) => -x,
      'abs(x)': (x) => (x < 0n ? -x : x),
      'abs(x) / y': (x, y) => (y === 0n ? 0n : floor(magnitude(x), y)),
      'abs(x) % y': (x, y) => (y === 0n ? 0n : magnitude(x) - y * floor(magnitude(x), y)),
      'sign(x)': (x) => (x > 0n ? 1n : x < 0n ? -1n : 0n),
      'max(x, y)': (x, y) => (x > y ? x : y),
      'min(x, y)': (x, y) => (x < y ? x : y),
    }
    // A shader for each takes long to compile: others in every run.
    const keys = Object.keys(OPS)
    test.each(kind === 'cpu' ? keys : sample(keys, 18))('%s', async (e) => {
      const [a, b] = pairs(INTS[t])
      const want = a.map((x, k) => wrap(OPS[e]!(BigInt(x), BigInt(b[k]!))))
      expect([...(await run(`${t}(${e})`, t, t, [a, b]))]).toEqual(want)
    })

    test('is computed in 32 bits before comparison', async () => {
      const [a, b] = pairs(INTS[t])
      const bits = (x: bigint): number => Number(t === 'u32' ? BigInt.asUintN(32, x) : BigInt.asIntN(32, x))
      for (const e of ['-x', 'abs(x)', 'x + y', 'x - y', 'x * y']) {
        const want = a.map((x, k) => (bits(OPS[e]!(BigInt(x), BigInt(b[k]!))) > b[k]! ? 1 : 0))
        expect([...(await run(`select(${e} > y, 1, 0)`, t, 'i32', [a, b]))], e).toEqual(want)
      }
    })

    test.each(['i32', 'u32', 'i8', 'u8'] as const)('from %s: bits are truncated', async (from) => {
      const xs = INTS[from]
      // What is converted once more has been wrapped by then: no store does it.
      const want = xs.map((x) => Math.fround(ARRAY[t].of(x)[0]!))
      expect([...(await run(`f32(${t}(x))`, from, 'f32', [xs, xs]))]).toEqual(want)
    })

    test('from floats: towards zero, to the ends of the range, NaN to 0', async () => {
      const xs = FLOATS.map(Math.fround)
      const [lo, hi] = {
        i32: [-(2 ** 31), 2 ** 31 - 1],
        u32: [0, 2 ** 32 - 1],
        i8: [-128, 127],
        u8: [0, 255],
      }[t]
      const want = xs.map((x) => (Number.isNaN(x) ? 0 : Math.min(hi!, Math.max(lo!, Math.trunc(x)))) + 0)
      expect([...(await run(`${t}(x)`, 'f32', t, [xs, xs]))]).toEqual(want)
    })
  })

  /** `out` of element k is the k-th of `parts`. */
  const eachOf = (parts: readonly string[]): string =>
    parts.reduceRight((rest, e, k) => `select(i == ${k}, ${e}, ${rest})`)

  test.each(['f32', 'f16', 'bf16', 'f64'] as const)('literals of %s are its nearest values', async (t) => {
    if (t === 'f64' && kind === 'webgpu') return
    const wide = kind === 'cpu' ? 'f64' : 'f32'
    const round = t === 'f64' ? Number : t === 'f32' ? Math.fround : (x: number) => nearest(t, x)
    const values = LITERALS.map((l) => round(Number(l.replace('inf', 'Infinity'))))
    const others = values.map((v) => (Number.isFinite(v) && v !== 0 ? round(v * 1.5) : 1))
    const compared = (x: string): string => eachOf(LITERALS.map((l) => `select(${x} == ${l}, 1, 0)`))
    const source = `kernel literals(n: size, s: ${t}) {
  axis i = dense_fixed(n)
  buffer x: ${t}[i] in
  buffer z: ${t}[i] in
  buffer cast: ${wide}[i] out
  buffer same: i32[i] out
  buffer other: i32[i] out
  buffer padded: ${t}[i] out fill 0.1
  buffer kept: i32[i] out
  iterate body [i] as S {
    cast[i] = ${eachOf(LITERALS.map((l) => `${wide}(${t}(${l}))`))}
    same[i] = ${compared('x[i]')}
    other[i] = ${compared('z[i]')}
  }
  iterate some [i] as S where (i > 0) { padded[i] = max(s, 0.1) }
  iterate filled [i] as S { kept[i] = select(padded[i] == 0.1 and s == 0.1, 1, 0) }
}`
    const compiled = await (await load(source)).kernel().build(all.get(kind)!)
    const prepared = await compiled.bind({
      x: Float64Array.from(values),
      z: Float64Array.from(others),
      s: 0.1,
    })
    await prepared.run()
    const got = await prepared.outputs()
    const ones = values.map(() => 1)
    expect([...got.cast!.values!]).toEqual(values)
    expect([...got.same!.values!]).toEqual(ones)
    expect([...got.other!.values!]).toEqual(ones.map(() => 0))
    expect([...got.kept!.values!]).toEqual(ones)
    // The reference decides every comparison alike.
    expect(await prepared.verify()).toMatchObject({ ok: true, undecided: 0 })
    prepared.free()
    compiled.release()
  })

  test('a chain of conditions, one after the other', async () => {
    // WGSL allows fewer around each other than the language does beside each other.
    const count = kind === 'cpu' ? 256 : 60
    const xs = [0, 1, count - 1, count, -1]
    const branches = Array.from({ length: count }, (_, k) => `if (x[i] == ${k}) { y[i] = ${k * k} }`)
    const source = `kernel chain(n: size) {
  axis i = dense_fixed(n)
  buffer x: i32[i] in
  buffer y: i32[i] out
  iterate body [i] as S { ${branches.join(' else ')} else { y[i] = -1 } }
}`
    const compiled = await (await load(source)).kernel().build(all.get(kind)!)
    const prepared = await compiled.bind({ x: Int32Array.from(xs) })
    await prepared.run()
    expect([...(await prepared.get('y')).values!]).toEqual([0, 1, (count - 1) ** 2, -1, -1])
    expect((await prepared.verify()).ok).toBe(true)
    prepared.free()
    compiled.release()
  })

  test.each(['f32', 'i32'] as const)('constants that overflow, in %s', async (t) => {
    const cases = Object.entries(OVERFLOWING[t])
    const xs = cases.map(() => 0)
    const got = await run(eachOf(cases.map(([e]) => e)), 'f32', t, [xs, xs])
    expect([...got]).toEqual(cases.map(([, want]) => want))
  })

  describe('stores round to the type of the buffer', () => {
    const xs = [
      0,
      1,
      -1,
      1 / 3,
      65504,
      65519,
      65520,
      -1e6,
      6e-8,
      2.9e-8,
      3e-8,
      6.1e-5,
      1e-5,
      3.4e38,
      Infinity,
      Number.NaN,
    ].map(Math.fround)

    test.each(['f16', 'bf16'] as const)('%s', async (t) => {
      // Memory, and a value that is read back inside the kernel: both are what the type holds.
      const stored = await run(`${t}(x)`, 'f32', t, [xs, xs])
      const cast = await run(`f32(${t}(x))`, 'f32', 'f32', [xs, xs])
      const want = xs.map((x) => nearest(t, x))
      expect([...cast]).toEqual(want)
      expect([...stored].map((bits) => decoded(t, bits))).toEqual(want)
    })

    test('bool', async () => {
      const ys = [0, -0, 1, -1, 0.25, Number.NaN, Infinity]
      expect([...(await run('bool(x)', 'f32', 'bool', [ys, ys]))]).toEqual([0, 0, 1, 1, 1, 1, 1])
      expect([...(await run('x > 0 or x == -1', 'f32', 'bool', [ys, ys]))]).toEqual([0, 0, 1, 1, 1, 0, 1])
      expect([
        ...(await run('not x', 'bool', 'bool', [
          [0, 1],
          [0, 1],
        ])),
      ]).toEqual([1, 0])
    })

    test('false is before true', async () => {
      const both = pairs([0, 1])
      for (const [op, holds] of [
        ['<', (x, y) => x < y],
        ['<=', (x, y) => x <= y],
        ['>', (x, y) => x > y],
        ['>=', (x, y) => x >= y],
        ['==', (x, y) => x === y],
        ['!=', (x, y) => x !== y],
      ] satisfies [string, (x: number, y: number) => boolean][]) {
        const want = both[0].map((x, k) => Number(holds(x, both[1][k]!)))
        expect([...(await run(`x ${op} y`, 'bool', 'bool', both))], op).toEqual(want)
        expect([...(await run(`(x ${op} true) == y`, 'bool', 'bool', both))], op).toEqual(
          both[0].map((x, k) => Number(Number(holds(x, 1)) === both[1][k]!)),
        )
      }
    })
  })
})

/** Fraction bits, smallest normal exponent, largest finite value. */
const HALF = { f16: [10, -14, 65504], bf16: [7, -126, (2 - 2 ** -7) * 2 ** 127] } as const

/** The nearest value of the type, ties to even, from the definition of the formats. */
function nearest(t: 'f16' | 'bf16', x: number): number {
  if (!Number.isFinite(x) || x === 0) return x
  const [fraction, low, top] = HALF[t]
  const e = Math.max(low, Math.floor(Math.log2(Math.abs(x))))
  const step = 2 ** (e - fraction)
  const r = even(x / step) * step
  return Math.abs(r) > top ? Math.sign(x) * Infinity : r
}

function decoded(t: 'f16' | 'bf16', bits: number): number {
  const [fraction, low] = HALF[t]
  const sign = bits & 0x8000 ? -1 : 1
  const e = (bits & 0x7fff) >> fraction
  const m = bits & (2 ** fraction - 1)
  if (e === 0) return sign * m * 2 ** (low - fraction)
  if (e === 2 ** (15 - fraction) - 1) return m ? Number.NaN : sign * Infinity
  return sign * (1 + m / 2 ** fraction) * 2 ** (e - 1 + low)
}
