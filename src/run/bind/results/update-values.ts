/**
 * Update of the values of a bound tensor with unchanged structure: each value is scattered to the position of its entry. O(entries).
 * Nothing is split or built again, even if the parts were selected by values.
 */

import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { LEVEL_ARRAYS } from '../../../ast/nodes/axis-kinds.ts'
import { ascending } from '../../../columns/allocate.ts'
import { largest, repetitions, sameColumn, uniqueTuples } from '../../../columns/key-columns.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import { matchTuples, scatterValues } from '../../../storage/entries/locate.ts'
import { isFill } from '../../../storage/entries/stored-coords.ts'
import {
  checkValueArray,
  convertValues,
  type DenseTensor,
  decoder,
  filledArray,
  gatherValues,
  type StoredTensor,
  type Tensor,
  type ValueArray,
} from '../../../storage/tensor.ts'
import { type CallerTensor, callerTensor, callerTensors, convertDense, inOrder } from '../bind-plan.ts'
import { underKernelNames } from '../binding-names.ts'
import { checkPaddedFactors } from '../checks/required-inputs.ts'
import { RARE_INPUTS } from '../rare-inputs.ts'
import { isPart } from '../ready/ready-made-parts.ts'
import { readyValues } from '../ready/ready-made-tables.ts'
import { checkDimensions, givenParams } from '../sizes/bound-sizes.ts'
import { extentsOf, sourceOf } from '../sources/coordinate-sources.ts'
import type { EntryList } from '../sources/entry-list.ts'
import { placedValues } from '../sources/structure-assembly.ts'
import type { Bound } from '../types.ts'
import { bufferOf } from './gather-results.ts'

/** Values without coordinates, in the order of the bound tensor: by entry, row-major, or by position. */
export interface BareValues {
  readonly values: ValueArray
  readonly dtype: Dtype
}

export interface Written {
  /** The bound data with the new values; everything else is shared. */
  readonly bound: Bound
  readonly buffers: readonly string[]
}

/**
 * Returns the bound data with new values of one input, or with a new scalar. `given`: a tensor with a subset of the bound coordinates
 * (others get the fill value), or bare values. Throws SptError `bind/not-input`, `bind/absent-coordinate`, `bind/values-length`, `bind/rank`, `bind/shape`,
 * `bind/value-range`, `bind/scalar-range`, `bind/part`.
 */
export function withValues(bound: Bound, name: string, given: Tensor | BareValues): Written {
  const copies = callerTensors(bound.kernel).filter((t) => t.first.copyOf === name)
  return copies.reduce(
    (before, copy) => {
      const next = withValuesOf(before.bound, copy.name, given)
      return { bound: next.bound, buffers: [...before.buffers, ...next.buffers] }
    },
    withValuesOf(bound, name, given),
  )
}

function withValuesOf(bound: Bound, name: string, given: Tensor | BareValues): Written {
  if (bound.kernel.params.some((p) => p.name === name)) {
    const scalar = givenParams(bound.kernel, [[name, given.values![0]!]])
    return { bound: { ...bound, params: new Map([...bound.params, ...scalar]) }, buffers: [] }
  }
  const t = callerTensor(bound.kernel, name)
  if (!t?.isInput) return notInput(bound, name)
  const update = 'kind' in given ? underKernelNames(bound.kernel, { [name]: given }).get(name)! : given
  if ('kind' in update) checkDimensions(bound.kernel, new Map([[name, update]]), bound.params)
  const dense = bound.dense.get(name)
  if (dense) return denseValues(bound, t, dense, update)
  const ready = bound.ready.get(name)
  if (ready && (!('kind' in update) || (update.kind === 'stored' && sameArrays(update, ready))))
    return updatedArrays(bound, t, ready, update)
  if ('kind' in update && isPart(bound.kernel, name, update))
    return failWith(
      'bind/part',
      `${name} is given ready-made arrays, and was bound ${ready ? 'to others' : 'by its coordinates'}`,
      {
        expected: ready ? 'the arrays that were bound, with other values' : 'coordinates that were bound',
        hint: 'set coords(shape, columns, values), or bind again with the new arrays',
      },
    )
  const source = bound.sources.find((s) => s.name === name)!
  const { dtype, fill } = t.first
  const tensorNow = sourceOf(
    bound.kernel,
    name,
    tensorOf(bound, source, update),
    extentsOf(bound.kernel, bound.params),
    RARE_INPUTS,
  )
  const next = matched(source, tensorNow, fill, dtype === 'bool')
  const arrays = new Map<string, ValueArray>()
  if (ready && !isPart(bound.kernel, name, ready)) {
    const coords = source.columns
    arrays.set(name, scatterValues(bound.storages.get(name)!, { coords, ...next }, dtype, fill))
  }
  for (const p of bound.lists) {
    if (p.name !== name) continue
    const b = bufferOf(t, p)
    const at = bound.positions(p, b.name)
    arrays.set(b.name, placedValues(bound.storages.get(b.name)!, b, p, at, next))
  }
  const tensor: Tensor = {
    kind: 'coords',
    shape: source.tensor?.shape ?? [],
    coords: source.columns,
    values: next.values,
    dtype: next.dtype,
  }
  return written(bound, arrays, source.withTensor(tensor), null)
}

function notInput(bound: Bound, name: string): never {
  const candidates = callerTensors(bound.kernel).flatMap((t) => (t.isInput ? [t.name] : []))
  failWith('bind/not-input', `${name} is not an input of kernel ${bound.kernel.name}`, {
    lookup: { name, candidates },
    expected: candidates.length > 0 ? `one of ${candidates.join(', ')}` : 'a kernel with inputs',
  })
}

/** Returns the bound data with updated arrays, and with one replaced source or dense tensor. */
const written = (
  bound: Bound,
  fresh: ReadonlyMap<string, ValueArray>,
  source: EntryList | null,
  dense: readonly [string, DenseTensor] | null,
): Written => ({
  bound: {
    ...bound,
    arrays: new Map([...bound.arrays, ...fresh]),
    dense: dense ? new Map([...bound.dense, dense]) : bound.dense,
    sources: source ? bound.sources.map((s) => (s.name === source.name ? source : s)) : bound.sources,
  },
  buffers: [...fresh.keys()],
})

function denseValues(
  bound: Bound,
  { first: b, order }: CallerTensor,
  was: Tensor,
  update: Tensor | BareValues,
): Written {
  const size = was.shape.reduce((n, x) => n * x, 1)
  if ('kind' in update && update.kind !== 'dense')
    return failWith('bind/shape', `${b.name} is dense, and is given a ${update.kind} tensor`, {
      expected: `a dense tensor of shape [${was.shape.join(', ')}]`,
    })
  const { values, dtype } = update
  if (values?.length !== size) return wrongLength(b.name, values?.length ?? 0, size)
  const tensor: DenseTensor = { kind: 'dense', shape: was.shape, values, dtype }
  const own = convertDense(b.name, tensor, b.dtype)
  checkPaddedFactors(bound.kernel, new Map([[b.name, tensor]]), bound.params)
  const stored = order ? inOrder(own, b.dtype, was.shape, order) : own
  return written(bound, new Map([[b.name, stored]]), null, [b.name, tensor])
}

/** Returns true if the index arrays are equal, so positions mean the same coordinates. Otherwise values are matched by coordinate. */
function sameArrays({ arrays }: StoredTensor, was: StoredTensor): boolean {
  const names = new Set([...Object.keys(arrays), ...Object.keys(was.arrays)])
  return [...names].every((axis) =>
    LEVEL_ARRAYS.every((kind) => sameColumn(arrays[axis]?.[kind], was.arrays[axis]?.[kind])),
  )
}

function updatedArrays(
  bound: Bound,
  t: CallerTensor,
  was: StoredTensor,
  { values, dtype }: BareValues | StoredTensor,
): Written {
  const { kernel, arrays } = bound
  const storage = bound.storages.get(t.name)!
  if (values?.length !== storage.size) return wrongLength(t.name, values?.length ?? 0, storage.size)
  const own = readyValues({ kernel, b: t.first, storage, masks: arrays }, values, dtype)
  const source = isPart(kernel, t.name, was)
    ? partSource(bound, t, own)
    : sourceOf(kernel, t.name, { ...was, values, dtype }, extentsOf(kernel, bound.params), RARE_INPUTS)
  return written(bound, new Map([[t.name, own]]), source, null)
}

/** The source of a one-part tensor with new values, none of which may be in padding. @throws `bind/absent-coordinate` */
function partSource(bound: Bound, { name, first }: CallerTensor, values: ValueArray): EntryList {
  const source = bound.sources.find((s) => s.name === name)!
  const list = bound.lists.find((p) => p.name === name)!
  const at = bound.positions(list, first.name)
  const { dtype } = first
  const read = decoder(dtype)
  const isAbsent = (x: number): boolean => isFill(read ? read(x) : x, first.fill)
  const before = bound.arrays.get(name)!
  const held = new Uint8Array(values.length)
  if (at) for (const p of at) held[p] = 1
  const added = at ? held.findIndex((h, p) => h === 0 && !isAbsent(values[p]!) && isAbsent(before[p]!)) : -1
  if (added >= 0)
    failWith(
      'bind/absent-coordinate',
      `position ${added} of the new values of ${name} holds no element: it was the fill, which is padding, when ${name} was bound`,
      {
        expected: 'the fill where it was bound',
        hint: 'bind again with the new values, or in a format that keeps a mask',
      },
    )
  const shape = source.tensor!.shape
  const own = at ? gatherValues({ values, dtype }, at) : values
  return source.withTensor({ kind: 'coords', shape, coords: source.columns, values: own, dtype })
}

function tensorOf(bound: Bound, source: EntryList, update: Tensor | BareValues): Tensor {
  if ('kind' in update) return update
  const was = bound.given.get(source.name) ?? source.tensor
  if (bound.given.get(source.name) === undefined && bound.kernel.buffers.every((b) => b.name !== source.name))
    return failWith(
      'bind/values-length',
      `the parts of ${source.name} came ready-made, so the values have no order`,
      { expected: 'a tensor with coordinates', hint: `write coords(shape, columns, values)` },
    )
  const length =
    was?.kind === 'dense'
      ? was.shape.reduce((n, x) => n * x, 1)
      : (was?.kind === 'stored' ? was.values : source.columns[0])?.length
  if (!was || (length !== undefined && length !== update.values.length))
    return wrongLength(source.name, update.values.length, length ?? 0)
  return { ...was, ...update }
}

function wrongLength(name: string, got: number, wanted: number): never {
  failWith('bind/values-length', `${name} is given ${got} values`, {
    expected: `${wanted} values, in the order of the bound tensor`,
    hint: 'give one value for each, or a tensor with coordinates',
  })
}

/** The values of `next` in the order of `source`; those at one entry are summed, or combined by `or` if `logical`. */
function matched(source: EntryList, next: EntryList, fill: number, logical: boolean): BareValues {
  const { values, dtype } = next.tensor as { values: ValueArray | null; dtype: Dtype }
  const n = source.columns[0]?.length ?? 1
  const m = next.columns[0]?.length ?? 1
  if (values) checkValueArray(values, dtype)
  const same = source.columns.every((c, d) => sameColumn(c, next.columns[d]))
  if (same) return values ? { values, dtype } : { values: filledArray(dtype, n, 1), dtype }
  const maxima = source.columns.map((c, d) => Math.max(largest(c), largest(next.columns[d]!)))
  const stored = { positions: ascending(n, 'entries'), coords: source.columns }
  // Duplicates are assigned to separate entries while there are any; the rest is combined in the last.
  const to = matchTuples(stored, next.columns, maxima, repetitions(next.columns), true, (e) =>
    failWith(
      'bind/absent-coordinate',
      `entry ${e} of the new values of ${source.name} is at (${next.columns.map((c) => c[e]).join(', ')}), where ${source.name} holds nothing`,
      {
        expected: 'coordinates that were bound',
        hint: 'to write elsewhere, bind again with all these coordinates, with 0 for missing elements (the result of `get` has them)',
      },
    ),
  )
  const wide = values ? convertValues(values, dtype, 'f64') : null
  const out = new Float64Array(n)
  // Only the first of equal coordinates gets the fill value, because their values are summed.
  for (const e of uniqueTuples(source.columns).entries) out[e] = fill
  const seen = new Uint8Array(n)
  for (let w = 0; w < m; w++) {
    const e = to[w]!
    const x = wide ? wide[w]! : 1
    out[e] = seen[e] === 0 ? x : logical ? Math.max(out[e]!, x) : out[e]! + x
    seen[e] = 1
  }
  return { values: out, dtype: 'f64' }
}
