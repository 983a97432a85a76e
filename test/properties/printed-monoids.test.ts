/** Reducers in the printed text of Stage I, built-in and declared, are text of the language with the same meaning. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SCALAR_TYPES, type ScalarType } from '../../src/ast/nodes/nodes.ts'
import { INT_RANGE, isFloat } from '../../src/ir/values/dtype.ts'
import { BUILTIN_REDUCERS } from '../../src/ir/values/monoid.ts'
import { runs } from '../support/cases.ts'

/** A kernel that reduces a matrix of each of these types along its rows. */
const reducing = (types: readonly ScalarType[], reducer: string): string => {
  const tuple = (of: (k: number) => string): string =>
    types.length === 1 ? of(0) : `(${types.map((_, k) => of(k)).join(', ')})`
  return `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
${types.map((t, k) => `  buffer X${k}: ${t}[i, j] in\n  buffer Y${k}: ${t}[i] out`).join('\n')}
  iterate reduce [i, j] as SR {
    ${tuple((k) => `Y${k}[i]`)} ${reducer}= ${tuple((k) => `X${k}[i, j]`)}
  }
}`
}

/** Checks that the printed kernel reads back as itself. */
function printsBack(text: string): void {
  const printed = parseProgram(text).kernel('k').show(1)
  expect(parseProgram(printed).kernel('k').show(1), printed).toBe(printed)
}

const built = SCALAR_TYPES.flatMap((type) =>
  BUILTIN_REDUCERS.filter((r) => (r === 'and' || r === 'or') === (type === 'bool')).map(
    (r) => [r, type] as const,
  ),
)

test.each(built)('built-in: %s of %s', (reducer, type) => printsBack(reducing([type], reducer)))

/** Combines of one component, and their identity. */
function combines(
  type: ScalarType,
): fc.Arbitrary<readonly [identity: string, (a: string, b: string) => string]> {
  if (type === 'bool')
    return fc.constantFrom(
      ['false', (a: string, b: string) => `${a} or ${b}`] as const,
      ['true', (a: string, b: string) => `${a} and ${b}`] as const,
      ['false', (a: string, b: string) => `${a} != ${b}`] as const,
    )
  const [least, greatest] = isFloat(type) ? ['-inf', 'inf'] : INT_RANGE[type as 'i32'].map(String)
  const always = [
    [greatest!, (a: string, b: string) => `min(${a}, ${b})`] as const,
    [least!, (a: string, b: string) => `max(${a}, ${b})`] as const,
    [greatest!, (a: string, b: string) => `select(${a} < ${b}, ${a}, ${b})`] as const,
    [least!, (a: string, b: string) => `select(not (${a} <= ${b}), ${a}, ${b})`] as const,
  ]
  const sums = [
    ['0', (a: string, b: string) => `${a} + ${b}`] as const,
    ['1', (a: string, b: string) => `${a} * ${b}`] as const,
    ['-1', (a: string, b: string) => `${a} + ${b} + ${type}(1)`] as const,
    ['-3', (a: string, b: string) => `${a} - (-3 - ${b})`] as const,
  ]
  const bits = [
    ['0', (a: string, b: string) => `bit_or(${a}, ${b})`] as const,
    ['-1', (a: string, b: string) => `bit_and(${a}, ${b})`] as const,
    ['0', (a: string, b: string) => `bit_xor(bit_xor(${a}, 5), bit_xor(${b}, 5))`] as const,
  ]
  if (type === 'i32') return fc.constantFrom(...always, ...sums, ...bits)
  if (type === 'f32' || type === 'f64') return fc.constantFrom(...always, ...sums)
  if (isFloat(type)) return fc.constantFrom(...always)
  // Arithmetic on narrow integers has 32 bits.
  return fc.constantFrom(...always).map(([e, of]) => [e, (a, b) => `${type}(${of(a, b)})`])
}

const component = fc.constantFrom(...SCALAR_TYPES).chain((type) => combines(type).map((of) => ({ type, of })))
const names = (all: readonly string[], length: number) =>
  fc.uniqueArray(fc.constantFrom(...all), { minLength: length, maxLength: length })

const monoids = fc
  .array(component, { minLength: 1, maxLength: 3 })
  .chain((components) =>
    fc.tuple(
      fc.constant(components),
      names(['value', 'v', 'i', 'k', 'x2', 'at_most'], components.length),
      names(['a', 'b', 'left', 'right', 'i'], 2),
      fc.constantFrom('best', 'bit_or', 'k2', 'first_greatest'),
    ),
  )
  .map(([components, fields, [a, b], name]) => {
    const tuple = (xs: readonly string[]): string => (xs.length === 1 ? xs[0]! : `(${xs.join(', ')})`)
    const text = `monoid ${name}(${components.map((c, k) => `${fields[k]}: ${c.type}`).join(', ')}) {
  identity ${tuple(components.map((c) => c.of[0]))}
  combine (${a}, ${b}) = ${tuple(components.map((c, k) => c.of[1](`${a}.${fields[k]}`, `${b}.${fields[k]}`)))}
}`
    const types = components.map((c) => c.type)
    return `${text}
${reducing(types, name)}`
  })

test('declared', () => {
  fc.assert(fc.property(monoids, printsBack), { numRuns: runs(60) })
})
