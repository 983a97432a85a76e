/** Values that a caller binds: tensors, sizes, and list or set arguments of formats. */
import { byName } from '../../ast/by-name.ts'
import { fail, failAs } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { arrayClass } from '../../ir/values/arrays.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { allAxesOf, callerTensor, convertDense, isStructured } from '../../run/bind/bind-plan.ts'
import { bindingOf } from '../../run/bind/binding-names.ts'
import type { BareValues } from '../../run/bind/results/update-values.ts'
import {
  positionsOf,
  readyByPosition,
  sizesOfShapes,
  takesOffsets,
} from '../../run/bind/sizes/bound-offsets.ts'
import { agreedSizes } from '../../run/bind/sizes/bound-sizes.ts'
import type { ResidentTensor } from '../../storage/engines/device/resident-tensors.ts'
import { missingValue } from '../../storage/format-operands.ts'
import { DenseOnDevice, listTensor, type Tensor, type ValueArray } from '../../storage/tensor.ts'
import {
  checkTensor,
  coordinatesOf,
  expectArgument,
  expectOptions,
  isRecord,
  isTyped,
  numbersOf,
  show,
} from './argument-checks.ts'
import { type Bindable, copyOf, dtypeOf } from './tensors.ts'

export interface RunInputs {
  /**
   * By name: tensors, axes (structure only, or offsets of a ragged axis), lists and sets of formats, or ready-made arrays of all parts of
   * a tensor.
   */
  readonly tensors?: Readonly<Record<string, Bindable>>
  /** Sizes and scalars by name. */
  readonly params?: Readonly<Record<string, number | boolean>>
  /** Seed of random values for unbound inputs; without a seed, missing inputs are errors. */
  readonly seed?: number | undefined
  /** Limit on rounds with a condition, 10,000 by default; a run that reaches it fails with `run/max-rounds`. */
  readonly maxRounds?: number | undefined
  /** Statistics for dispatches, such as `{ 'longest(j)': 700 }`. They replace measured values without a check. */
  readonly statistics?: Readonly<Record<string, number>>
}

export const expectRecord = (inputs: unknown): void =>
  expectArgument(
    isRecord(inputs),
    'the object of inputs',
    inputs,
    'tensors and sizes by name: { A, B, d: 32 }',
  )

/** Checks the form of the inputs object, but not its values. Throws SptError `api/argument`. */
export function expectInputs(inputs: RunInputs): void {
  expectRecord(inputs)
  expectOptions('the object of inputs', inputs, ['tensors', 'params', 'seed', 'maxRounds', 'statistics'])
  expectArgument(isRecord(inputs.tensors ?? {}), 'tensors', inputs.tensors, 'tensors or values by name')
}

/** Returns the bound values as checked tensors. Throws SptError `api/argument`, `tensor/…`, `bind/missing-size`. */
export function valuesIn(
  kernel: Kernel1,
  inputs: RunInputs,
): {
  readonly tensors: Record<string, Tensor>
  readonly params: Readonly<Record<string, number>>
  readonly seed?: number
  readonly maxRounds?: number
} {
  expectInputs(inputs)
  const { params: scalars = {}, seed, maxRounds, statistics = {} } = inputs
  refuseStatistics(kernel, statistics)
  expectArgument(isRecord(scalars), 'params', scalars, 'numbers by name')
  const params = byName<number>()
  for (const [name, value] of Object.entries(scalars)) params[name] = numberFor(kernel, name, value)
  expectArgument(
    seed === undefined || Number.isSafeInteger(seed),
    'the seed',
    seed,
    'an integer, or none for no random data',
  )
  expectArgument(
    maxRounds === undefined || (Number.isSafeInteger(maxRounds) && maxRounds > 0),
    'maxRounds',
    maxRounds,
    'a positive integer',
  )
  const { tensors: given = {} } = inputs
  for (const [name, value] of Object.entries(given))
    if (!(value instanceof DenseOnDevice && value.isCallers)) expectInput(kernel, name)
  const tensors = byName<Tensor>()
  const flat: [string, Bare][] = []
  for (const [name, value] of Object.entries(given)) {
    if (!Array.isArray(value) && !isTyped(value)) {
      if (paramOf(kernel, name)) numberFor(kernel, name, value)
      checkTensor(name, value)
      tensors[name] = value
    } else flat.push([name, value as Bare])
  }
  const { ready, rest } = byPosition(kernel, flat, tensors, params)
  for (const [name, values] of rest) ready[name] = shaped(kernel, name, values, ready, params)
  return {
    tensors: ready,
    params,
    ...(seed !== undefined && { seed }),
    ...(maxRounds !== undefined && { maxRounds }),
  }
}

/** Rejects statistics without a dispatch. Throws SptError `choose/unknown-name`, `api/argument`. */
export function refuseStatistics({ name }: Pick<Kernel1, 'name'>, statistics: object): void {
  expectArgument(isRecord(statistics), 'statistics', statistics, "numbers by name: { 'longest(j)': 700 }")
  const [statistic] = Object.keys(statistics)
  if (statistic !== undefined)
    failAs('choose/unknown-name', {
      message: `the schedule of ${name} does not depend on data, so the statistic ${statistic} is not used`,
      expected: 'no statistics',
      hint: 'leave the statistics out, or build the kernel with a schedule that is declared with `choose`',
    })
}

const paramOf = (kernel: Kernel1, name: string) => kernel.params.find((p) => p.name === name)

/** The number that a caller gives for a size or a scalar. Throws SptError `api/argument`. */
function numberFor(kernel: Kernel1, name: string, value: unknown): number {
  const isTruth = typeof value === 'boolean' && paramOf(kernel, name)?.dtype === 'bool'
  expectArgument(isTruth || typeof value === 'number', `the value of ${name}`, value, 'a number')
  return Number(value)
}

/** Rejects values for an output or local buffer over dense axes, which the kernel would not read. @throws SptError `bind/not-input` */
function expectInput(kernel: Kernel1, name: string): void {
  const tensor = callerTensor(kernel, name)
  if (!tensor || !['out', 'local'].includes(tensor.first.role)) return
  const axes = allAxesOf(kernel)
  if (tensor.axes.some((a) => isStructured(axes, a))) return
  const isOutput = tensor.first.role === 'out'
  failAs('bind/not-input', {
    message: `${name} is ${isOutput ? 'an output' : 'a local buffer'} of kernel ${kernel.name}, so bound values would not be read`,
    hint: isOutput
      ? `leave ${name} out, and give sizes: { d: 32 }; if the kernel reads ${name}, declare \`${name}: … inout\``
      : `leave ${name} out`,
  })
}

type Bare = ValueArray | readonly number[]

/**
 * Converts arrays that are offsets of an axis, or values per position of an axis with bound arrays, to tensors; `rest`: the other arrays.
 */
function byPosition(
  kernel: Kernel1,
  flat: readonly (readonly [string, Bare])[],
  tensors: Record<string, Tensor>,
  params: Readonly<Record<string, number>>,
): { readonly ready: Record<string, Tensor>; readonly rest: readonly (readonly [string, Bare])[] } {
  const all: Record<string, Tensor> = byName(Object.entries(tensors))
  for (const [name, values] of flat)
    if (takesOffsets(kernel, name)) all[name] = listTensor(coordinatesOf(values, name))
  const rest: (readonly [string, Bare])[] = []
  for (const [name, values] of flat) {
    if (Object.hasOwn(all, name)) continue
    const chain = positionsOf(kernel, name, (a) => all[a]?.kind === 'dense' && takesOffsets(kernel, a))
    const isLine = chain !== null && chain.length === callerTensor(kernel, name)!.axes.length
    if (isLine) all[name] = elements(kernel, name, values, (n) => [n])
    else rest.push([name, values])
  }
  return { ready: byName(Object.entries(readyByPosition(kernel, all, params))), rest }
}

/**
 * Returns a copy of new values of an input, which the caller may change afterwards. 16-bit and 8-bit arrays have the buffer's type if it
 * has such elements. A scalar has one value. Throws SptError `api/argument`, `tensor/…`, `bind/not-input`.
 */
export function updateOf(
  kernel: Kernel1,
  name: string,
  values: Bindable | number | boolean,
): Tensor | BareValues {
  const param = paramOf(kernel, name)
  if (param?.kind === 'size')
    failAs('bind/not-input', {
      message: `${name} is a size of kernel ${kernel.name}, which is fixed when data are bound`,
      expected: 'an input or a scalar',
      hint: `bind again: fn.bind({ …, ${name}: ${show(values)} })`,
    })
  if (param) return { values: Float64Array.of(numberFor(kernel, name, values)), dtype: 'f64' }
  if (!Array.isArray(values) && !isTyped(values)) {
    checkTensor(name, values)
    return copyOf(values)
  }
  const array = Array.isArray(values) ? numbersOf(values, name) : (values as ValueArray).slice()
  const dtype = callerTensor(kernel, name)?.first.dtype
  const isOwn = dtype !== undefined && array instanceof arrayClass(dtype)
  return { values: array, dtype: isOwn ? dtype : dtypeOf(array) }
}

/** Gives an array without a shape the shape of its buffer, from the sizes and the other tensors. */
function shaped(
  kernel: Kernel1,
  name: string,
  values: Bare,
  tensors: Readonly<Record<string, Tensor>>,
  given: Readonly<Record<string, number>>,
): Tensor {
  const known = new Map([...Object.entries(given), ...sizesOfShapes(kernel, tensors)])
  const { kind, dimensions } = bindingOf(kernel, name)
  const array = Array.isArray(values) ? numbersOf(values, name) : (values as ValueArray)
  if (kind === 'list' || kind === 'table') {
    const list = coordinatesOf(values, name)
    return listTensor(list)
  }
  const over = dimensions.map((d) => d.extent)
  const open = over.flatMap((e) => [...freeVars(e)].filter((v) => !known.has(v)))
  if (open.length > 1 || (open.length === 1 && over.filter((e) => freeVars(e).has(open[0]!)).length > 1))
    fail({
      ...missingValue({ name: open[0]!, of: `(the shape of ${name} depends on it)` }),
      expected: `a shape for ${name}: ${array.length} values alone have none`,
      hint: `${name}: dense([${over.map((e) => (e.kind === 'var' ? e.name : '64')).join(', ')}], values), or the size ${open[0]}: 64`,
    })
  const rest = over
    .filter((e) => open.length === 0 || !freeVars(e).has(open[0]!))
    .reduce((n, e) => n * evaluate(e, known), 1)
  const shape = over.map((e) =>
    open.length === 1 && freeVars(e).has(open[0]!)
      ? rest === 0
        ? 0
        : Math.floor(array.length / rest)
      : evaluate(e, known),
  )
  const size = shape.reduce((n, x) => n * x, 1)
  const axes = allAxesOf(kernel)
  const isSparse = dimensions.some((d) => isStructured(axes, d.name))
  if (array.length !== size || (isSparse && open.length > 0))
    failAs('bind/values-length', {
      message: `${name} is given ${array.length} values and no shape; it is over [${dimensions.map((d) => d.name).join(', ')}] of [${over.map((e) => (freeVars(e).has(open[0] ?? '') ? printExpr1(e) : evaluate(e, known))).join(' × ')}]`,
      expected: open.length > 0 ? (isSparse ? `a shape` : `a multiple of ${rest} values`) : `${size} values`,
      ...(isSparse && {
        hint: 'an array without a shape is a dense tensor; bind coords(shape, columns, values), stored(shape, arrays, values) or dense(shape, values)',
      }),
    })
  return elements(kernel, name, array, () => shape)
}

function elements(
  kernel: Kernel1,
  name: string,
  bare: Bare,
  shapeOf: (length: number) => readonly number[],
): Tensor {
  const array = Array.isArray(bare) ? numbersOf(bare, name) : (bare as ValueArray)
  const shape = shapeOf(array.length)
  const buffer = callerTensor(kernel, name)?.first
  const bits = array instanceof Uint16Array
  const half = buffer?.dtype === 'f16' || buffer?.dtype === 'bf16'
  const dtype = bits && half ? buffer.dtype : dtypeOf(array)
  const isBool = buffer?.dtype === 'bool' && array instanceof Uint8Array
  return {
    kind: 'dense',
    shape,
    values: isBool
      ? array
      : dtype === buffer?.dtype
        ? array
        : buffer
          ? convertDense(name, { values: array, dtype, shape }, buffer.dtype)
          : array,
    dtype: buffer?.dtype ?? dtype,
  }
}

/** Values that are bound to a kernel, by name. */
export interface BoundValues {
  /** The schedule or space that depends on the values, by keyword and name, such as `schedule auto`. */
  readonly by: string
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly resident: Readonly<Record<string, ResidentTensor>>
  readonly params: Readonly<Record<string, number>>
  readonly seed?: number
  /** Statistics given by the caller, by name. */
  readonly statistics: ReadonlyMap<string, number>
  /** List and set arguments of formats, by name. */
  readonly beside: Readonly<Record<string, Tensor>>
}

/**
 * True if the kernel declares a buffer or an axis of that name. Other bound names belong to formats: their lists, sets and parts.
 * `used`: the names that formats take; an axis of such a name does not count.
 */
export const isDeclared = (kernel: Kernel1, name: string, used: Pick<ReadonlySet<string>, 'has'>): boolean =>
  callerTensor(kernel, name) !== undefined || (allAxesOf(kernel).has(name) && !used.has(name))

/** The bound values whose names the kernel declares. */
export const declaredOf = <T>(
  kernel: Kernel1,
  bound: Readonly<Record<string, T>>,
  used: Pick<ReadonlySet<string>, 'has'>,
): Record<string, T> => byName(Object.entries(bound).filter(([name]) => isDeclared(kernel, name, used)))

/**
 * The given sizes, and the sizes that the shapes of tensors determine.
 * @throws SptError `bind/size-mismatch` if two of them differ, `bind/size-range`
 */
export const sizesOf = (
  kernel: Kernel1,
  { tensors, resident, params }: Pick<BoundValues, 'tensors' | 'resident' | 'params'>,
): Map<string, number> =>
  agreedSizes(kernel, [...Object.entries(tensors), ...Object.entries(resident)], params)
