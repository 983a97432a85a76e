/** Formats as users write them, and tensors that property tests convert to them. */
import fc from 'fast-check'
import { elaborate } from '../../src/elaborate/index.ts'
import { instantiate } from '../../src/formats/instance/instantiate.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { variable } from '../../src/ir/expressions/expr.ts'
import type { Instance } from '../../src/ir/formats/format.ts'
import { programOf } from '../../src/schedule/steps/language.ts'
import type { FormatOperands } from '../../src/storage/format-operands.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { denseFixed, sparseVariable } from './arbitrary.ts'

/** The latest: property tests instantiate the same format repeatedly, and parsing dominates their time. */
const latest = new Map<string, Instance>()
const LATEST = 200

/** The last format of a text, over a matrix of m × n with axes `row` and `col`. */
export function written(text: string, ...args: readonly (number | string)[]): Instance {
  const key = JSON.stringify([text, args])
  const made = latest.get(key) ?? read(text, args)
  latest.delete(key)
  latest.set(key, made)
  if (latest.size > LATEST) latest.delete(latest.keys().next().value!)
  return made
}

function read(text: string, args: readonly (number | string)[]): Instance {
  const { formats } = elaborate(programOf({ name: 'test.spt', text }))
  const format = [...formats.values()].at(-1)!
  const extents = ['m', 'n', 'o']
  const over = format.over.map((_, k): StoredAxis => {
    const axis =
      k === 0 ? denseFixed('row') : sparseVariable(['', 'col', 'fibre'][k]!, ['', 'row', 'col'][k]!)
    return { ...axis, extent: variable(extents[k]!) }
  })
  return instantiate({ format, args }, over, (name, label) => (label === '' ? name : `${name}_${label}`))
}

export function givenFor(shape: readonly number[], more: Partial<FormatOperands> = {}): FormatOperands {
  return {
    sizes: new Map(['m', 'n', 'o'].slice(0, shape.length).map((name, k) => [name, shape[k]!])),
    extents: new Map(['row', 'col', 'fibre'].slice(0, shape.length).map((name, k) => [name, shape[k]!])),
    lists: new Map(),
    sets: new Map(),
    ...more,
  }
}

/** A matrix of integers from [row, column, value]. */
export function matrix(shape: readonly number[], entries: readonly (readonly number[])[]): CoordTensor {
  return {
    kind: 'coords',
    shape,
    coords: shape.map((_, k) => Int32Array.from(entries, (e) => e[k]!)),
    values: Float64Array.from(entries, (e) => e[shape.length]!),
    dtype: 'f64',
  }
}

/** Up to 40 entries of positive integers, in any order, some equal; extents 0 to 20, rows and columns skewed. */
export const matrices: fc.Arbitrary<CoordTensor> = fc
  .tuple(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 20 }), fc.constantFrom(1, 2, 7))
  .chain(([m, n, spread]) =>
    fc
      .array(fc.tuple(fc.nat(1000), fc.nat(1000), fc.integer({ min: 1, max: 9 })), {
        maxLength: m * n === 0 ? 0 : 40,
      })
      .map((raw) =>
        matrix(
          [m, n],
          raw.map(([i, j, x]) => [Math.floor(i / spread) % m, j % n, x]),
        ),
      ),
  )
