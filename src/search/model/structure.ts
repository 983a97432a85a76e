/**
 * What the index arrays of a scheduled kernel will say of some data: counts, lengths of segments, padding. Found by building
 * the kernel's formats from the data, or from a sample of its rows, without values and without what is dense.
 */
import { evaluate } from '../../ir/evaluate.ts'
import type { Expr } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { Kernel2 } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import { walkStmts } from '../../ir/tree.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import { allAxesOf, callerTensor, isStructured } from '../../run/bind/caller-tensors.ts'
import { type Bound, bindInputs } from '../../run/bind/index.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { allowanceFor, withFewerRows } from './allowed.ts'
import { type Distribution, distributionOf, mixture } from './distribution.ts'
import { type Recurrence, recurrenceOf, weightedRecurrence } from './recurrence.ts'
import { Samples, sizeOfRows } from './rows.ts'

export interface Structure {
  /** Values of the kernel's parameters: sizes, counts (of a sample: as many as there would be), measured widths. */
  readonly params: ReadonlyMap<string, number>
  /** Lengths of the segments that an array of offsets bounds. */
  readonly lengths: ReadonlyMap<string, Distribution>
  /** Of an array of offsets, the share of segments that are longer or shorter than the one before. */
  readonly changes: ReadonlyMap<string, number>
  /** Of an array of coordinates, the share that is below the extent, and no padding. */
  readonly filled: ReadonlyMap<string, number>
  /** Of an array of coordinates, in the order in which the format has them, how soon they recur. */
  readonly recurrence: ReadonlyMap<string, Coordinates>
  /** By arrays of offsets: of 2^k neighbouring segments the longest, the mean over all such groups, by k. */
  readonly longestOf: ReadonlyMap<string, readonly number[]>
  /** Those of the parameters that count positions of formats. */
  readonly counts: ReadonlySet<string>
}

/** How soon coordinates recur: each of them, and groups of neighbours. */
export interface Coordinates {
  readonly each: Recurrence
  /** Of as many neighbours as a sector has floats. */
  readonly sectors: Recurrence
}

/** Tensors and sizes as they are bound; dense tensors may be left out where sizes are given. */
export interface Given {
  readonly tensors: Readonly<Record<string, Tensor>>
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
  // Scalars are given as well, and structure has nothing of them.
  const sizes = Object.fromEntries(
    bare.params.flatMap(({ name }) => (name in given.params ? [[name, given.params[name]!]] : [])),
  )
  const built = (tensors: readonly (readonly [string, Tensor])[], others = {}): Found =>
    found(
      loops,
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
  const [only] = sparse
  const rowSize = only && sparse.length === 1 ? sizeOfRows(kernel, only[0]) : undefined
  const of = withFewerRows((most, within): Omit<Structure, 'counts'> => {
    const sample = only && rowSize !== undefined ? samples.of(only[1], sampled, most) : null
    if (!sample) for (const [, t] of sparse) samples.expectElements(t)
    if (!only || rowSize === undefined || !sample)
      return whole(within(1, Object.values(given.tensors), () => built(sparse)))
    const parts = sample.strata.map((s) => ({
      of: within(s.rows, [s.tensor], () => built([[only[0], s.tensor]], { [rowSize]: s.rows })),
      weight: s.weight,
    }))
    const [first] = parts
    if (first && sample.isWhole) return whole(first.of)
    return together(kernel, parts, new Map([...Object.entries(given.params), [rowSize, sample.rows]]))
  }, allowance)
  return { ...of, counts }
}

interface Found {
  readonly params: ReadonlyMap<string, number>
  readonly offsets: ReadonlyMap<string, Distribution>
  readonly changes: ReadonlyMap<string, Share>
  readonly coordinates: ReadonlyMap<string, Share>
  readonly recurrence: ReadonlyMap<string, Coordinates>
  readonly longestOf: ReadonlyMap<string, readonly number[]>
}

interface Share {
  readonly all: number
  readonly filled: number
}

/** Floats of a sector. */
const NEIGHBOURS = 8
/** Powers of two of neighbouring segments that are told apart: those of a block. */
const GROUPS = 12

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

function found(loops: Kernel2, bound: Bound): Found {
  const offsets = new Map<string, Distribution>()
  const coordinates = new Map<string, Share>()
  const changes = new Map<string, Share>()
  const recurrence = new Map<string, Coordinates>()
  const longestOf = new Map<string, readonly number[]>()
  const bounds = boundsIn(loops)
  for (const b of loops.buffers) {
    const values = b.role === 'index' ? bound.arrays.get(b.name) : undefined
    if (!values) continue
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

/** What guards compare arrays of coordinates with: padding is not below. */
const boundsIn = remembered((loops: Kernel2): ReadonlyMap<string, Expr> => {
  const out = new Map<string, Expr>()
  walkStmts(loops.body, (s) => {
    for (const g of s.kind === 'for' ? s.guards : [])
      if (g.kind === 'binary' && g.op === 'lt' && g.a.kind === 'load') out.set(g.a.buffer, g.b)
  })
  return out
})

const share = ({ all, filled }: Share): number => (all === 0 ? 1 : filled / all)

const whole = (f: Found): Omit<Structure, 'counts'> => ({
  params: f.params,
  lengths: f.offsets,
  changes: new Map([...f.changes].map(([name, c]) => [name, share(c)])),
  filled: new Map([...f.coordinates].map(([name, c]) => [name, share(c)])),
  recurrence: f.recurrence,
  longestOf: f.longestOf,
})

/** Counts and segments add up, by weight; widths are the greatest, and sizes what they are. */
function together(
  kernel: Kernel1,
  parts: readonly { readonly of: Found; readonly weight: number }[],
  sizes: ReadonlyMap<string, number>,
): Omit<Structure, 'counts'> {
  const params = new Map<string, number>()
  const measured = new Set(kernel.params.filter((p) => p.measured).map((p) => p.name))
  for (const name of new Set(parts.flatMap((p) => [...p.of.params.keys()]))) {
    const values = parts.map((p) => p.of.params.get(name) ?? 0)
    const known = sizes.get(name)
    const same = kernel.params.some((p) => p.name === name && p.kind === 'size' && !p.measured)
    params.set(
      name,
      known ??
        (measured.has(name) || same
          ? Math.max(...values)
          : Math.round(parts.reduce((n, p, k) => n + p.weight * values[k]!, 0))),
    )
  }
  const names = (of: (f: Found) => ReadonlyMap<string, unknown>): string[] => [
    ...new Set(parts.flatMap((p) => [...of(p.of).keys()])),
  ]
  const lengths = new Map(
    names((f) => f.offsets).map((name) => [
      name,
      mixture(
        parts.flatMap((p) => {
          const of = p.of.offsets.get(name)
          return of ? [{ of, weight: p.weight }] : []
        }),
      ),
    ]),
  )
  const shares = (of: (f: Found) => ReadonlyMap<string, Share>): Map<string, number> =>
    new Map(
      names(of).map((name) => {
        let [all, those] = [0, 0]
        for (const p of parts) {
          const c = of(p.of).get(name)
          all += p.weight * (c?.all ?? 0)
          those += p.weight * (c?.filled ?? 0)
        }
        return [name, share({ all, filled: those })]
      }),
    )
  const recurrence = new Map(
    names((f) => f.recurrence).map((name) => {
      const of = (which: keyof Coordinates): Recurrence =>
        weightedRecurrence(
          parts.flatMap((p) => {
            const c = p.of.recurrence.get(name)
            return c ? [{ of: c[which], weight: p.weight }] : []
          }),
        )
      return [name, { each: of('each'), sectors: of('sectors') }]
    }),
  )
  const longestOf = new Map(
    names((f) => f.longestOf).map((name) => {
      const out = new Array<number>(GROUPS).fill(0)
      let all = 0
      for (const p of parts) {
        const n = p.weight * (p.of.offsets.get(name)?.count ?? 0)
        all += n
        p.of.longestOf.get(name)?.forEach((x, k) => {
          out[k]! += n * x
        })
      }
      return [name, out.map((x) => x / Math.max(1, all))]
    }),
  )
  return {
    params,
    lengths,
    changes: shares((f) => f.changes),
    filled: shares((f) => f.coordinates),
    recurrence,
    longestOf,
  }
}
