/** Layers with values that are all different, of few kinds, equal or zero. */
import fc from 'fast-check'
import { type Layers, type LayerValues, layersFromValues } from '../../src/prune.ts'
import type { Matrix, Norm } from './reference.ts'

/** Integers from a range, and what becomes of each. */
const KINDS = [
  { least: -2, most: 2, value: (k: number) => k },
  { least: -1000, most: 1000, value: (k: number) => k },
  // Alike in their high bits.
  { least: 0, most: 20, value: (k: number) => 1 + k * 2 ** -23 },
  { least: 0, most: 0, value: () => -3 },
  { least: 0, most: 0, value: () => 0 },
]
type Kind = number | null

/** `kind`: one of those above; null: any floats. */
function values(n: number, kind: Kind): fc.Arbitrary<Float32Array> {
  const size = { minLength: n, maxLength: n }
  if (kind === null)
    return fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), size).map((x) => Float32Array.from(x))
  const { least, most, value } = KINDS[kind]!
  return fc
    .array(fc.integer({ min: least, max: most }), size)
    .map((x) => Float32Array.from(x, (k) => value(k)))
}
const kinds = fc.constantFrom<Kind>(null, ...KINDS.keys())

const flags = (n: number): fc.Arbitrary<Uint8Array> =>
  fc.array(fc.integer({ min: 0, max: 1 }), { minLength: n, maxLength: n }).map((x) => Uint8Array.from(x))

const layer = (scored: boolean, same: Kind | undefined): fc.Arbitrary<LayerValues> =>
  fc
    .tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 13 }), kinds)
    .chain(([rows, cols, own]) =>
      fc.record({
        name: fc.constant(''),
        rows: fc.constant(rows),
        cols: fc.constant(cols),
        weights: values(rows * cols, same === undefined ? own : same),
        ...(scored && { gradients: values(rows * cols, own) }),
      }),
    )

export interface Drawn {
  readonly list: readonly LayerValues[]
  readonly layers: Layers
  readonly limits: Record<string, number>
  readonly exclude: readonly string[]
  readonly after: readonly Uint8Array[] | undefined
  /** Nothing: the default. */
  readonly normalise: Norm | undefined
  /** What is not excluded, its places among the layers, and a limit for each. */
  readonly chosen: readonly Matrix[]
  readonly places: readonly number[]
  /** The limits of the chosen layers; without limits, a layer keeps `least` elements. */
  most(least: number): readonly number[]
}

/** What is read stands in one buffer, which the next reading overwrites. */
function oneBuffer(list: readonly LayerValues[]): Layers {
  const buffer = new Float32Array(Math.max(...list.map((l) => l.weights.length)))
  const of = layersFromValues(list)
  const read = async (values: Promise<Float32Array>): Promise<Float32Array> => {
    const now = await values
    buffer.fill(7).set(now)
    return buffer.subarray(0, now.length)
  }
  return {
    shapes: of.shapes,
    weights: (k) => read(of.weights(k)),
    ...(of.gradients && { gradients: (k) => read(of.gradients!(k)) }),
  }
}

/** `least`: of limits. */
export const drawn = (least = 0): fc.Arbitrary<Drawn> =>
  fc
    .tuple(fc.boolean(), fc.option(kinds, { nil: undefined, freq: 1 }))
    .chain(([scored, same]) => fc.array(layer(scored, same), { minLength: 1, maxLength: 5 }))
    .chain((unnamed) => {
      const list = unnamed.map((l, k) => ({ ...l, name: `layer.${k}` }))
      const each = <T>(x: fc.Arbitrary<T>) => fc.array(x, { minLength: list.length, maxLength: list.length })
      return fc.record({
        list: fc.constant(list),
        limits: fc.oneof(
          fc.constant(null),
          each(fc.constantFrom(1, 1, least, (1 + least) / 2, Math.max(least, 0.75))),
        ),
        normalise: fc.constantFrom<Norm | undefined>(undefined, 'root', 'length'),
        excluded: fc.oneof(fc.constant(null), each(fc.boolean())),
        after: fc.oneof(fc.constant(null), fc.tuple(...list.map((l) => flags(l.rows * l.cols)))),
      })
    })
    .map(({ list, limits, excluded, after, normalise }) => {
      // One is left.
      const places = list.flatMap((_, k) => (k > 0 && excluded?.[k] ? [] : [k]))
      const score = ({ weights, gradients, rows, cols }: LayerValues, k: number): Matrix => ({
        rows,
        cols,
        e: [...weights].map((w, i) => {
          if (after?.[k]?.[i] === 0) return 0
          return gradients ? Math.fround(Math.abs(gradients[i]! * w)) : Math.abs(w)
        }),
      })
      return {
        list,
        layers: oneBuffer(list),
        limits: Object.fromEntries((limits ?? []).map((l, k) => [`layer.${k}`, l])),
        exclude: list.flatMap((l, k) => (places.includes(k) ? [] : [l.name])),
        after: after ?? undefined,
        normalise,
        chosen: places.map((k) => score(list[k]!, k)),
        places,
        most: (least) => places.map((k) => limits?.[k] ?? 1 - Math.min(1, least / list[k]!.weights.length)),
      }
    })
export const sparsities = (least = 0): fc.Arbitrary<number> =>
  fc.oneof(
    fc.constantFrom(least, 0.5, 0.75, 0.9, 0.999),
    fc.integer({ min: Math.ceil(100 * least), max: 99 }).map((p) => p / 100),
  )
