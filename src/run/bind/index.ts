/**
 * Binding: from values by name to the arrays of a plan. All errors in the data are detected here, before device memory is allocated. The
 * caller's arrays are not modified.
 */

import { failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { lazy } from '../../ast/lazy.ts'
import { arraysOfLevel } from '../../columns/stored-level.ts'
import { arrayName, countOf, hasIndptr, isStored } from '../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { measureWidths } from '../../storage/assembly/tree-assembly.ts'
import type { FormatOperands } from '../../storage/format-operands.ts'
import { storedValues } from '../../storage/ready/validate.ts'
import type { Storage } from '../../storage/storage.ts'
import type { DenseTensor, StoredTensor, Tensor, ValueArray } from '../../storage/tensor.ts'
import { DenseOnDevice, filledArray } from '../../storage/tensor.ts'
import { axesOfBinding, bindingOf, underKernelNames } from './binding-names.ts'
import { checkPaddedFactors } from './checks/padding-factors.ts'
import { checkClaims, checkOnDevice, requireInputs, requireStructure } from './checks/required-inputs.ts'
import { bindGiven, withArguments } from './format-inputs.ts'
import { bindReady } from './ready/ready-made-parts.ts'
import { readyValues } from './ready/ready-made-tables.ts'
import { reportOf } from './results/format-report.ts'
import { routeOf } from './results/gather-results.ts'
import { bindParams, checkWidths, measuring } from './sizes/bound-sizes.ts'
import { bindPlan, type CallerTensor, convertDense, inOrder } from './sources/caller-tensors.ts'
import { extentsOf, randomSources, sourceOf } from './sources/coordinate-sources.ts'
import { EntryList } from './sources/entry-list.ts'
import { remapSources } from './sources/remap-entries.ts'
import { buildStructure, masksOf, placedValues, type Structure } from './sources/structure-assembly.ts'
import type { Bound, Elsewhere, Inputs, Route } from './types.ts'

export type { Bound, Elsewhere, Inputs, PartFormat, TensorFormat } from './types.ts'

const NOWHERE: Elsewhere = { tensors: new Set(), levels: new Map() }

export interface BindOptions {
  /** Builds the structure only, without arrays of values. */
  readonly structureOnly?: boolean
  /** Tensors whose structure and values reside elsewhere; then `report` is empty. */
  readonly elsewhere?: Elsewhere
}

/**
 * Binds values to a (scheduled) kernel. Throws SptError `bind/…`: missing sizes, buffers, lists and sets, wrong shapes
 * and types, invalid ready-made arrays, conflicting structures, more than 2^31 - 1 elements, or more than memory or
 * `allocatingWithin` permits. Throws `format/…` for data that violates a format or composition.
 */
export function bindInputs(kernel: Kernel1, inputs: Inputs, options: BindOptions = {}): Bound {
  const start = performance.now()
  const plan = bindPlan(kernel)
  const tensors = underKernelNames(kernel, inputs.tensors ?? {})
  const params = bindParams(kernel, tensors, new Map(Object.entries(inputs.params ?? {})))
  const { elsewhere = NOWHERE } = options
  const here = new Map([...tensors].filter(([name]) => !elsewhere.tensors.has(name)))
  const { dense, ready, sources } = sort(kernel, here, params)
  requireInputs(kernel, tensors, inputs.seed)
  const given = bindGiven(kernel, tensors, params, extentsOf(kernel, params), inputs.seed)
  const known: FormatOperands = { sizes: params, extents: extentsOf(kernel, params), ...given }
  const parts = bindReady(kernel, tensors, sources, known)
  let built: Structure | undefined
  const wholes = [...ready].flatMap(([name, t]) =>
    wholeSource(kernel, name, t, params, () => built?.storages.get(name)),
  )
  requireStructure(kernel, tensors, [...sources, ...parts.sources], inputs.seed)
  const random = [...plan.operands.keys()].filter((name) => !tensors.has(name))
  let randomTime = 0
  if (inputs.seed !== undefined) {
    const bound = [...sources, ...parts.sources, ...wholes]
    const began = performance.now()
    const made = randomSources(kernel, bound, dense, params, inputs.seed)
    randomTime = performance.now() - began
    sources.push(...made.sources)
    for (const [name, t] of made.dense) dense.set(name, t)
    random.push(...made.dense.keys(), ...made.sources.map((s) => s.name))
  }
  const measure = measuring(kernel, known)
  const split = remapSources(kernel, sources, known, measure, [
    ...parts.lists,
    { axes: [...elsewhere.levels.keys()] },
  ])
  const lists = [...split.lists, ...parts.lists]
  measure(new Set(kernel.axes.map((a) => a.name)), lists)
  checkWidths(kernel, params)
  const build = (): Structure => buildStructure(kernel, lists, ready, elsewhere.levels, known)
  const structure = withArguments(kernel, () => {
    const measured = build()
    // Open widths become the longest segment of all axes that share them.
    return measureWidths(measured.levels.values(), params) ? build() : measured
  })
  built = structure
  const tables = new Map([...split.tables, ...parts.tables, ...masksOf(kernel, lists, structure, elsewhere)])
  checkClaims(kernel, structure, elsewhere)
  const arrays = indexArrays(kernel, structure, params)
  for (const b of kernel.buffers) {
    const table = b.table ? tables.get(b.name) : undefined
    if (table) arrays.set(b.name, table)
  }
  for (const t of options.structureOnly ? [] : plan.tensors) {
    if (!t.isInput) continue
    if (dense.get(t.name) instanceof DenseOnDevice || elsewhere.tensors.has(t.name)) continue
    for (const b of t.buffers)
      arrays.set(b.name, valuesOf(kernel, t, b, dense, ready, tables, lists, structure))
  }
  for (const p of kernel.params) if (!params.has(p.name)) params.set(p.name, 0)
  checkPaddedFactors(kernel, dense, params)
  const all = [...sources, ...parts.sources, ...wholes]
  const boundSources = (): readonly EntryList[] => all
  const routes = new Map<string, Route>()
  const { storages, positions, times: levelTimes } = structure
  const shared = { kernel, storages, positions, lists }
  const routeInput = { ...shared, sources: boundSources, known, ready: parts.sources }
  const reportInput = { ...shared, tables, splitTimes: split.times, levelTimes }
  return {
    ...shared,
    params,
    arrays,
    sources: boundSources,
    route: (name) => getOrAdd(routes, name, () => routeOf(routeInput, name)),
    ready,
    random,
    given: tensors,
    dense,
    buildTime: performance.now() - start,
    randomTime,
    report: lazy(() => (elsewhere.tensors.size > 0 ? [] : reportOf(reportInput))),
  }
}

/** Returns a ready-made tensor as a source, whose coordinates are computed on first access. Empty for other bindings. */
function wholeSource(
  kernel: Kernel1,
  name: string,
  tensor: StoredTensor,
  params: ReadonlyMap<string, number>,
  known: () => Storage | undefined,
): EntryList[] {
  if (bindingOf(kernel, name, tensor).kind !== 'tensor') return []
  const source = lazy(() => sourceOf(kernel, name, tensor, params, known()))
  return [new EntryList(name, axesOfBinding(kernel, name), source)]
}

/** Partitions the bound tensors: dense ones and ready-made arrays are used directly, all others by coordinates (`sources`). */
function sort(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  params: ReadonlyMap<string, number>,
): { dense: Map<string, Tensor>; ready: Map<string, StoredTensor>; sources: EntryList[] } {
  const dense = new Map<string, Tensor>()
  const ready = new Map<string, StoredTensor>()
  const sources: EntryList[] = []
  for (const [name, tensor] of tensors) {
    const b = bindingOf(kernel, name, tensor)
    if (b.kind === 'part') {
      if (tensor.kind === 'stored') ready.set(b.buffer.name, tensor)
      continue
    }
    if (b.kind !== 'tensor' && b.kind !== 'axis') continue
    const t = b.kind === 'tensor' ? b.tensor : undefined
    if (tensor instanceof DenseOnDevice) checkOnDevice(kernel, name, tensor, t)
    if (t?.isInput && t.asDeclared && t.structured.length === 0 && tensor.kind === 'dense')
      dense.set(name, tensor)
    else if (t?.asDeclared && tensor.kind === 'stored' && !tensor.repair) ready.set(name, tensor)
    else sources.push(sourceOf(kernel, name, tensor, params))
  }
  return { dense, ready, sources }
}

/** Returns the arrays of the levels by buffer name; adds their lengths to `params`. */
function indexArrays(
  kernel: Kernel1,
  { levels }: Structure,
  params: Map<string, number>,
): Map<string, ValueArray> {
  const arrays = new Map<string, ValueArray>()
  for (const a of kernel.axes) {
    const level = isStored(a) ? levels.get(a.name) : undefined
    if (!level || !isStored(a)) continue
    if (hasIndptr(a)) params.set(countOf(a.name), level.positions)
    for (const [array, column] of arraysOfLevel(level)) arrays.set(arrayName(a.name, array), column)
  }
  return arrays
}

function valuesOf(
  kernel: Kernel1,
  t: CallerTensor,
  b: Buffer1,
  dense: ReadonlyMap<string, Tensor>,
  ready: ReadonlyMap<string, StoredTensor>,
  tables: ReadonlyMap<string, Int32Array>,
  lists: readonly EntryList[],
  { storages, positions }: Structure,
): ValueArray {
  const storage = storages.get(b.name)!
  const whole = dense.get(t.name)
  if (whole?.kind === 'dense') return denseValues(t, whole)
  const made = ready.get(b.name)
  if (made) {
    const values = storedValues(storage, made, b.fill)
    return readyValues({ kernel, b, storage, masks: tables }, values, made.dtype)
  }
  const list = lists.find((p) => p.name === t.name && p.isOver(b.axes))
  const tensor = list?.tensor
  if (!list || !tensor) return filledArray(b.dtype, storage.size, b.fill)
  invariant(tensor.kind === 'coords', `${t.name} is bound by coordinates`)
  return placedValues(storage, b, list, positions(list, b.name), tensor)
}

function denseValues({ first: b, order }: CallerTensor, t: DenseTensor): ValueArray {
  const size = t.shape.reduce((a, x) => a * x, 1)
  if (t.values.length !== size)
    failWith(
      'bind/values-length',
      `${b.name} has ${t.values.length} values for shape [${t.shape.join(', ')}]`,
      { expected: `${size} values`, hint: 'give the values in row-major order' },
    )
  const values = convertDense(b.name, t, b.dtype)
  return order ? inOrder(values, b.dtype, t.shape, order) : values
}
