/** Checks of arguments of API calls: options, devices, tensors. */

import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord, nameText, show } from '../../ast/diagnostics/expect-argument.ts'
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import type { Device } from '../../runtime/device.ts'
import { DenseOnDevice, type Tensor, type ValueArray } from '../../storage/tensor.ts'

export {
  expectArgument,
  expectDistinct,
  expectOptions,
  isRecord,
  nameText,
  show,
} from '../../ast/diagnostics/expect-argument.ts'

/** Throws SptError `api/argument` unless `list` is a list whose entries all satisfy `holds`; the message names the first that does not. */
export function expectEach(
  what: string,
  list: unknown,
  holds: (entry: unknown) => boolean,
  entry: string,
  as: string,
): void {
  expectArgument(Array.isArray(list), what, list, `a list of ${entry}s, ${as}`)
  const wrong = (list as readonly unknown[]).findIndex((x) => !holds(x))
  if (wrong >= 0)
    expectArgument(false, `${entry} ${wrong + 1} of ${what}`, (list as readonly unknown[])[wrong], as)
}

/** Throws SptError `api/argument` unless the argument is a device. */
export function checkDevice(device: Device): void {
  expectArgument(
    isRecord(device) && typeof device.compile === 'function' && isRecord(device.limits),
    'the device',
    device,
    'a device: await devices.cpu(), devices.webgpu() or devices.cuda()',
  )
}

/** Throws SptError `api/argument` unless the name is a string. */
export function expectName(what: string, name: unknown): asserts name is string {
  expectArgument(typeof name === 'string', `the name of ${what}`, name, 'a string')
}

/** Throws SptError `api/argument` unless `x` is an Int32Array (coordinates, positions or mask words). */
export function expectInt32s(what: string, x: unknown, how = ''): asserts x is Int32Array {
  expectArgument(x instanceof Int32Array, what, x, `an Int32Array${how}`)
}

/** Throws SptError `tensor/shape` unless the shape is a list of nonnegative integers. */
export function checkShape(shape: unknown): asserts shape is readonly number[] {
  if (Array.isArray(shape) && shape.every((n) => Number.isInteger(n) && n >= 0)) return
  failAs('tensor/shape', {
    message: `a shape is ${Array.isArray(shape) ? `[${shape.map(show).join(', ')}]` : show(shape)}`,
    expected: 'a list of integers that are not negative',
  })
}

/** Throws SptError `tensor/dtype` unless the argument is an element type. */
export function checkDtype(dtype: unknown): void {
  if (typeof dtype === 'string' && Object.hasOwn(DTYPE_BYTES, dtype)) return
  const candidates = Object.keys(DTYPE_BYTES)
  failWith('tensor/dtype', `there is no type ${show(dtype)}`, {
    lookup: { name: nameText(dtype), candidates },
    expected: candidates.join(', '),
  })
}

/** Converts a list of numbers to f64; booleans are accepted if `dtype` is `bool`. Throws SptError `tensor/values`. */
export function numbersOf(values: readonly unknown[], what: string, dtype?: unknown): Float64Array {
  const bad = values.findIndex((v) => typeof v !== 'number' && !(dtype === 'bool' && typeof v === 'boolean'))
  if (bad >= 0)
    failWith('tensor/values', `value ${bad} of ${what} is ${show(values[bad])}`, {
      expected: 'numbers',
      ...(Array.isArray(values[bad]) && {
        hint: `dense([${values.length}, ${values[bad].length}], rows.flat()), where values are row-major`,
      }),
    })
  return Float64Array.from(values as number[])
}

/** Converts integers to i32. Throws SptError `tensor/coords`. */
export function coordinatesOf(values: unknown, what: string): Int32Array {
  if (values instanceof Int32Array) return values
  if (!Array.isArray(values) && !isTyped(values))
    failWith('tensor/coords', `${what} is ${show(values)}`, { expected: 'a list of integers' })
  const array = values as ArrayLike<unknown>
  const out = new Int32Array(array.length)
  for (let e = 0; e < array.length; e++) {
    const x = array[e]
    const c = typeof x === 'bigint' ? Number(x) : x
    out[e] = typeof c === 'number' ? c : Number.NaN
    if (out[e] !== c)
      failWith('tensor/coords', `entry ${e} of ${what} is ${show(c)}`, { expected: 'a 32-bit integer' })
  }
  return out
}

/**
 * Checks a tensor from `dense`, `coords`, `stored` or a reader, or a similar object. Ranges of coordinates are checked on use. Throws
 * SptError `api/argument`, `tensor/…`.
 */
export function checkTensor(
  name: string,
  t: unknown,
  what = `the value bound to ${name}`,
): asserts t is Tensor {
  expectArgument(
    isRecord(t) && (t.kind === 'dense' || t.kind === 'coords' || t.kind === 'stored'),
    what,
    t,
    'a tensor, a typed array or a list of numbers',
    isRecord(t) ? constructorOf(t) : 'make one with dense, coords, stored or readTensor',
  )
  if (t instanceof DenseOnDevice) return
  const { kind, shape, values, dtype, coords, arrays } = t as Readonly<Record<string, unknown>>
  checkShape(shape)
  checkDtype(dtype)
  expectArgument(
    isTyped(values) || ((values === null || values === undefined) && kind !== 'dense'),
    `the values of ${name}`,
    values,
    'a typed array of its type',
    'dense and coords take lists of numbers too',
  )
  if (kind === 'coords') {
    const columns = 'one Int32Array for each dimension'
    expectArgument(Array.isArray(coords), `the coordinates of ${name}`, coords, columns)
    for (const [d, c] of (coords as readonly unknown[]).entries())
      expectInt32s(`the coordinates of ${name} in dimension ${d}`, c)
    checkEntries(shape, coords as readonly Int32Array[], values as ValueArray | null)
  }
  if (kind === 'dense') checkDense(shape, values as ValueArray)
  if (kind === 'stored')
    expectLevels(`the arrays of ${name}`, arrays, (axis) => `the arrays of axis ${axis} of ${name}`)
}

/** Rejects `{ sort, sum }` if arrays are used without a copy. Throws SptError `tensor/repair`. */
export function refuseRepair(what: string, tensor: Tensor): void {
  if (tensor.kind === 'stored' && tensor.repair)
    failAs('tensor/repair', {
      message: `${what} has indices up to ${tensor.repair.sort ? 'sort' : 'sum'}, and its arrays are used without a copy`,
      expected: 'arrays from stored(…) without { sort, sum }',
      hint: 'coords(shape, columns, values) takes entries in any order, and sums equal coordinates',
    })
}

/** The constructor call for an object with SciPy's field names, as a hint. */
function constructorOf(arrays: object): string {
  if ('indptr' in arrays && 'indices' in arrays)
    return 'CSR: stored([rows, cols], { j: { indptr, indices } }, data), where j is the sparse axis of the kernel'
  if ('row' in arrays && 'col' in arrays) return 'COO: coords([rows, cols], [row, col], data)'
  return 'make one with dense(shape, values), coords(shape, columns, values), stored(shape, arrays, values) or readTensor(path)'
}

/** Rejects a fill value other than 0 in calls without a buffer that declares it. Throws SptError `bind/fill`. */
export function refuseFill(what: string, tensor: Tensor): void {
  if (tensor.kind === 'coords' && tensor.fill !== undefined)
    failAs('bind/fill', {
      message: `${what} has the fill value ${tensor.fill}; this call only accepts tensors with fill value 0`,
      expected: 'a tensor whose other elements are 0',
      hint: `bind the tensor to a buffer declared with fill ${tensor.fill}`,
    })
}

/** Checks that `arrays` maps axes to objects of arrays. @throws SptError `api/argument`, `api/unknown-option` */
export function expectLevels(what: string, arrays: unknown, subjectOf: (axis: string) => string): void {
  expectArgument(isRecord(arrays), what, arrays, 'arrays by axis: { j: { indptr, indices } }')
  for (const [axis, own] of Object.entries(arrays as object)) {
    expectArgument(isRecord(own), subjectOf(axis), own, '{ indptr, indices }, or those that the axis has')
    const name = Object.keys(own as object).find((k) => !LEVEL_ARRAYS.some((array) => array === k))
    if (name !== undefined)
      failWith('api/unknown-option', `${subjectOf(axis)} cannot include ${name}`, {
        lookup: { name, candidates: LEVEL_ARRAYS },
        expected: `some of ${LEVEL_ARRAYS.join(', ')}`,
      })
  }
}

/** Checks for one coordinate per dimension and one value per entry (`null`: a pattern without values). Throws SptError `tensor/…`. */
export function checkEntries(
  shape: readonly number[],
  coords: readonly Int32Array[],
  values: ValueArray | null | undefined,
): void {
  if (shape.length === 0)
    failWith('tensor/coords', 'a tensor without dimensions has no coordinates', {
      expected: 'a single value',
      hint: 'give dense([], [value])',
    })
  const entries = coords[0]?.length
  if (coords.length !== shape.length || coords.some((c) => c.length !== entries))
    failAs('tensor/coords', {
      message: `${coords.length} coordinate arrays of ${coords.map((c) => c.length).join(', ')} entries for shape [${shape.join(', ')}]`,
      expected: `${shape.length} arrays of equal length`,
      hint: 'give an array for each dimension',
    })
  if (values && values.length !== entries)
    failWith('tensor/length', `${values.length} values for ${entries} entries`, {
      expected: 'a value for each entry',
    })
}

/** Throws SptError `tensor/coords` if a coordinate is outside of the shape. */
export function checkWithin(shape: readonly number[], coords: readonly Int32Array[]): void {
  coords.forEach((c, d) => {
    const extent = shape[d]!
    for (let e = 0; e < c.length; e++)
      if (c[e]! < 0 || c[e]! >= extent)
        failAs('tensor/coords', {
          message: `entry ${e} has the coordinate ${c[e]} in dimension ${d}, whose extent is ${extent}`,
          expected: extent === 0 ? 'no entries' : `coordinates from 0 to ${extent - 1}`,
          hint: 'give a larger shape, or subtract 1 where coordinates count from 1',
        })
  })
}

/** Throws SptError `tensor/length` unless there is one value per element of the shape. */
export function checkDense(shape: readonly number[], values: ValueArray): void {
  const size = shape.reduce((a, b) => a * b, 1)
  if (values.length === size) return
  failWith('tensor/length', `${values.length} values for shape [${shape.join(', ')}]`, {
    expected: `${size} values`,
    hint: 'give the values in row-major order',
  })
}

export const isTyped = (x: unknown): x is ValueArray => ArrayBuffer.isView(x) && !(x instanceof DataView)

/** Checks a subset of the sizes and scalars of a kernel, by name. Throws SptError `api/argument`, `bind/unknown-name`. */
export function checkSizes({ name: kernel, params }: Pick<Kernel1, 'name' | 'params'>, sizes: unknown): void {
  if (sizes === undefined) return
  expectArgument(isRecord(sizes), 'sizes', sizes, 'numbers by name')
  for (const [name, value] of Object.entries(sizes as Readonly<Record<string, unknown>>)) {
    const param = params.find((p) => p.name === name)
    if (!param)
      failWith('bind/unknown-name', `${kernel} has no size ${name}`, {
        lookup: { name, candidates: params.map((p) => p.name) },
        expected: params.map((p) => p.name).join(', ') || 'no sizes',
      })
    const isSize = Number.isSafeInteger(value) && (value as number) >= 0
    if (param.kind === 'size') expectArgument(isSize, `the size ${name}`, value, 'an integer from 0 on')
    else expectArgument(typeof value === 'number', `the size ${name}`, value, 'a number')
  }
}
