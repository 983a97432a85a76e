/** Predicted index arrays of a scheduled kernel: counts, lengths, padding; from formats built of a sample without values. */

import { AllocationLimit, withAllocationLimit } from '../../columns/allocate.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Kernel2 } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { unpackFields } from '../../ir/values/packed-fields.ts'
import { allAxesOf, bindPlan, callerTensor, isStructured } from '../../run/bind/bind-plan.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import { type Bound, bindInputs } from '../../run/bind/index.ts'
import { storedElements, type Tensor } from '../../storage/tensor.ts'
import { combineStrata, shareOf } from './extrapolation.ts'
import type { CoordinateRecurrence, Distribution, IndexFacts, Ratio, Structure } from './index-facts.ts'
import { distributionOf, GROUP_SIZES, recurrenceOf } from './index-facts.ts'
import { ordinalAxes, outerDimension, rowOrderOf, sizeNameOf } from './outer-dimension.ts'
import { Samples } from './rows.ts'

// Limits the elements built for predictions: formats pad, and their parameters multiply the stored elements.

interface ElementLimit {
  readonly base: number
  /** For each stored element, row and column. */
  readonly perElement: number
}
/** Elements that predictions may allocate for one stratum. */
const PREDICTION_LIMIT: ElementLimit = { base: 1 << 22, perElement: 16 }
/** Limit for kernels to be measured: those that store more are never the fastest, and take seconds to build. */
const MEASUREMENT_LIMIT: ElementLimit = { base: 1 << 27, perElement: 64 }
/** Safety factor when reducing rows, because not all memory grows with their number. */
const SLACK = 2

const sum = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0)

const elementLimit = ({ base, perElement }: ElementLimit, tensors: readonly Tensor[]): number =>
  base + perElement * sum(tensors.map((t) => storedElements(t) + sum(t.shape)))

/** Number of elements that predictions may allocate for formats of these tensors. */
export const allowanceFor = (tensors: readonly Tensor[], base = PREDICTION_LIMIT.base): AllocationLimit =>
  new AllocationLimit(elementLimit({ ...PREDICTION_LIMIT, base }, tensors))

/** Number of elements that converting these tensors into one candidate format may allocate. */
export const maxMeasuredElements = (tensors: readonly Tensor[]): number =>
  elementLimit(MEASUREMENT_LIMIT, tensors)

/** A sample whose conversion exceeded the limit. */
interface Excess {
  readonly rows: number
  readonly factor: number
}

/**
 * Builds from samples of rows, and again from fewer rows until the result is within the limit.
 * @param build - Builds with at most `maxRows` rows of each stratum, each stratum by `within`
 * @throws SptError `bind/too-many-elements` if one row exceeds the limit; errors of `build`
 */
function withFewerRows<T>(
  build: (maxRows: number, within: <R>(rows: number, tensors: readonly Tensor[], f: () => R) => R) => T,
  allowance = allowanceFor,
): T {
  let excess: Excess | null = null
  const within = <R>(rows: number, tensors: readonly Tensor[], f: () => R): R => {
    const limit = allowance(tensors)
    try {
      return withAllocationLimit(limit, f)
    } finally {
      if (limit.exceeded !== null) excess = { rows, factor: limit.exceeded / limit.max }
    }
  }
  for (let maxRows = Number.POSITIVE_INFINITY; ; ) {
    excess = null
    try {
      return build(maxRows, within)
    } catch (e) {
      const exceeded = excess as Excess | null
      if (!exceeded || exceeded.rows <= 1) throw e
      maxRows = Math.max(1, Math.floor(exceeded.rows / (SLACK * exceeded.factor)))
    }
  }
}

export type { Structure } from './index-facts.ts'

/** Tensors and sizes as they are bound; dense tensors may be omitted if sizes are given. */
interface StructureInputs {
  readonly tensors: Readonly<Record<string, Tensor>>
  /** Lists and sets used by formats; a kernel uses those that it declares. */
  readonly formatInputs?: Readonly<Record<string, Tensor>> | undefined
  readonly params: Readonly<Record<string, number>>
  readonly samples?: Samples | undefined
}

const SAMPLE_ELEMENTS = 1 << 13

/**
 * Structure of the index arrays of a kernel for given data.
 * @param kernel - Stage I after the steps on coordinates
 * @param loops - Stage II loops whose index arrays are predicted
 * @param sampled - Elements of each stratum of a sample
 * @param allowance - Limit of elements that building one sample may allocate
 * @throws SptError as `bindInputs`; `bind/too-many-elements` if one row, or a tensor without rows, exceeds the limit
 */
export function structureOf(
  kernel: Kernel1,
  loops: Kernel2,
  { samples = new Samples(), ...given }: StructureInputs,
  sampled = SAMPLE_ELEMENTS,
  allowance = allowanceFor,
): Structure {
  const axes = allAxesOf(kernel)
  const declared = new Set(kernel.params.map((p) => p.name))
  const counts = new Set(loops.params.map((p) => p.name).filter((n) => !declared.has(n)))
  const isSparse = (name: string): boolean => axesOfBinding(kernel, name).some((a) => isStructured(axes, a))
  const sparse = Object.entries(given.tensors).filter(([name]) => isSparse(name))
  // Formats may store all of a tensor along dense axes alone, such as bands.
  const storedBuffers = new Set(
    sparse.flatMap(([name]) => callerTensor(kernel, name)?.buffers.map((b) => b.name) ?? []),
  )
  const structureKernel: Kernel1 = {
    ...kernel,
    params: kernel.params.filter((p) => p.kind === 'size'),
    buffers: kernel.buffers.filter(
      (b) =>
        b.table !== undefined ||
        b.role !== 'in' ||
        storedBuffers.has(b.name) ||
        b.axes.some((a) => isStructured(axes, a)),
    ),
  }
  // Coordinate tables that are shared by values; sorted ones hold each coordinate once, so their recurrence is trivial.
  const lists = new Set(
    kernel.buffers.flatMap((b) => (b.table && b.mask === undefined && !b.distinct ? [b.name] : [])),
  )
  // Scalars are bound as well, but do not affect the structure.
  const sizes = Object.fromEntries(
    structureKernel.params.flatMap(({ name }) => (name in given.params ? [[name, given.params[name]!]] : [])),
  )
  const build = (tensors: readonly (readonly [string, Tensor])[], extraSizes = {}): IndexFacts =>
    collectFacts(
      loops,
      lists,
      bindInputs(
        structureKernel,
        {
          tensors: Object.fromEntries(
            tensors.map(([n, t]) => [n, t.kind === 'dense' ? t : { ...t, values: null }]),
          ),
          params: { ...sizes, ...extraSizes },
        },
        { structureOnly: true },
      ),
    )
  const inputNames = [...bindPlan(kernel).operands.keys()]
  const formatInputs = Object.entries(given.formatInputs ?? {}).filter(([name]) => inputNames.includes(name))
  // Lists and sets refer to all rows, so a kernel that takes them is not sampled.
  const [single] = sparse.length === 1 && inputNames.length === 0 ? sparse : []
  const dimension = single ? outerDimension(kernel, single[0]) : 0
  const size = single && sizeNameOf(kernel, single[0], dimension)
  const order = single ? rowOrderOf(kernel, single[0], dimension, new Map(Object.entries(sizes))) : null
  const facts = withFewerRows((maxRows, buildWithin): Omit<Structure, 'counts'> => {
    const sample =
      single && size !== undefined ? samples.draw(single[1], dimension, sampled, maxRows, order) : null
    if (!sample) for (const [, t] of sparse) samples.expectElements(t)
    if (!single || size === undefined || !sample)
      return wholeStructure(
        buildWithin(1, Object.values(given.tensors), () => build([...sparse, ...formatInputs])),
      )
    const parts = sample.strata.map((s) => ({
      facts: buildWithin(s.rows, [s.tensor], () => build([[single[0], s.tensor]], { [size]: s.rows })),
      weight: s.weight,
    }))
    const [first] = parts
    if (first && sample.isWhole) return wholeStructure(first.facts)
    return combineStrata(
      kernel,
      loops,
      parts,
      new Map([...Object.entries(given.params), [size, sample.rows]]),
      ordinalAxes(kernel, single[0]),
    )
  }, allowance)
  return { ...facts, counts }
}

const SECTOR_FLOATS = 8

/** The longest of 2^k neighbouring segments, mean over all such groups, by k. */
export function meanMaximaOf(offsets: ArrayLike<number>): number[] {
  let n = Math.max(0, offsets.length - 1)
  const longest = new Float64Array(n + 1)
  for (let s = 0; s < n; s++) longest[s] = offsets[s + 1]! - offsets[s]!
  return Array.from({ length: GROUP_SIZES }, () => {
    let sum = 0
    for (let s = 0; s < n; s++) sum += longest[s]!
    const mean = n === 0 ? 0 : sum / n
    longest[n] = 0
    n = Math.ceil(n / 2)
    for (let s = 0; s < n; s++) longest[s] = Math.max(longest[2 * s]!, longest[2 * s + 1]!)
    return mean
  })
}

function collectFacts(loops: Kernel2, lists: ReadonlySet<string>, bound: Bound): IndexFacts {
  const lengths = new Map<string, Distribution>()
  const filled = new Map<string, Ratio>()
  const changes = new Map<string, Ratio>()
  const recurrence = new Map<string, CoordinateRecurrence>()
  const meanMaxima = new Map<string, readonly number[]>()
  const bounds = coordinateBounds(loops)
  for (const b of loops.buffers) {
    const words = b.role === 'index' || lists.has(b.name) ? bound.arrays.get(b.name) : undefined
    if (!words) continue
    const values =
      b.packed === undefined ? words : unpackFields(words, b.packed, evaluate(b.shape[0]!, bound.params))
    if (b.positions !== undefined) {
      const counts = new Map<number, number>()
      let [previous, changed] = [-1, 0]
      for (let s = 0; s + 1 < values.length; s++) {
        const length = values[s + 1]! - values[s]!
        counts.set(length, (counts.get(length) ?? 0) + 1)
        if (length !== previous) changed++
        previous = length
      }
      lengths.set(b.name, distributionOf(counts))
      changes.set(b.name, { total: values.length - 1, count: changed })
      meanMaxima.set(b.name, meanMaximaOf(values))
    } else {
      let max = 0
      for (let k = 0; k < values.length; k++) if (values[k]! > max) max = values[k]!
      recurrence.set(b.name, {
        each: recurrenceOf(values, max + 1),
        sectors: recurrenceOf(values, max + 1, SECTOR_FLOATS),
      })
      const limit = b.below ?? bounds.get(b.name)
      if (!limit || ![...freeVars(limit)].every((v) => bound.params.has(v))) continue
      const below = evaluate(limit, bound.params)
      let count = 0
      for (let k = 0; k < values.length; k++) if (values[k]! < below) count++
      filled.set(b.name, { total: values.length, count })
    }
  }
  return { params: bound.params, lengths, changes, filled, recurrence, meanMaxima }
}

/** Bounds with which guards compare coordinate arrays; padding is not below them. */
const coordinateBounds = memoize((loops: Kernel2): ReadonlyMap<string, Expr> => {
  const bounds = new Map<string, Expr>()
  walkStmts(loops.body, (s) => {
    for (const g of s.kind === 'for' ? s.guards : [])
      if (g.kind === 'binary' && g.op === 'lt' && g.a.kind === 'load') bounds.set(g.a.buffer, g.b)
  })
  return bounds
})

const wholeStructure = (f: IndexFacts): Omit<Structure, 'counts'> => {
  const shares = (counts: ReadonlyMap<string, Ratio>): ReadonlyMap<string, number> =>
    new Map([...counts].map(([name, c]) => [name, shareOf(c)]))
  return { ...f, changes: shares(f.changes), filled: shares(f.filled) }
}
