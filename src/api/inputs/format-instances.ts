/** Instances of formats over their own dimensions, and their lists and sets from tensors. */
import type { SpanOption } from '../../formats/instance/format-arguments.ts'
import { instantiate } from '../../formats/instance/instantiate.ts'
import { compressedAxis, denseAxis, type StoredAxis } from '../../ir/coordinates/axis.ts'
import { Names } from '../../ir/expressions/bound-names.ts'
import { variable } from '../../ir/expressions/expr.ts'
import type { Instance, OrderedFormat } from '../../ir/formats/format.ts'
import { givenOperands } from '../../run/bind/format-inputs.ts'
import { RARE_INPUTS } from '../../run/bind/rare-inputs.ts'
import type { FormatOperands } from '../../storage/format-operands.ts'
import { listTensor, type Tensor } from '../../storage/tensor.ts'
import {
  checkTensor,
  coordinatesOf,
  expectArgument,
  expectOptions,
  isRecord,
  isTyped,
} from './argument-checks.ts'
import type { Bindable } from './tensors.ts'

/** Lists (ascending boundaries of segments) and sets (tensors whose coordinates are used) by name. */
export type FormatData = Readonly<Record<string, Bindable>>

/** Returns the checked arguments of an instance. Throws SptError `api/…`, `bind/…`. */
export function givenFor(instance: Instance, shape: readonly number[], data: FormatData): FormatOperands {
  expectArgument(isRecord(data), 'lists and sets', data, 'tensors or lists of integers by name')
  const { over, given } = instance
  expectOptions(
    instance.text,
    data,
    given.map((g) => g.name),
  )
  const sizes = new Map(over.map((a, k) => [sizeOf(a.name), shape[k] ?? 0]))
  const extents = new Map(over.map((a, k) => [a.name, shape[k] ?? 0]))
  const operands = givenOperands({ instance, sizes, extents, rare: RARE_INPUTS }, (name) =>
    data[name] === undefined ? undefined : asTensor(name, data[name]),
  )
  return { sizes, extents, ...operands }
}

function asTensor(name: string, value: Bindable): Tensor {
  if (!Array.isArray(value) && !isTyped(value)) {
    checkTensor(name, value)
    return value
  }
  const list = coordinatesOf(value, name)
  return listTensor(list)
}

const sizeOf = (dimension: string): string => `size of ${dimension}`

/** Instantiates a format over its own dimensions. Throws SptError `format/…`. */
export function instanceOf(
  format: OrderedFormat,
  args: readonly (number | string)[],
  at: SpanOption = {},
): Instance {
  const names = new Names(format.over)
  const over = format.over.map((name, k): StoredAxis => {
    const extent = variable(sizeOf(name))
    const parent = format.over[k - 1]
    return parent === undefined ? denseAxis(name, extent) : compressedAxis(name, parent, extent)
  })
  const fresh = (name: string, label: string): string => names.fresh(label === '' ? name : `${name}_${label}`)
  return instantiate({ format, args }, over, fresh, at)
}
