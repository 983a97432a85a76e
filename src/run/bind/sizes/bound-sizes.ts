/** Sizes: given by the caller, or inferred from the shapes of bound tensors. All sources of a size must agree. */

import { type Diagnostic, failWith, SptError } from '../../../ast/diagnostics/diagnostic.ts'
import { quantity } from '../../../ast/print/quantity.ts'
import { hasWidth, isRagged, isStored } from '../../../ir/coordinates/axis.ts'
import type { Kernel1, Param } from '../../../ir/coordinates/stage1.ts'
import { freeVars } from '../../../ir/expressions/expr-tree.ts'
import { segmentsOf } from '../../../ir/formats/format-tables.ts'
import { memoize } from '../../../ir/memoize.ts'
import { isFloat } from '../../../ir/values/dtype.ts'
import { evaluate } from '../../../ir/values/evaluate.ts'
import { rounding } from '../../../ir/values/half.ts'
import { knownValue } from '../../../storage/build-storage.ts'
import { isFill } from '../../../storage/entries/stored-coords.ts'
import { type FormatOperands, missingValue, sizeIn } from '../../../storage/format-operands.ts'
import { encoder, nameWithOrigin, rangeOf, type Tensor } from '../../../storage/tensor.ts'
import { bindPlan, callerTensors } from '../bind-plan.ts'
import { bindingOf, type Dimension } from '../binding-names.ts'
import { extentsOf } from '../sources/coordinate-sources.ts'
import type { Measure } from '../sources/remap-entries.ts'

const MAX_SIZE = 2 ** 31 - 1

/** Options of calls that are numbers. */
const OPTIONS: readonly string[] = ['seed', 'capability', 'processors']

/** Rounds scalars to their types. @throws `bind/unknown-size`, `bind/size-range`, `bind/scalar-range` */
export function givenParams(
  kernel: Kernel1,
  given: Iterable<readonly [string, number]>,
): Map<string, number> {
  const names = kernel.params.map((p) => p.name)
  const params = new Map<string, number>()
  for (const [name, value] of given) {
    const p = kernel.params.find((x) => x.name === name)
    if (!p)
      failWith('bind/unknown-size', `kernel ${kernel.name} has no size or scalar ${name}`, {
        lookup: { name, candidates: names },
        expected: names.length > 0 ? `one of ${names.join(', ')}` : 'none',
        hint: OPTIONS.includes(name)
          ? `pass the option after the inputs: fn({ … }, { ${name}: ${value} })`
          : `omit ${name}${names.length > 0 ? ', or use one of the names' : ''}`,
      })
    params.set(name, checkParam(p, value))
  }
  return params
}

/** Returns the values of all sizes and scalars except measured ones, and the segment counts of lists. */
export function bindParams(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  given: ReadonlyMap<string, number>,
): Map<string, number> {
  const params = givenParams(kernel, given)
  const from = new Map<string, SizeSource>()
  for (const [name, tensor] of tensors) {
    dimensionsOf(kernel, name, tensor)
    addSizes(kernel, name, tensor, { params, from })
    // A list of n + 1 boundaries has n segments.
    if (bindingOf(kernel, name, tensor).kind === 'list') params.set(segmentsOf(name), tensor.shape[0]! - 1)
  }
  rejectMissing(kernel, openParams(kernel), params)
  checkDimensions(kernel, tensors, params)
  checkGroupWidths(kernel, params)
  return params
}

function rejectMissing(
  kernel: Kernel1,
  wanted: readonly Param[],
  known: Pick<ReadonlySet<string>, 'has'>,
): void {
  const missing = wanted.filter((p) => !known.has(p.name))
  if (missing.length > 0) throw new SptError(missing.map((p) => missingParam(kernel, p)))
}

/** Checks sizes before `tensors` are bound, whose shapes give others. Throws `bind/size-range`, `bind/missing-size`. */
export function checkSizesBeside(
  kernel: Kernel1,
  tensors: readonly string[],
  given: Readonly<Record<string, number>>,
): void {
  const known = new Set(agreedSizes(kernel, [], given).keys())
  for (const name of tensors)
    for (const { extent } of bindingOf(kernel, name).dimensions)
      if (extent.kind === 'var') known.add(extent.name)
  const sizes = openParams(kernel).filter((p) => p.kind === 'size')
  rejectMissing(kernel, sizes, known)
}

/** A value with a shape, including device-resident tensors. */
type Shaped = Pick<Tensor, 'shape'> & { readonly origin?: string }

/** Given sizes, and those of shapes. @throws `bind/size-mismatch` if they disagree, `bind/size-range` */
export function agreedSizes(
  kernel: Kernel1,
  shaped: Iterable<readonly [string, Shaped]>,
  given: Readonly<Record<string, number>>,
): Map<string, number> {
  const params = new Map(Object.entries(given))
  for (const p of kernel.params)
    if (p.kind === 'size' && params.has(p.name)) checkParam(p, params.get(p.name)!)
  const from = new Map<string, SizeSource>()
  for (const [name, tensor] of shaped) addSizes(kernel, name, tensor, { params, from })
  return params
}

/** The dimension from which a size was inferred, and the shape of its tensor, as text for messages. */
interface SizeSource {
  readonly text: string
  readonly shape: string
}

/** Adds the sizes that are extents of a tensor's dimensions. `from` records the source of each inferred size. */
function addSizes(
  kernel: Kernel1,
  name: string,
  tensor: Shaped,
  { params, from }: { readonly params: Map<string, number>; readonly from: Map<string, SizeSource> },
): void {
  const { dimensions } = bindingOf(kernel, name, tensor as Tensor)
  dimensions.forEach(({ extent }, k) => {
    const size = tensor.shape[k]
    if (extent.kind !== 'var' || size === undefined || !kernel.params.some((p) => p.name === extent.name))
      return
    const known = params.get(extent.name)
    const here = {
      text: `dimension ${k} of ${nameWithOrigin(name, tensor as Tensor)}`,
      shape: `${name} is ${tensor.shape.join(' × ')}, declared over [${dimensions.map((d) => d.name).join(', ')}]`,
    }
    if (known === undefined) {
      params.set(extent.name, size)
      from.set(extent.name, here)
    } else if (known !== size)
      failWith(
        'bind/size-mismatch',
        `size ${extent.name} is ${known} by ${from.get(extent.name)?.text ?? 'the value given'}, and ${size} by ${here.text}`,
        {
          expected: 'a value for each size',
          hint: `check the shapes: ${[from.get(extent.name), here].flatMap((s) => s?.shape ?? []).join('; ')} (bind the transpose of a transposed tensor)`,
        },
      )
  })
}

/** Sizes and scalars that are given or inferred from shapes, in contrast to measured ones. */
export const openParams = memoize((kernel: Kernel1): readonly Param[] =>
  kernel.params.filter((p) => !p.measured && !isWidth(kernel, p)),
)

/** Returns true for a size that is only the width of an axis; if it is not given, it is the longest segment of the bound data. */
const isWidth = (kernel: Kernel1, p: Param): boolean =>
  kernel.axes.some((a) => hasWidth(a) && a.width.kind === 'var' && a.width.name === p.name) &&
  !kernel.axes.some((a) => 'extent' in a && freeVars(a.extent).has(p.name))

/** Returns the value rounded to its declared type. Throws SptError `bind/size-range`, `bind/scalar-range`. */
function checkParam(p: Param, value: number): number {
  if (p.kind === 'size' && !(Number.isInteger(value) && value >= 0 && value <= MAX_SIZE))
    failWith('bind/size-range', `size ${p.name} is ${value}`, {
      expected: `an integer from 0 to ${MAX_SIZE}`,
      hint: 'sizes and positions are 32-bit integers',
    })
  const misfit = (): never =>
    failWith('bind/scalar-range', `${p.name} is ${value}, which is not a value of type ${p.dtype}`, {
      expected: rangeOf(p.dtype),
      hint: 'give a value of the declared type',
    })
  encoder(p.dtype, misfit)?.(value, 0)
  return rounding(p.dtype)(value)
}

const missingParam = (kernel: Kernel1, p: Param): Diagnostic =>
  missingValue({ ...p, of: `of kernel ${kernel.name}`, inputs: givers(kernel, p) })

/** Names of the inputs whose shapes would determine the size. */
function givers(kernel: Kernel1, { kind, name }: Param): readonly string[] {
  const { axes } = bindPlan(kernel)
  const isExtent = (axis: string): boolean => {
    const a = axes.get(axis)
    return !!a && 'extent' in a && a.extent.kind === 'var' && a.extent.name === name
  }
  if (kind !== 'size') return []
  return callerTensors(kernel).flatMap((t) =>
    t.first.role !== 'out' && t.first.role !== 'local' && t.axes.some(isExtent) ? [t.name] : [],
  )
}

/** The dimensions of a bound tensor. Throws SptError `bind/rank` if their number differs. */
function dimensionsOf(kernel: Kernel1, name: string, tensor: Tensor): readonly Dimension[] {
  const { dimensions } = bindingOf(kernel, name, tensor)
  if (tensor.shape.length !== dimensions.length) {
    const ragged = dimensions.findLast((d) => isRagged(bindPlan(kernel).axes.get(d.name)))
    failWith(
      'bind/rank',
      `${nameWithOrigin(name, tensor)} is bound to a tensor of ${quantity(tensor.shape.length, 'dimension')}; it is over [${dimensions.map((d) => d.name).join(', ')}]`,
      {
        expected: quantity(dimensions.length, 'dimension'),
        hint: ragged
          ? `bind a tensor with a dimension for each axis, or offsets to ${ragged.name} and here a value for each position`
          : `bind a tensor with a dimension for each axis${tensor.shape.length > dimensions.length ? ' (a layer that spt prune wrote is a matrix as report.json#layer)' : ''}`,
      },
    )
  }
  return dimensions
}

/** Ranks, extents and fill values match the declaration. @throws SptError `bind/rank`, `bind/shape`, `bind/fill` */
export function checkDimensions(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  params: ReadonlyMap<string, number>,
): void {
  for (const [name, tensor] of tensors) {
    checkFill(kernel, name, tensor)
    dimensionsOf(kernel, name, tensor).forEach((d, k) => {
      const extent = knownValue(d.extent, params)
      const expected = Math.max(0, extent ?? 0)
      const size = tensor.shape[k]!
      if (extent !== null && expected !== size)
        failWith(
          'bind/shape',
          `dimension ${k} of ${nameWithOrigin(name, tensor)} (axis ${d.name}) has ${size} coordinates; the sizes give ${expected}`,
          {
            expected: `${expected}`,
            hint: `bind a tensor of that shape, or other sizes (${[...freeVars(d.extent)].map((v) => `${v} = ${params.get(v)}`).join(', ')})`,
          },
        )
    })
  }
}

function checkFill(kernel: Kernel1, name: string, tensor: Tensor): void {
  const binding = bindingOf(kernel, name, tensor)
  if (tensor.kind !== 'coords' || tensor.fill === undefined || binding.kind !== 'tensor') return
  const { dtype, fill } = binding.tensor.first
  const own = (x: number): number => (isFloat(dtype) ? rounding(dtype)(x) : x)
  if (isFill(own(tensor.fill), own(fill))) return
  failWith(
    'bind/fill',
    `elements that ${name} does not store are ${tensor.fill}, and the buffer reads them as ${fill}`,
    {
      expected: `buffer ${name}: ${dtype}[…] fill ${tensor.fill}, or a tensor with the fill value ${fill}`,
      hint: `in the kernel: fill ${tensor.fill}; or in Python: x.todense(), and save that as .npy`,
    },
  )
}

// Measured sizes: extents that formats leave open are determined by the largest coordinate.

/** Returns a function that measures open extents, and adds them and dependent extents to `known`. */
export function measuring(kernel: Kernel1, known: FormatOperands): Measure {
  const params = known.sizes as Map<string, number>
  const extents = known.extents as Map<string, number>
  const axes = [...bindPlan(kernel).axes.values()]
  const open = new Set(kernel.params.filter((p) => p.measured && !params.has(p.name)).map((p) => p.name))
  if (open.size === 0) return () => {}
  return (names, lists) => {
    let found = false
    for (const a of axes) {
      if (!names.has(a.name) || !isStored(a) || a.extent.kind !== 'var' || !open.has(a.extent.name)) continue
      let n = params.get(a.extent.name) ?? 0
      for (const p of lists) {
        const column = p.columns[p.axes.indexOf(a.name)]
        if (column) for (let e = 0; e < column.length; e++) if (column[e]! >= n) n = column[e]! + 1
      }
      params.set(a.extent.name, n)
      found = true
    }
    if (found) for (const [a, n] of extentsOf(kernel, params)) extents.set(a, n)
  }
}

/** Computed widths need all their sizes; a width that is one size may be measured later. @throws `bind/missing-size` */
export function checkWidths({ axes }: Kernel1, params: ReadonlyMap<string, number>): void {
  for (const a of axes) {
    if (hasWidth(a) && a.width.kind !== 'var') sizeIn(a.width, params, `the width of axis ${a.name}`)
  }
}

// Bounds on the widths of lists that are built at run time, because each run fills and visits every group
// completely.

/** Positions that a group may have in any case, so that tiles may exceed small tensors. */
const FILLED = 4096

/** Throws SptError `bind/group-width` if a group has far more positions than there are coordinates. */
function checkGroupWidths({ runtimeLists: found = [] }: Kernel1, params: ReadonlyMap<string, number>): void {
  for (const { tensor, parts, span } of found)
    for (const { instance, axis, width, extent } of parts) {
      const coordinates = Number(evaluate(extent, params))
      if (width <= Math.max(coordinates, FILLED)) continue
      failWith(
        'bind/group-width',
        `groups of ${instance.text} (${axis}) have ${width} positions, and ${tensor} has ${coordinates} coordinates to list: each run would pad and traverse the remaining positions`,
        {
          ...(span && { span }),
          expected: `groups of at most ${Math.max(coordinates, FILLED)} positions`,
          hint: `one group of ${coordinates} holds all: choose no more, or several smaller groups`,
        },
      )
    }
}
