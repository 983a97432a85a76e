/** Comparison of an output with the reference: each element must be within the error bound that the reference computes. */

import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { rankedTuples } from '../../columns/key-columns.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { declaredMonoids } from '../../ir/coordinates/stage1-tree.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { coordinatesAt } from '../../ir/values/arrays.ts'
import type { Monoid } from '../../ir/values/monoid.ts'
import { type MonoidLaws, monoidLaws } from '../../ir/values/monoid-laws.ts'
import { type RefResult, type RefSample, reductions } from '../../reference/index.ts'
import { decoder, type Tensor } from '../../storage/tensor.ts'
import { referenceInputs } from '../bind/results/reference-inputs.ts'
import { Random } from '../bind/sources/random-tensors.ts'
import type { Bound } from '../bind/types.ts'

/** Number of compared elements, and significance of the comparison. */
export interface Coverage {
  /** Total number of elements of all outputs. */
  readonly elements: number
  /** Number of elements that were compared; the others are undecided, or not in the sample. */
  readonly compared: number
  /**
   * Number of elements that cannot be compared: the operands of a comparison, `floor` or cast were within rounding error of a
   * discontinuity, so correct programs may differ.
   */
  readonly undecided: number
  /** Number of compared elements whose allowed error is at least their value, so that 0 would also pass. */
  readonly weak: number
  /** Number of elements that are NaN in both the output and the reference. */
  readonly notANumber: number
}

/** Coverage as text: `9 of 12 elements; 3 are decided by rounding, and not compared`. */
export function coverageText({ elements, compared, undecided, weak, notANumber }: Coverage): string {
  const text = (n: number): string => n.toLocaleString('en-US')
  return [
    compared === elements
      ? `all ${text(elements)} elements`
      : `${text(compared)} of ${text(elements)} elements`,
    ...(undecided > 0 ? [`${text(undecided)} are decided by rounding, and not compared`] : []),
    ...(notANumber > 0 ? [`${text(notANumber)} ${notANumber === 1 ? 'is' : 'are'} NaN in both`] : []),
    ...(weak > 0 ? [`of ${text(weak)} the allowed error is as large as the value`] : []),
  ].join('; ')
}

export interface Comparison extends Coverage {
  readonly relative: number
  readonly absolute: number
  readonly problem: string | null
  /** Index of the element with the largest deviation. */
  readonly element?: number
  /** True if an element is finite in only one of output and reference. */
  readonly strange?: boolean
}

/** Allowed errors below this bound come from values that devices may flush to 0, and do not count as weak. */
const NOTICED = 2 ** -100

/** Compares one output. `sampled`: the coordinates that the reference computed; `null`: all. */
export function compareOutput(
  name: string,
  got: Tensor,
  want: RefResult,
  sampled: RefSample | null,
): Comparison {
  const values = got.values!
  const nothing = { elements: want.values.length, compared: 0, undecided: 0, weak: 0, notANumber: 0 }
  const wrong = (problem: string): Comparison => ({
    ...nothing,
    relative: Number.POSITIVE_INFINITY,
    absolute: Number.POSITIVE_INFINITY,
    problem: `${name}: ${problem}`,
  })
  if (values.length !== want.values.length)
    return wrong(`${values.length} values, the reference has ${want.values.length}`)
  const read = decoder(got.dtype)
  const paired = want.kind === 'sparse' && got.kind === 'coords' ? pairEntries(got.coords, want) : null
  if (typeof paired === 'string') return wrong(paired)
  const outputAt = (e: number): number => {
    const value = values[paired ? paired[e]! : e]!
    return read ? read(value) : value
  }
  const elements = computedElements(name, want, sampled)
  const scale = rootMeanSquare(want.values, elements)
  const count = elements?.length ?? values.length
  let [relative, absolute, undecided, weak, notANumber] = [0, 0, 0, 0, 0]
  let worst = { at: -1, beyond: 0, allowed: 0 }
  for (let k = 0; k < count; k++) {
    const e = elements ? elements[k]! : k
    const allowed = want.errors[e]!
    if (allowed === Number.POSITIVE_INFINITY) {
      undecided++
      continue
    }
    const x = outputAt(e)
    const r = want.values[e]!
    if (allowed >= Math.abs(r) && allowed > NOTICED) weak++
    if (x === r) continue
    if (Number.isNaN(x) && Number.isNaN(r)) {
      notANumber++
      continue
    }
    const error = Math.abs(x - r)
    if (Number.isFinite(error)) {
      absolute = Math.max(absolute, error)
      relative = Math.max(relative, error / Math.max(Math.abs(r), scale, Number.MIN_VALUE))
    }
    if (error <= allowed) continue
    if (!Number.isFinite(error)) relative = Number.POSITIVE_INFINITY
    const beyond = Number.isFinite(error)
      ? error / Math.max(allowed, Number.MIN_VALUE)
      : Number.POSITIVE_INFINITY
    if (worst.at < 0 || beyond > worst.beyond) worst = { at: e, beyond, allowed }
  }
  const found = { ...nothing, compared: count - undecided, undecided, weak, notANumber, relative, absolute }
  if (worst.at < 0) return { ...found, problem: null }
  const at =
    want.kind === 'sparse'
      ? want.coords.map((c) => c[worst.at]).join(', ')
      : coordinatesAt(worst.at, want.shape).join(', ')
  return {
    ...found,
    strange: !Number.isFinite(relative),
    element: worst.at,
    problem: `${name}[${at}] is ${outputAt(worst.at)}, the reference has ${want.values[worst.at]} (allowed error ${worst.allowed.toExponential(2)})`,
  }
}

/**
 * The entry of the output for each entry of the reference: at the same coordinates, and duplicates in their order. `null`: all are at
 * the same places; text: the coordinates that only one of them has.
 */
function pairEntries(
  coords: readonly Int32Array[],
  want: Extract<RefResult, { kind: 'sparse' }>,
): Int32Array | string | null {
  if (coords.every((column, d) => column.every((c, e) => c === want.coords[d]![e]))) return null
  const [ours, theirs] = [rankedTuples(coords, true), rankedTuples(want.coords, true)]
  const at = theirs.columns[0]!.findIndex((_, e) =>
    theirs.columns.some((column, d) => column[e] !== ours.columns[d]![e]),
  )
  if (at >= 0) {
    const [x, y] = [ours, theirs].map(({ columns }) => columns.map((c) => c[at]!))
    const d = x!.findIndex((c, k) => c !== y![k])
    return x![d]! < y![d]!
      ? `an entry is at ${x!.join(', ')}, where the reference has none or fewer`
      : `no entry, or too few, at ${y!.join(', ')}, where the reference has one`
  }
  const entryAt = new Int32Array(ours.rank.length)
  for (const [e, r] of ours.rank.entries()) entryAt[r] = e
  return theirs.rank.map((r) => entryAt[r]!)
}

/** Indices of the elements that the reference computed, ascending; `null`: all elements. */
function computedElements(name: string, want: RefResult, sampled: RefSample | null): Float64Array | null {
  const dim = sampled && Object.hasOwn(sampled.dims, name) ? sampled.dims[name] : undefined
  if (!sampled || dim === undefined) return null
  const extent = want.shape[dim]!
  const computed = new Uint8Array(extent)
  for (const c of sampled.coordinates) computed[c] = 1
  const out: number[] = []
  if (want.kind === 'sparse') {
    const column = want.coords[dim]!
    for (let e = 0; e < column.length; e++) if (computed[column[e]!]) out.push(e)
    return Float64Array.from(out)
  }
  const stride = want.shape.slice(dim + 1).reduce((a, b) => a * b, 1)
  for (let first = 0, line = 0; first < want.values.length; first += stride, line++)
    if (computed[line % extent]) for (let e = first; e < first + stride; e++) out.push(e)
  return Float64Array.from(out)
}

/** Root mean square of the finite values. Errors of smaller values, such as results of cancellation, are reported relative to it. */
function rootMeanSquare(values: Float64Array, elements: Float64Array | null): number {
  let square = 0
  let finite = 0
  const count = elements?.length ?? values.length
  for (let k = 0; k < count; k++) {
    const r = values[elements ? elements[k]! : k]!
    if (!Number.isFinite(r)) continue
    square += r * r
    finite++
  }
  return finite > 0 ? Math.sqrt(square / finite) : 0
}

// Laws of declared reducers for the reduced values. If one is violated, results depend on the order of combination, and no
// schedule is wrong.

/** An element of a result, by its index there. */
export interface Place {
  readonly buffer: string
  readonly element: number
}

/** Maximum number of coordinates that the reference visits: one or two seconds. */
const VISITS = 2 ** 25
/** Maximum number of stored operands per array, in addition to those of the requested elements. */
const KEPT = 2 ** 16
/** Number of random groupings that are tested per element. */
const GROUPINGS = 64

type Operand = readonly number[]

/** Operands that are reduced into elements of one array. */
interface Operands {
  readonly reducer: Monoid
  readonly of: Map<number, Operand[]>
  kept: number
}

/**
 * Describes the violated law of a reducer with values, as text; `null` if none is violated. `places`: differing elements, which are
 * checked first.
 */
export function reducerFault(
  source: Kernel1,
  bound: Bound,
  sampled: RefSample | null,
  places: readonly Place[],
): string | null {
  if (declaredMonoids(source.body).size === 0) return null
  const all = new Map<string, Operands>()
  const requested = new Set(places.map((p) => `${p.buffer} ${p.element}`))
  const options = { sampled, visits: VISITS }
  try {
    reductions(source, referenceInputs(source, bound), options, (reducer, buffer, element, operand) => {
      const known = getOrAdd(all, buffer, (): Operands => ({ reducer, of: new Map(), kept: 0 }))
      if (known.kept >= KEPT && !requested.has(`${buffer} ${element}`)) return
      getOrAdd(known.of, element, () => []).push(operand)
      known.kept++
    })
  } catch (e) {
    // The operands collected so far are checked.
    if (!(e instanceof SptError) || e.code !== 'reference/too-long') throw e
  }
  for (const [buffer, { reducer, of }] of all) {
    const laws = monoidLaws(reducer)
    const first = places.flatMap((p) => (p.buffer === buffer ? [p.element] : []))
    for (const element of new Set([...first, ...of.keys()])) {
      const wrong = brokenBy(laws, of.get(element) ?? [])
      if (wrong) return `${reducer.name} is not a reducer for these values: ${wrong}`
    }
  }
  return null
}

/** Tests sequential combination, as in the reference, and combination of groups, as in schedules. */
function brokenBy(laws: MonoidLaws, operands: readonly Operand[]): string | null {
  if (operands.length < 2) return null
  const fold = (list: readonly Operand[]): Operand => list.reduce((a, b) => laws.combine(a, b))
  let before = operands[0]!
  for (let k = 1; k < operands.length; k++) {
    const [b, c] = [operands[k]!, operands[k + 1] ?? operands[k - 1]!]
    const wrong = laws.violation(before, b, c)
    if (wrong) return wrong
    before = laws.combine(before, b)
  }
  const random = new Random(1)
  const within = (from: number, to: number): number => from + random.below(to - from)
  for (let k = 0; operands.length > 2 && k < GROUPINGS; k++) {
    const end = within(3, operands.length + 1)
    const second = within(2, end)
    const first = within(1, second)
    const parts = [operands.slice(0, first), operands.slice(first, second), operands.slice(second, end)]
    const [a, b, c] = parts.map(fold) as [Operand, Operand, Operand]
    const wrong = laws.violation(a, b, c)
    if (wrong) return wrong
  }
  return null
}
