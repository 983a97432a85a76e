/**
 * Predicted contents of the index arrays of a scheduled kernel: counts, segment lengths, padding. They are computed by
 * building the kernel's formats from the data, or from a sample of rows or columns, without values and without dense axes.
 */

import { evaluate } from '../../ir/evaluate.ts'
import type { Expr } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { Kernel2 } from '../../ir/loops.ts'
import { unpackFields } from '../../ir/packed-fields.ts'
import { remembered } from '../../ir/remembered.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import { walkStmts } from '../../ir/tree.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import { allAxesOf, callerTensor, givenOf, isStructured } from '../../run/bind/caller-tensors.ts'
import { type Bound, bindInputs } from '../../run/bind/index.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { allowanceFor, withFewerRows } from './allowed.ts'
import { type Distribution, distributionOf } from './distribution.ts'
import { type Coordinates, type Found, GROUPS, type Share, type Structure } from './index-facts.ts'
import { numberAxes, outerDimension, sizeOf } from './outer-dimension.ts'
import { recurrenceOf } from './recurrence.ts'
import { Samples } from './rows.ts'
import { rowOrderOf } from './sorted-rows.ts'
import { share, together } from './sum-of-strata.ts'

export type { Coordinates, Structure } from './index-facts.ts'

/** Tensors and sizes as they are bound; dense tensors may be left out where sizes are given. */
export interface Given {
  readonly tensors: Readonly<Record<string, Tensor>>
  /** Lists and sets used by formats; a kernel takes its own of them. */
  readonly beside?: Readonly<Record<string, Tensor>> | undefined
  readonly params: Readonly<Record<string, number>>
  /** Of these tensors, for all ways to store them. */
  readonly samples?: Samples | undefined
}

/** Elements of each stratum of a sample. */
export const SAMPLED = 1 << 13

/**
 * @param kernel - Stage I after the steps on coordinates; `loops`: its loops, whose arrays are asked for
 * @param allowance - What building one sample may allocate
 * @throws SptError as `bindInputs`; `bind/too-many-elements` where one row, or what has none, is too much
 */
export function structureOf(
  kernel: Kernel1,
  loops: Kernel2,
  { samples = new Samples(), ...given }: Given,
  sampled = SAMPLED,
  allowance = allowanceFor,
): Structure {
  const axes = allAxesOf(kernel)
  const declared = new Set(kernel.params.map((p) => p.name))
  const counts = new Set(loops.params.map((p) => p.name).filter((n) => !declared.has(n)))
  const isSparse = (name: string): boolean => axesOfBinding(kernel, name).some((a) => isStructured(axes, a))
  const sparse = Object.entries(given.tensors).filter(([name]) => isSparse(name))
  // Formats may store all of a tensor along dense axes alone, as bands are.
  const storing = new Set(
    sparse.flatMap(([name]) => callerTensor(kernel, name)?.buffers.map((b) => b.name) ?? []),
  )
  const bare: Kernel1 = {
    ...kernel,
    params: kernel.params.filter((p) => p.kind === 'size'),
    buffers: kernel.buffers.filter(
      (b) =>
        b.table !== undefined ||
        b.role !== 'in' ||
        storing.has(b.name) ||
        b.axes.some((a) => isStructured(axes, a)),
    ),
  }
  // Coordinates that values have in common; of what is sorted each comes once.
  const lists = new Set(
    kernel.buffers.flatMap((b) => (b.table && b.mask === undefined && !b.distinct ? [b.name] : [])),
  )
  // Scalars are given as well, and structure has nothing of them.
  const sizes = Object.fromEntries(
    bare.params.flatMap(({ name }) => (name in given.params ? [[name, given.params[name]!]] : [])),
  )
  const built = (tensors: readonly (readonly [string, Tensor])[], others = {}): Found =>
    found(
      loops,
      lists,
      bindInputs(
        bare,
        {
          tensors: Object.fromEntries(
            tensors.map(([n, t]) => [n, t.kind === 'dense' ? t : { ...t, values: null }]),
          ),
          params: { ...sizes, ...others },
        },
        { structureOnly: true },
      ),
    )
  const own = [...givenOf(kernel).keys()]
  const beside = Object.entries(given.beside ?? {}).filter(([name]) => own.includes(name))
  // Lists and sets are of all rows, and of no sample of them.
  const [only] = sparse.length === 1 && own.length === 0 ? sparse : []
  const along = only ? outerDimension(kernel, only[0]) : 0
  const size = only && sizeOf(kernel, only[0], along)
  const order = only ? rowOrderOf(kernel, only[0], along, new Map(Object.entries(sizes))) : null
  const of = withFewerRows((most, within): Omit<Structure, 'counts'> => {
    const sample = only && size !== undefined ? samples.of(only[1], along, sampled, most, order) : null
    if (!sample) for (const [, t] of sparse) samples.expectElements(t)
    if (!only || size === undefined || !sample)
      return whole(within(1, Object.values(given.tensors), () => built([...sparse, ...beside])))
    const parts = sample.strata.map((s) => ({
      of: within(s.rows, [s.tensor], () => built([[only[0], s.tensor]], { [size]: s.rows })),
      weight: s.weight,
    }))
    const [first] = parts
    if (first && sample.isWhole) return whole(first.of)
    return together(
      kernel,
      loops,
      parts,
      new Map([...Object.entries(given.params), [size, sample.rows]]),
      numberAxes(kernel, only[0]),
    )
  }, allowance)
  return { ...of, counts }
}

/** Floats of a sector. */
const NEIGHBOURS = 8

/** Of 2^k neighbouring segments the longest, the mean over all such groups, by k. */
export function longestOfGroups(offsets: ArrayLike<number>): number[] {
  let n = Math.max(0, offsets.length - 1)
  const longest = new Float64Array(n + 1)
  for (let s = 0; s < n; s++) longest[s] = offsets[s + 1]! - offsets[s]!
  return Array.from({ length: GROUPS }, () => {
    let sum = 0
    for (let s = 0; s < n; s++) sum += longest[s]!
    const mean = n === 0 ? 0 : sum / n
    longest[n] = 0
    n = Math.ceil(n / 2)
    for (let s = 0; s < n; s++) longest[s] = Math.max(longest[2 * s]!, longest[2 * s + 1]!)
    return mean
  })
}

function found(loops: Kernel2, lists: ReadonlySet<string>, bound: Bound): Found {
  const offsets = new Map<string, Distribution>()
  const coordinates = new Map<string, Share>()
  const changes = new Map<string, Share>()
  const recurrence = new Map<string, Coordinates>()
  const longestOf = new Map<string, readonly number[]>()
  const bounds = boundsIn(loops)
  for (const b of loops.buffers) {
    const words = b.role === 'index' || lists.has(b.name) ? bound.arrays.get(b.name) : undefined
    if (!words) continue
    const values =
      b.packed === undefined ? words : unpackFields(words, b.packed, evaluate(b.shape[0]!, bound.params))
    if (b.positions !== undefined) {
      const counts = new Map<number, number>()
      let [before, changed] = [-1, 0]
      for (let s = 0; s + 1 < values.length; s++) {
        const length = values[s + 1]! - values[s]!
        counts.set(length, (counts.get(length) ?? 0) + 1)
        if (length !== before) changed++
        before = length
      }
      offsets.set(b.name, distributionOf(counts))
      changes.set(b.name, { all: values.length - 1, filled: changed })
      longestOf.set(b.name, longestOfGroups(values))
    } else {
      let most = 0
      for (let k = 0; k < values.length; k++) if (values[k]! > most) most = values[k]!
      recurrence.set(b.name, {
        each: recurrenceOf(values, most + 1),
        sectors: recurrenceOf(values, most + 1, NEIGHBOURS),
      })
      const bound1 = b.below ?? bounds.get(b.name)
      if (!bound1 || ![...freeVars(bound1)].every((v) => bound.params.has(v))) continue
      const below = evaluate(bound1, bound.params)
      let filled = 0
      for (let k = 0; k < values.length; k++) if (values[k]! < below) filled++
      coordinates.set(b.name, { all: values.length, filled })
    }
  }
  return { params: bound.params, offsets, changes, coordinates, recurrence, longestOf }
}

/** Bounds that guards compare coordinate arrays with; padding is not below them. */
const boundsIn = remembered((loops: Kernel2): ReadonlyMap<string, Expr> => {
  const out = new Map<string, Expr>()
  walkStmts(loops.body, (s) => {
    for (const g of s.kind === 'for' ? s.guards : [])
      if (g.kind === 'binary' && g.op === 'lt' && g.a.kind === 'load') out.set(g.a.buffer, g.b)
  })
  return out
})

const whole = (f: Found): Omit<Structure, 'counts'> => ({
  params: f.params,
  lengths: f.offsets,
  changes: new Map([...f.changes].map(([name, c]) => [name, share(c)])),
  filled: new Map([...f.coordinates].map(([name, c]) => [name, share(c)])),
  recurrence: f.recurrence,
  longestOf: f.longestOf,
})
