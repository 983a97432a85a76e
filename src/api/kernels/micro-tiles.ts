/**
 * Micro-tile rules from permutable dimensions (PIT): thin tiles of a dense tensor that contain nonzeros are gathered along one dimension
 * to dense tiles. Each rule is a format.
 */
import type { PermutableDimension } from '../../analysis/permutations/permutable-dimensions.ts'
import { permutableDimensions } from '../../analysis/permutations/permutable-dimensions.ts'
import { dynamicTemporaries } from '../../analysis/sparsity/run-time-zeros.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { elaborate } from '../../elaborate/index.ts'
import { isDenseRoot } from '../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { constant, type Expr } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import type { AnyFormat, Format } from '../../ir/formats/format.ts'
import { programOf } from '../../schedule/steps/language.ts'
import { expectArgument, isRecord } from '../inputs/argument-checks.ts'

export type {
  PermutableDimension,
  PermutableDimensions,
  PermutableIteration,
} from '../../analysis/permutations/permutable-dimensions.ts'
export type { PermutationObstacle, TensorDimension } from '../../analysis/permutations/permutation-classes.ts'

/** A rule ⟨dimension, micro-tile, dense tile⟩, and the format that gathers one into the other. */
export interface MicroTile {
  readonly dimension: PermutableDimension
  /** Extents of the micro-tile in elements, by dimension of the tensor: 1 along the gathered one. */
  readonly extents: readonly number[]
  /** Extents of the dense tile, by axis of each iterator in the iterations that access the tensor. */
  readonly tile: Readonly<Record<string, number>>
  /** The format; `null` if it cannot be built at run time, with the reason in `rejection`. */
  readonly format: MicroTileFormat | null
  readonly rejection: string | null
}

export interface MicroTileFormat {
  /** The format as a value, for the steps `as` and `live`. */
  readonly format: AnyFormat
  /** Declaration of the format in `.spt`. */
  readonly text: string
  /** Formats of the program that differ in names only, as written in schedules. */
  readonly equalFormats: readonly string[]
}

interface Tried {
  readonly compilation: { readonly source: Kernel1 }
  readonly formats: ReadonlyMap<string, AnyFormat>
  live(buffer: string, format: AnyFormat, options: { readonly inPlace: boolean }): unknown
}

const USUAL_EXTENT = 32
const MOST = 65_536

/**
 * Returns the rules for dense inputs, and for temporaries with elements that depend on data to be zero, along the permutable dimensions of
 * the whole kernel. `usual`: extent of the dense tile along axes that `given` omits. Throws SptError `api/argument`.
 */
export function microTiles(
  kernel: Tried,
  given: Readonly<Record<string, number>>,
  usual = USUAL_EXTENT,
  isWanted: (tensor: string) => boolean = () => true,
): readonly MicroTile[] {
  const { source } = kernel.compilation
  const { kernel: all, iterations } = permutableDimensions(source)
  const names = [...new Set(all.flatMap((d) => [...d.iterators, d.axis]))]
  expectArgument(isRecord(given), 'a dense tile', given, `extents by axis: { ${names[0] ?? 'i'}: 32 }`)
  for (const [name, n] of Object.entries(given)) {
    expectArgument(names.includes(name), 'an axis of a dense tile', name, `one of ${names.join(', ')}`)
    const what = `the extent of a dense tile along ${name}`
    expectArgument(Number.isInteger(n) && n >= 1 && n <= MOST, what, n, `an integer from 1 to ${MOST}`)
  }
  const extentOf = (d: PermutableDimension): number => {
    const name = [d.axis, ...d.iterators].find((n) => Object.hasOwn(given, n))
    return name === undefined ? usual : given[name]!
  }
  const own = (d: PermutableDimension) => (x: PermutableDimension) =>
    x.tensor === d.tensor && x.dimension === d.dimension
  /** Extents by the iterators that are alone in a dimension of the tensor. */
  const tileOf = (b: Buffer1): MicroTile['tile'] => {
    const met = iterations.map((it) => it.dimensions).filter((ds) => ds.some((d) => d.tensor === b.name))
    const named = (d: PermutableDimension) =>
      d.iterators.map((n) => [n, extentOf(all.find(own(d))!)] as const)
    return Object.freeze(Object.fromEntries(met.flat().flatMap(named)))
  }
  const axes = new Map(source.axes.map((a) => [a.name, a]))
  const temporaries = dynamicTemporaries(source)
  return source.buffers.flatMap((b) => {
    const isDynamic = b.role === 'in' || temporaries.has(b.name)
    if (!isDynamic || !isWanted(b.name) || !b.axes.every((a) => isDenseRoot(axes.get(a)!))) return []
    const dims = all.filter((d) => d.tensor === b.name)
    const extents = dims.map(extentOf)
    return dims.flatMap((dimension, p) => {
      if (dimension.obstacle) return []
      const micro = Object.freeze(extents.map((n, d) => (d === p ? 1 : n)))
      return Object.freeze({
        dimension,
        extents: micro,
        tile: tileOf(b),
        ...formatFor(kernel, b, p, extents),
      })
    })
  })
}

function formatFor(
  kernel: Tried,
  b: Buffer1,
  p: number,
  extents: readonly number[],
): Pick<MicroTile, 'format' | 'rejection'> {
  const name = `${b.name}_along_${b.axes[p]}`
  const text = formatText(name, b.axes, p, extents)
  const format = elaborate(programOf({ name: `${name}.spt`, text })).formats.get(name) as Format
  const taken = resultOrError(() => kernel.live(b.name, format, { inPlace: true }))
  if (taken instanceof SptError) return { format: null, rejection: taken.diagnostics[0]!.message }
  return { format: { format, text, equalFormats: knownAs(format, extents, kernel.formats) }, rejection: null }
}

/**
 * Declaration of the format: blocks of the other dimensions, each with groups of the coordinates along this dimension that contain
 * nonzeros.
 */
function formatText(name: string, dims: readonly string[], p: number, extents: readonly number[]): string {
  const along = dims[p]!
  const fresh = (n: string): string => (dims.includes(n) ? fresh(`${n}_`) : n)
  const outer = (d: string): string => fresh(`${d}_o`)
  const inner = (d: string): string => fresh(`${d}_i`)
  const others = dims.flatMap((d, k) => (k === p ? [] : [{ d, n: extents[k]! }]))
  const split = others.filter(({ n }) => n > 1)
  const group = fresh(`${along}_g`)
  const axes: string[] = []
  const maps: string[] = []
  let parent = ''
  const under = (axis: string, declared: (above: string) => string, map: string): void => {
    axes.push(`  axis ${axis} = ${declared(parent)}`)
    maps.push(map)
    parent = `${axis}, `
  }
  const block = ({ d, n }: (typeof others)[number]): string => (n > 1 ? `${d} / ${n}` : d)
  for (const o of others) {
    const count = o.n > 1 ? `ceildiv(${o.d}, ${o.n})` : o.d
    under(outer(o.d), (above) => `dense_fixed(${above}${count})`, block(o))
  }
  const [place, by, n] = [outer(along), others.map(block).join(', '), extents[p]]
  if (others.length === 0) under(place, () => `sparse_variable(${along})`, along)
  else {
    under(group, (above) => `dense_variable(${above}${along})`, `rank(${along} by ${by}) / ${n}`)
    under(place, (above) => `sparse_fixed(${above}${along}, ${n})`, along)
  }
  for (const x of split) under(inner(x.d), (above) => `dense_fixed(${above}${x.n})`, `${x.d} % ${x.n}`)
  const back = dims.map((d, k) =>
    k !== p && extents[k]! > 1 ? `${outer(d)} * ${extents[k]} + ${inner(d)}` : outer(d),
  )
  const names = axes.map((a) => a.split(' ')[3]!)
  return `format ${name} over (${dims.join(', ')}) {
${axes.join('\n')}
  map (${dims.join(', ')}) -> (${maps.join(', ')})
  inverse (${names.join(', ')}) -> (${back.join(', ')})
}
`
}

/** Formats that differ in names only, with arguments among the extents. */
function knownAs(
  format: Format,
  extents: readonly number[],
  formats: ReadonlyMap<string, AnyFormat>,
): string[] {
  const want = structureOf(format, [])
  return [...formats].flatMap(([name, f]) => {
    if (f.kind !== 'format' || f.over.length !== format.over.length || f.params.length > extents.length)
      return []
    if (f.params.some((p) => p.kind !== 'integer' || p.measured)) return []
    const args = selections(extents, f.params.length).find((xs) => structureOf(f, xs) === want)
    return args ? [appliedName(name, args)] : []
  })
}

/** All lists of `count` distinct entries of `of`. */
const selections = (of: readonly number[], count: number): readonly (readonly number[])[] =>
  count === 0
    ? [[]]
    : of.flatMap((x, k) =>
        selections(
          of.filter((_, at) => at !== k),
          count - 1,
        ).map((rest) => [x, ...rest]),
      )

/** A key that is equal for formats that differ in names and spans only. */
function structureOf({ name: _, params, ...f }: Format, args: readonly number[]): string {
  const names = new Map([...f.over, ...f.order, ...f.queries.map((q) => q.name)].map((n, k) => [n, `@${k}`]))
  const values = new Map(params.map((p, k) => [p.name, constant(args[k]!)]))
  return JSON.stringify(f, (key, x: unknown) => {
    if (key === 'span') return undefined
    if (isRecord(x) && 'dtype' in x) return substitute(x as unknown as Expr, values)
    return typeof x === 'string' ? (names.get(x) ?? x) : x
  })
}
