/**
 * Constructors of expressions fold and simplify, and the reference evaluates their results: both are compared with an
 * evaluator that shares nothing with them, on the same expression as it is written, for every type.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  binary,
  binaryType,
  type Const,
  call,
  cast,
  constant,
  type Expr,
  neg,
  not,
  select,
  variable,
} from '../../src/ir/expressions/expr.ts'
import { isFreeCast } from '../../src/ir/expressions/expr-tree.ts'
import { type Dtype, type ExprType, join } from '../../src/ir/values/dtype.ts'
import { rounding } from '../../src/ir/values/half.ts'
import type { BinaryOp, MathFn } from '../../src/ir/values/math.ts'
import { compileExpr } from '../../src/reference/evaluation/bounded.ts'
import { runs } from '../support/cases.ts'
import { convert, isWhole, nearest, plain } from '../support/plain-evaluator.ts'

/** An expression as it is written, without any rule applied, and what the constructors make of it. */
interface Both {
  readonly written: Expr
  readonly made: Expr
}

const TYPES = ['i32', 'u32', 'i8', 'u8', 'f32', 'f64', 'f16', 'bf16', 'bool'] as const
/** Of arithmetic: narrower integers are computed in 32 bits. */
const COMPUTED = ['i32', 'u32', 'f32', 'f64', 'f16', 'bf16'] as const

const EDGES: Readonly<Record<(typeof TYPES)[number], readonly number[]>> = {
  i32: [0, 1, -1, 2, 7, -7, 31, 32, 2147483647, -2147483648, 65537],
  u32: [0, 1, 2, 7, 32, 4294967295, 2147483648, 65537],
  i8: [0, 1, -1, 7, 127, -128],
  u8: [0, 1, 7, 128, 255],
  f32: [
    0,
    -0,
    1,
    -1,
    0.5,
    0.1,
    -7.5,
    2.5,
    1e9,
    3e9,
    1e-40,
    1.5 * 2 ** -24,
    2.5 * 2 ** -24,
    3.4e38,
    Infinity,
    -Infinity,
    Number.NaN,
  ],
  f64: [0, -0, 1, -1, 0.5, 0.1, -7.5, 2.5, 1e300, 5e-324, 2 ** 53, Infinity, -Infinity, Number.NaN],
  f16: [0, -0, 1, -1, 0.5, 0.1, -7.5, 2049, 65504, 6e-8, Infinity, -Infinity, Number.NaN],
  bf16: [0, -0, 1, -1, 0.5, 0.1, -7.5, 257, 3.3e38, Infinity, -Infinity, Number.NaN],
  bool: [0, 1],
}
const NAMES = ['x', 'y'] as const
type Case = { readonly e: Both; readonly values: ReadonlyMap<string, number> }

const numbers = (t: Dtype): fc.Arbitrary<number> => {
  const edges = fc.constantFrom(...EDGES[t as 'i32'])
  const small = fc.integer({ min: isWhole(t) && t !== 'i32' && t !== 'i8' ? 0 : -9, max: 20 })
  return (t === 'bool' ? edges : fc.oneof(edges, small)).map((x) => nearest(t, x))
}
const leaf = (t: Dtype): fc.Arbitrary<Both> => {
  const whole = fc.oneof(
    { weight: 3, arbitrary: numbers(t).map((x) => constant(x, t)) },
    { weight: 2, arbitrary: fc.constantFrom(...NAMES).map((name) => variable(`${name}_${t}`, t)) },
  )
  return whole.map((e) => ({ written: e, made: e }))
}

const operation = (t: Dtype, op: BinaryOp, a: Both, b: Both): Both => ({
  written: { kind: 'binary', op, a: a.written, b: b.written, dtype: t },
  made: binary(op, a.made, b.made),
})
const called = (t: Dtype, fn: MathFn, ...args: readonly Both[]): Both => ({
  written: { kind: 'call', fn, args: args.map((x) => x.written), dtype: t },
  made: call(
    fn,
    args.map((x) => x.made),
  ),
})

/** Of a type; `isReal`: with floats inside. */
function expressions(t: Dtype, depth: number, isReal: boolean): fc.Arbitrary<Both> {
  if (depth === 0) return leaf(t)
  const below = (of: Dtype): fc.Arbitrary<Both> =>
    fc.integer({ min: 0, max: depth - 1 }).chain((d) => expressions(of, d, isReal))
  const types = isReal ? COMPUTED : COMPUTED.filter(isWhole)
  const chosen = fc.tuple(below('bool'), below(t), below(t)).map(
    ([c, a, b]): Both => ({
      written: { kind: 'select', cond: c.written, then: a.written, else: b.written, dtype: t },
      made: select(c.made, a.made, b.made),
    }),
  )
  const converted = fc
    .constantFrom(...(isReal ? TYPES : TYPES.filter((x) => isWhole(x) || x === 'bool')))
    .chain((from) =>
      below(from).map(
        (x): Both =>
          from === t ? x : { written: { kind: 'cast', x: x.written, dtype: t }, made: cast(x.made, t) },
      ),
    )
  if (t === 'bool')
    return fc.oneof(
      leaf(t),
      fc
        .tuple(fc.constantFrom<BinaryOp[]>('lt', 'le', 'gt', 'ge', 'eq', 'ne'), fc.constantFrom(...types))
        .chain(([op, of]) => fc.tuple(below(of), below(of)).map(([a, b]) => operation(t, op, a, b))),
      fc
        .tuple(fc.constantFrom<BinaryOp[]>('and', 'or'), below(t), below(t))
        .map(([op, a, b]) => operation(t, op, a, b)),
      below(t).map(
        (x): Both => ({ written: { kind: 'unary', op: 'not', x: x.written, dtype: t }, made: not(x.made) }),
      ),
      chosen,
    )
  if (t === 'i8' || t === 'u8') return fc.oneof(leaf(t), converted, chosen)
  const arithmetic = fc
    .tuple(fc.constantFrom<BinaryOp[]>('add', 'sub', 'mul', 'div', 'mod', 'min', 'max'), below(t), below(t))
    .map(([op, a, b]) => operation(t, op, a, b))
  // Neutral elements, and operands that are alike, are what simplification looks for.
  const neutral = fc
    .tuple(
      fc.constantFrom<BinaryOp[]>('add', 'sub', 'mul', 'div', 'mod', 'min', 'max'),
      below(t),
      fc.boolean(),
    )
    .chain(([op, a, isFirst]) =>
      fc.constantFrom(0, 1, 2).map((n) => {
        const c = constant(n, t)
        const other = n === 2 ? a : { written: c, made: c }
        return isFirst ? operation(t, op, other, a) : operation(t, op, a, other)
      }),
    )
  const signs = fc
    .tuple(below(t), fc.boolean())
    .map(
      ([x, isNegated]): Both =>
        isNegated
          ? { written: { kind: 'unary', op: 'neg', x: x.written, dtype: t }, made: neg(x.made) }
          : called(t, t === 'u32' ? 'sign' : 'abs', x),
    )
  const own =
    t === 'i32'
      ? fc.oneof(
          below(t).map((x) => called(t, 'popcount', x)),
          fc
            .tuple(
              fc.constantFrom<MathFn[]>('shift_left', 'shift_right', 'bit_and', 'bit_or', 'bit_xor'),
              below(t),
              below(t),
            )
            .map(([fn, a, b]) => called(t, fn, a, b)),
          fc
            .tuple(fc.constantFrom<BinaryOp[]>('quo', 'rem'), below(t), fc.constantFrom(1, -1, 3, -4))
            .map(([op, a, n]) => operation(t, op, a, { written: constant(n, t), made: constant(n, t) })),
        )
      : t === 'u32'
        ? converted
        : fc
            .tuple(fc.constantFrom<MathFn[]>('floor', 'ceil', 'sqrt', 'sign'), below(t))
            .map(([fn, x]) => called(t, fn, x))
  return fc.oneof(leaf(t), arithmetic, arithmetic, neutral, signs, own, converted, chosen)
}

const values: fc.Arbitrary<ReadonlyMap<string, number>> = fc
  .tuple(...TYPES.flatMap((t) => NAMES.map((name) => numbers(t).map((x) => [`${name}_${t}`, x] as const))))
  .map((list) => new Map(list))

const cases = (isReal: boolean): fc.Arbitrary<Case> =>
  fc
    .tuple(
      fc.constantFrom(...(isReal ? TYPES : TYPES.filter((t) => isWhole(t) || t === 'bool'))),
      fc.integer({ min: 1, max: 4 }),
    )
    .chain(([t, depth]) => fc.record({ e: expressions(t, depth, isReal), values }))

/** Zeros of integers have no sign. */
const same = (t: ExprType, a: number, b: number): boolean => (isWhole(t) ? a === b : Object.is(a, b))

test('folding and simplification keep the value', () => {
  let folded = 0
  fc.assert(
    fc.property(cases(true), ({ e: { written, made }, values: at }) => {
      if (made.kind === 'const' && written.kind !== 'const') folded++
      expect(made.dtype).toBe(written.dtype)
      const [want, got] = [plain(written, at), plain(made, at)]
      if (!same(written.dtype, want, got)) expect.fail(`${got}, not ${want}`)
    }),
    { numRuns: runs(4000) },
  )
  expect(folded).toBeGreaterThan(runs(4000) / 20)
})

/** Two steps over few names and numbers: what rules of algebra look for occurs often. */
const shallow = fc.constantFrom<Dtype[]>('i32', 'u32', 'f32', 'bool').chain((t) => {
  const operand = fc
    .oneof(
      { weight: 4, arbitrary: fc.constant<Expr>(variable(`x_${t}`, t)) },
      { weight: 2, arbitrary: fc.constant<Expr>(variable(`y_${t}`, t)) },
      {
        weight: 3,
        arbitrary: fc.constantFrom(0, 1, ...(t === 'bool' ? [] : [2])).map((n) => constant(n, t)),
      },
      { weight: 1, arbitrary: numbers(t).map((n) => constant(n, t)) },
    )
    .map((e): Both => ({ written: e, made: e }))
  const ops = fc.constantFrom<BinaryOp[]>(
    ...(t === 'bool'
      ? (['and', 'or'] as const)
      : (['add', 'sub', 'add', 'sub', 'add', 'sub', 'mul', 'div', 'mod', 'min', 'max'] as const)),
  )
  const step = (below: fc.Arbitrary<Both>) =>
    fc.tuple(ops, below, below).map(([op, a, b]) => operation(t, op, a, b))
  return fc.record({ e: fc.oneof(step(operand), step(fc.oneof(operand, step(operand)))), values })
})

/** They have to be values of their types. */
const constantsIn = (e: Expr): readonly Const[] =>
  e.kind === 'const' ? [e] : e.kind === 'binary' ? [e.a, e.b].flatMap(constantsIn) : []

test('rules of algebra hold for every value', () => {
  fc.assert(
    fc.property(shallow, ({ e: { written, made }, values: at }) => {
      for (const c of constantsIn(made))
        expect(nearest(c.dtype, convert(c.dtype, c.dtype, c.value))).toBe(c.value)
      const [want, got] = [plain(written, at), plain(made, at)]
      if (!same(written.dtype, want, got)) expect.fail(`${got}, not ${want}`)
    }),
    { numRuns: runs(9000) },
  )
})

const evaluate = (e: Expr, at: ReadonlyMap<string, number>): number => {
  const cells = new Map([...at].map(([name, v]) => [name, { v }]))
  const context = { axes: new Map(), levels: new Map(), tensors: new Map(), undecidedDepth: { v: 0 } }
  return compileExpr(e, { cells, open: [] }, context)()
}

test('the reference computes integers as specified', () => {
  fc.assert(
    fc.property(cases(false), ({ e: { written }, values: at }) => {
      expect(evaluate(written, at) + 0).toBe(plain(written, at) + 0)
    }),
    { numRuns: runs(2000) },
  )
})

test('the reference computes floats as specified, before rounding', () => {
  const one = fc.constantFrom(...TYPES).chain((t) => fc.record({ e: expressions(t, 1, true), values }))
  fc.assert(
    fc.property(one, ({ e: { written }, values: at }) => {
      const wide = written.dtype === 'f16' || written.dtype === 'bf16' ? 'f32' : written.dtype
      const got = nearest(wide, evaluate(written, at))
      const want = plain(written, at)
      if (!same(written.dtype, got, want)) expect.fail(`${got}, not ${want}`)
    }),
    { numRuns: runs(2000) },
  )
})

test.each(['f16', 'bf16'] as const)('%s rounds to nearest, ties to even', (t) => {
  const round = rounding(t)
  const unit = t === 'f16' ? 2 ** -24 : 2 ** -133
  const differs: number[] = []
  // Between neighbours, and next to their middle; large steps are powers of two times small ones.
  for (let k = 0; k < 4096; k++)
    for (const part of [0, 0.25, 0.5, 0.5 + 2 ** -20, 0.75])
      for (const scale of t === 'f16' ? [1, 2, 2 ** 15, 2 ** 29] : [1, 2, 2 ** 133, 2 ** 250]) {
        const x = (k + part) * unit * scale
        if (!Object.is(round(x), nearest(t, x)) || !Object.is(round(-x), nearest(t, -x))) differs.push(x)
      }
  expect(differs).toEqual([])
})

test('an integer has one zero', () => {
  const zeros = [
    binary('mul', constant(0), constant(-7)),
    neg(constant(0)),
    binary('div', constant(0), constant(-7)),
  ]
  expect(zeros.map((e) => cast(e, 'f32')).every((e) => e.kind === 'const' && Object.is(e.value, 0))).toBe(
    true,
  )
})

test('an operation on two types has their common type, and converting between words is free', () => {
  const types = ['u8', 'i8', 'u32', 'i32', 'index', 'f16', 'bf16', 'f32', 'f64'] as const
  for (const a of types)
    for (const b of types) {
      expect(binaryType('lt', a, b)).toBe('bool')
      expect(binaryType('add', a, b)).toBe(a === b ? a : join(a, b))
      const isWord = (t: ExprType): boolean => t === 'i32' || t === 'index'
      expect(isFreeCast(cast(variable('x', a), b))).toBe(a !== b && isWord(a) && isWord(b))
    }
})
