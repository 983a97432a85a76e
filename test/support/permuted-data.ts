/** Tensors with dimensions permuted: coordinate x goes to `order[x]`. */
import type { TensorDimension } from '../../src/analysis/permutations/permutation-classes.ts'
import type { RefInputs, RefResult, RefTensor } from '../../src/reference/tensors/inputs-and-results.ts'
import { isCoords } from '../../src/reference/tensors/inputs-and-results.ts'

type Dims = readonly Pick<TensorDimension, 'tensor' | 'dimension'>[]

const of = (dims: Dims, tensor: string): ReadonlySet<number> =>
  new Set(dims.filter((d) => d.tensor === tensor).map((d) => d.dimension))

function permutedDense(
  numbers: ArrayLike<number>,
  shape: readonly number[],
  dims: ReadonlySet<number>,
  order: readonly number[],
): number[] {
  const out = new Array<number>(numbers.length)
  for (let at = 0; at < numbers.length; at++) {
    let [rest, to, stride] = [at, 0, 1]
    for (let d = shape.length - 1; d >= 0; d--) {
      const x = rest % shape[d]!
      rest = (rest - x) / shape[d]!
      to += stride * (dims.has(d) ? order[x]! : x)
      stride *= shape[d]!
    }
    out[to] = numbers[at]! + 0
  }
  return out
}

export function permutedInputs(
  inputs: RefInputs,
  shapes: Readonly<Record<string, readonly number[]>>,
  dims: Dims,
  order: readonly number[],
): RefInputs {
  const moved = ([name, t]: readonly [string, RefTensor]): readonly [string, RefTensor] => {
    const own = of(dims, name)
    if (own.size === 0) return [name, t]
    if (!isCoords(t)) return [name, permutedDense(t, shapes[name]!, own, order)]
    const coords = t.coords.map((col, d) => (own.has(d) ? Array.from(col, (x) => order[x]!) : col))
    return [name, { ...t, coords }]
  }
  return { ...inputs, buffers: Object.fromEntries(Object.entries(inputs.buffers).map(moved)) }
}

type Results = Readonly<Record<string, RefResult>>
/** As plain numbers; of sparse results by coordinate, in their order where coordinates are there several times. */
type Plain = Readonly<Record<string, unknown>>

const NONE: Dims = []

export const plainResults = (results: Results): Plain => permutedResults(results, NONE, [])

export const permutedResults = (results: Results, dims: Dims, order: readonly number[]): Plain =>
  Object.fromEntries(
    Object.entries(results).map(([name, r]) => {
      const own = of(dims, name)
      if (r.kind === 'dense') return [name, permutedDense(r.values, r.shape, own, order)]
      const entries = Array.from(r.values, (value, k) => {
        const at = r.coords.map((col, d) => (own.has(d) ? order[col[k]!]! : col[k]!))
        return { at: at.join(), value: value + 0 }
      })
      // Stable: entries of one coordinate stay in their order.
      return [name, entries.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))]
    }),
  )
