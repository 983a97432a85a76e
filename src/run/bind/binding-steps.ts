/**
 * Binding: from values by name to the arrays of a plan. All errors in the data are detected here, before device memory is allocated. The
 * caller's arrays are not modified.
 */

import { failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { lazy } from '../../ast/lazy.ts'
import type { Coroutine } from '../../ast/work.ts'
import { arraysOfLevel } from '../../columns/stored-level.ts'
import { arrayName, countOf, hasIndptr } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { measureWidths } from '../../storage/assembly/tree-assembly.ts'
import type { FormatOperands } from '../../storage/format-operands.ts'
import type { Storage } from '../../storage/storage.ts'
import type { DenseTensor, StoredTensor, Tensor, ValueArray } from '../../storage/tensor.ts'
import { DenseOnDevice, filledArray } from '../../storage/tensor.ts'
import { bindPlan, type CallerTensor, convertDense, inOrder } from './bind-plan.ts'
import { bindingOf, underKernelNames } from './binding-names.ts'
import {
  checkOnDevice,
  checkPaddedFactors,
  requireInputs,
  requireStructure,
} from './checks/required-inputs.ts'
import type { FormatCode } from './format-code.ts'
import { bindGiven, withArguments } from './format-inputs.ts'
import type { RareInputs } from './rare-inputs.ts'
import { bindParams, checkWidths, measuring } from './sizes/bound-sizes.ts'
import { extentsOf, sourceOf } from './sources/coordinate-sources.ts'
import { EntryList } from './sources/entry-list.ts'
import { assembleStructure, masksOf, placedValues, type Structure } from './sources/structure-assembly.ts'
import type { Bound, Elsewhere, Inputs, Route } from './types.ts'

const NOWHERE: Elsewhere = { tensors: new Set(), levels: new Map() }
const NO_PARTS = { sources: [], lists: [], tables: new Map<string, Int32Array>() }

export interface BindOptions {
  /** Builds the structure only, without arrays of values. */
  readonly structureOnly?: boolean
  /** Tensors whose structure and values reside elsewhere; then reports are empty. */
  readonly elsewhere?: Elsewhere
  /** The result of `bindParams` for these inputs; the call may add sizes. */
  readonly params?: Map<string, number>
}

/**
 * Binds values to a (scheduled) kernel. Throws SptError `bind/…`: missing sizes, buffers, lists and sets, wrong shapes
 * and types, invalid ready-made arrays, conflicting structures, more than 2^31 - 1 elements, or more than memory or
 * `allocatingWithin` permits. Throws `format/…` for data that violates a format or composition. Each format, part and array is a step.
 * `rare`: null if no input is ready-made arrays or random. `formats`: null if the kernel has none.
 */
export function* bindingSteps(
  kernel: Kernel1,
  inputs: Inputs,
  options: BindOptions,
  rare: RareInputs | null,
  formats: FormatCode | null,
): Coroutine<Bound> {
  const start = performance.now()
  const { elsewhere = NOWHERE } = options
  const { seed } = inputs
  const tensors = underKernelNames(kernel, inputs.tensors ?? {})
  const params = options.params ?? bindParams(kernel, tensors, new Map(Object.entries(inputs.params ?? {})))
  const extents = extentsOf(kernel, params)
  const here = new Map([...tensors].filter(([name]) => !elsewhere.tensors.has(name)))
  let structure: Structure | undefined
  const { dense, ready, sources, wholes } = sort(
    kernel,
    here,
    extents,
    (name) => structure?.storages.get(name),
    rare,
  )
  yield
  requireInputs(kernel, tensors, seed)
  const given = bindGiven(kernel, tensors, params, extents, rare, seed)
  // Extents may depend on the number of segments of a list.
  const known: FormatOperands = {
    sizes: params,
    extents: given.lists.size > 0 ? extentsOf(kernel, params) : extents,
    ...given,
  }
  yield
  const parts = rare?.bindReady(kernel, tensors, sources, known) ?? NO_PARTS
  requireStructure(kernel, tensors, [...sources, ...parts.sources], seed)
  const random = [...bindPlan(kernel).operands.keys()].filter((name) => !tensors.has(name))
  const began = performance.now()
  if (seed !== undefined) {
    const made = rare!.randomSources(kernel, [...sources, ...parts.sources, ...wholes], dense, params, seed)
    sources.push(...made.sources)
    for (const [name, t] of made.dense) dense.set(name, t)
    random.push(...made.dense.keys(), ...made.sources.map((s) => s.name))
  }
  const randomTime = performance.now() - began
  const measure = measuring(kernel, known)
  const resident = { axes: [...elsewhere.levels.keys()] }
  const split = formats
    ? yield* formats.remapSources(kernel, sources, known, measure, [...parts.lists, resident])
    : { lists: sources, tables: [], times: new Map() }
  const lists = [...split.lists, ...parts.lists]
  measure(new Set(kernel.axes.map((a) => a.name)), lists)
  checkWidths(kernel, params)
  const build = (): Structure => assembleStructure(kernel, lists, ready, elsewhere.levels, known, rare)
  yield
  structure = withArguments(kernel, () => {
    const measured = build()
    // Open widths become the longest segment of all axes that share them.
    return measureWidths(measured.levels.values(), params) ? build() : measured
  })
  const { storages, positions, times: levelTimes } = structure
  yield
  const tables = new Map([...split.tables, ...parts.tables, ...masksOf(kernel, lists, structure, elsewhere)])
  formats?.checkClaims(kernel, structure, elsewhere)
  const shared = { kernel, storages, positions, lists, dense, ready }
  const arrays = indexArrays(kernel, structure, params)
  for (const b of kernel.buffers) {
    const table = b.table ? tables.get(b.name) : undefined
    if (table) arrays.set(b.name, table)
  }
  if (!options.structureOnly)
    for (const [name, values] of valuesOf(shared, tables, elsewhere, rare)) {
      arrays.set(name, values)
      yield
    }
  for (const p of kernel.params) if (!params.has(p.name)) params.set(p.name, 0)
  checkPaddedFactors(kernel, dense, params)
  const boundSources = [...sources, ...parts.sources, ...wholes]
  const routes = new Map<string, Route>()
  const routeInput = { kernel, positions, lists, sources: boundSources, known, ready: parts.sources }
  return {
    params,
    maxRounds: inputs.maxRounds,
    arrays,
    sources: boundSources,
    route: (name) => getOrAdd(routes, name, () => formats!.routeOf(routeInput, name)),
    random,
    given: tensors,
    buildTime: performance.now() - start,
    randomTime,
    reported: elsewhere.tensors.size > 0 ? null : { tables, splitTimes: split.times, levelTimes },
    ...shared,
  }
}

interface SortedInputs {
  readonly dense: Map<string, Tensor>
  readonly ready: Map<string, StoredTensor>
  readonly sources: EntryList[]
  /** Ready-made tensors over their declared axes, whose coordinates are computed on first access. */
  readonly wholes: readonly EntryList[]
}

/** Partitions the bound tensors: dense tensors and ready-made arrays are used directly, other tensors by coordinates (`sources`). */
function sort(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  extents: ReadonlyMap<string, number>,
  validated: (name: string) => Storage | undefined,
  rare: RareInputs | null,
): SortedInputs {
  const dense = new Map<string, Tensor>()
  const ready = new Map<string, StoredTensor>()
  const sources: EntryList[] = []
  const wholes: EntryList[] = []
  for (const [name, tensor] of tensors) {
    const b = bindingOf(kernel, name, tensor)
    if (b.kind === 'part' && tensor.kind === 'stored') ready.set(b.buffer.name, tensor)
    if (b.kind !== 'tensor' && b.kind !== 'axis') continue
    const t = b.kind === 'tensor' ? b.tensor : undefined
    if (tensor instanceof DenseOnDevice) checkOnDevice(kernel, name, tensor, t)
    // An output in memory of the caller has no values, and dense axes need no structure.
    if (tensor instanceof DenseOnDevice && !t?.isInput) continue
    if (t?.isInput && t.asDeclared && t.structured.length === 0 && tensor.kind === 'dense')
      dense.set(name, tensor)
    else if (t?.asDeclared && tensor.kind === 'stored' && !tensor.repair) {
      ready.set(name, tensor)
      const content = lazy(() => sourceOf(kernel, name, tensor, extents, rare, validated(name)))
      wholes.push(new EntryList(name, t.axes, content))
    } else sources.push(sourceOf(kernel, name, tensor, extents, rare))
  }
  return { dense, ready, sources, wholes }
}

/** Returns the arrays of the levels by buffer name; adds their lengths to `params`. */
function indexArrays(
  kernel: Kernel1,
  { levels }: Structure,
  params: Map<string, number>,
): Map<string, ValueArray> {
  const arrays = new Map<string, ValueArray>()
  for (const a of bindPlan(kernel).stored) {
    const level = levels.get(a.name)
    if (!level) continue
    if (hasIndptr(a)) params.set(countOf(a.name), level.positions)
    for (const [array, column] of arraysOfLevel(level)) arrays.set(arrayName(a.name, array), column)
  }
  return arrays
}

/** The values of inputs by buffer, in storage order, except those in the memory of a device. */
function* valuesOf(
  {
    kernel,
    storages,
    positions,
    lists,
    dense,
    ready,
  }: Pick<Bound, 'kernel' | 'storages' | 'positions' | 'lists' | 'dense' | 'ready'>,
  tables: ReadonlyMap<string, Int32Array>,
  elsewhere: Elsewhere,
  rare: RareInputs | null,
): Generator<readonly [string, ValueArray]> {
  for (const t of bindPlan(kernel).tensors) {
    const whole = dense.get(t.name)
    if (!t.isInput || whole instanceof DenseOnDevice || elsewhere.tensors.has(t.name)) continue
    for (const b of t.buffers) {
      const storage = storages.get(b.name)!
      const made = ready.get(b.name)
      const list = lists.find((p) => p.name === t.name && p.isOver(b.axes))
      if (whole?.kind === 'dense') yield [b.name, denseValues(t, whole)]
      else if (made) {
        const values = rare!.storedValues(storage, made, b.fill)
        yield [b.name, rare!.readyValues({ kernel, b, storage, masks: tables }, values, made.dtype)]
      } else if (list?.tensor) {
        invariant(list.tensor.kind === 'coords', `${t.name} is bound by coordinates`)
        yield [b.name, placedValues(storage, b, list, positions(list, b.name), list.tensor)]
      } else yield [b.name, filledArray(b.dtype, storage.size, b.fill)]
    }
  }
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
