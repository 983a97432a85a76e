/** Sources of coordinates: bound and random tensors as columns over the caller's axes. */
import { invariant } from '../../../ast/diagnostics/diagnostic.ts'
import { allocate, ascending } from '../../../columns/allocate.ts'
import { rankedTuples } from '../../../columns/key-columns.ts'
import { chainTo, isStored, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { knownValue } from '../../../storage/build-storage.ts'
import { coordsOfDense } from '../../../storage/entries/stored-coords.ts'
import type { elementsOf } from '../../../storage/ready/elements.ts'
import type { storedValues, validateStored } from '../../../storage/ready/validate.ts'
import { checkCoords, type Storage, separatesDuplicates } from '../../../storage/storage.ts'
import type { Repair, Tensor } from '../../../storage/tensor.ts'
import { type BindPlan, bindPlan, callerTensor, isStructured, storedAxis } from '../bind-plan.ts'
import { axesOfBinding } from '../binding-names.ts'
import { EntryList, united } from './entry-list.ts'

export const extentsOf = (kernel: Kernel1, params: ReadonlyMap<string, number>): Map<string, number> => {
  const out = new Map<string, number>()
  for (const a of bindPlan(kernel).axes.values()) {
    const extent = isStored(a) ? knownValue(a.extent, params) : null
    if (extent !== null) out.set(a.name, Math.max(0, extent))
  }
  return out
}

/** Functions that read ready-made arrays (`rare-inputs.ts`). */
interface ArrayReaders {
  readonly elementsOf: typeof elementsOf
  readonly storedValues: typeof storedValues
  readonly validateStored: typeof validateStored
}

/** `extents`: as `extentsOf`. `known`: validated arrays of a stored tensor, if available. @throws `bind/coordinates`, `bind/coordinate-range` */
export function sourceOf(
  kernel: Kernel1,
  name: string,
  tensor: Tensor,
  extents: ReadonlyMap<string, number>,
  read: ArrayReaders | null,
  known?: Storage,
): EntryList {
  const axes = axesOfBinding(kernel, name)
  const { axes: all } = bindPlan(kernel)
  if (tensor.kind === 'coords') {
    checkCoords(
      axes.map((name) => ({ name })),
      extents,
      tensor.coords,
    )
    return new EntryList(name, axes, () => ({ columns: tensor.coords, tensor }))
  }
  // Elements that equal the fill value are not stored; zeros are stored if the fill value is not 0.
  const fill = callerTensor(kernel, name)?.first.fill ?? 0
  if (tensor.kind === 'dense') {
    const t = coordsOfDense(tensor, fill)
    return new EntryList(name, axes, () => ({ columns: t.coords, tensor: t }))
  }
  const stored = axes.map((a) => relaxed(storedAxis(all, a), tensor.repair))
  const { elementsOf, storedValues, validateStored } = read!
  const storage = known ?? validateStored(stored, { extents }, tensor, { name, fill })
  const t = elementsOf(storage, storedValues(storage, tensor, fill), tensor.dtype, fill)
  return new EntryList(name, axes, () => ({ columns: t.coords, tensor: t }))
}

/** The axis with the requirements relaxed that `repair` will establish: order by sorting, uniqueness by summing. */
const relaxed = (axis: StoredAxis, repair: Repair = {}): StoredAxis =>
  'ordered' in axis
    ? {
        ...axis,
        ordered: axis.ordered && !repair.sort,
        unique: axis.unique && !repair.sum,
      }
    : axis

/**
 * Returns every coordinate that a buffer over these axes stores: the union of the sources on sparse chains, times all coordinates of dense
 * axes. On nonunique axes, each coordinate occurs as often as in the source that contains it most often.
 */
export function fullColumns(
  over: readonly string[],
  axes: BindPlan['axes'],
  extents: ReadonlyMap<string, number>,
  sources: readonly EntryList[],
): Int32Array[] {
  const groups: { names: readonly string[]; columns: readonly Int32Array[] }[] = []
  const done = new Set<string>()
  for (const a of over) {
    if (done.has(a)) continue
    const leaf = over.findLast((x) => chainTo(axes, x)[0] === chainTo(axes, a)[0])!
    const chain = chainTo(axes, leaf)
    for (const x of chain) done.add(x)
    if (!isStructured(axes, leaf)) {
      for (const x of chain) {
        const column = ascending(extents.get(x) ?? 0, `coordinates of axis ${x}`)
        groups.push({ names: [x], columns: [column] })
      }
      continue
    }
    const from = sources.filter((s) => s.isOver(chain))
    invariant(from.length > 0, `nothing gives the structure of axis ${leaf}`)
    const keeps = (p: EntryList): boolean =>
      separatesDuplicates(p.source.axes.map((x) => storedAxis(axes, x)))
    const union = united(from, chain, keeps)
    groups.push({ names: chain, columns: rankedTuples(union.columns, from.some(keeps)).columns })
  }
  if (groups.length === 1) return over.map((a) => groups[0]!.columns[groups[0]!.names.indexOf(a)]!)
  const total = groups.reduce((n, g) => n * (g.columns[0]?.length ?? 0), 1)
  const byName = new Map<string, Int32Array>()
  let after = total
  for (const g of groups) {
    const size = g.columns[0]?.length ?? 0
    after = size === 0 ? 0 : after / size
    g.names.forEach((name, k) => {
      const from = g.columns[k]!
      const to = allocate(total, 'coordinates')
      for (let e = 0; e < total; e++) to[e] = from[Math.floor(e / after) % size]!
      byName.set(name, to)
    })
  }
  return over.map((a) => byName.get(a)!)
}
