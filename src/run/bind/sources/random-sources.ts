/** Random structure and values of inputs that are not bound. */
import { chainTo, hasWidth } from '../../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { knownValue } from '../../../storage/build-storage.ts'
import type { Tensor } from '../../../storage/tensor.ts'
import {
  bindPlan,
  type CallerTensor,
  callerTensors,
  isStructured,
  leafChains,
  storedAxis,
} from '../bind-plan.ts'
import { extentsOf, fullColumns } from './coordinate-sources.ts'
import { EntryList } from './entry-list.ts'
import { randomCoords, randomDense, randomFor, randomKind, randomValues } from './random-tensors.ts'

/** Returns random structure and values for the inputs that are not bound. */
export function randomSources(
  kernel: Kernel1,
  bound: readonly EntryList[],
  dense: ReadonlyMap<string, Tensor>,
  params: ReadonlyMap<string, number>,
  seed: number,
): { sources: EntryList[]; dense: Map<string, Tensor> } {
  const { axes, bare } = bindPlan(kernel)
  const extents = extentsOf(kernel, params)
  const extent = (a: string): number => extents.get(a) ?? 0
  const sources: EntryList[] = []
  const newDense = new Map<string, Tensor>()
  const tensors = callerTensors(kernel)
  // Structure first: one source per chain without bound structure.
  const used = new Set([...tensors.flatMap((t) => t.axes), ...bare])
  for (const chain of leafChains([...axes.values()])) {
    const leaf = chain.findLast((a) => used.has(a))
    if (leaf === undefined || !isStructured(axes, leaf)) continue
    const needed = chainTo(axes, leaf)
    // Copies have the structure of their originals.
    if (needed.some((a) => axes.get(a)!.copyOf !== undefined)) continue
    if ([...bound, ...sources].some((s) => s.isOver(needed))) continue
    const random = randomFor(seed, leaf)
    const kinds = needed.map((a) => {
      const axis = storedAxis(axes, a)
      return (hasWidth(axis) ? knownValue(axis.width, params) : null) ?? randomKind(axis)
    })
    const columns = randomCoords(needed.map(extent), kinds, random)
    sources.push(new EntryList(leaf, needed, () => ({ columns, tensor: null })))
  }
  const isCopy = (t: CallerTensor): boolean => t.first.copyOf !== undefined
  for (const t of [...tensors.filter((t) => !isCopy(t)), ...tensors.filter(isCopy)]) {
    const { name, first: b, axes: over } = t
    if (!t.isInput) continue
    if (dense.has(name) || bound.some((s) => s.name === name)) continue
    const original = [...bound, ...sources].find((s) => s.name === b.copyOf)
    if (original) {
      const { columns, tensor } = original
      sources.push(new EntryList(name, over, () => ({ columns, tensor })))
      continue
    }
    const random = randomFor(seed, name)
    if (t.asDeclared && t.structured.length === 0) {
      newDense.set(name, randomDense(over.map(extent), b.dtype, random))
      continue
    }
    const columns = fullColumns(over, axes, extents, [...bound, ...sources])
    const n = columns[0]?.length ?? 0
    const values = randomValues(b.dtype, n, random)
    const shape = over.map(extent)
    const tensor = { kind: 'coords', shape, coords: columns, values, dtype: b.dtype } as const
    sources.push(new EntryList(name, over, () => ({ columns, tensor })))
  }
  return { sources, dense: newDense }
}
