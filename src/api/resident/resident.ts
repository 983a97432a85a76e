/** Tensors on a device: upload, conversion to a kernel's formats on the device, and binding without a copy to the host. */

import { byName } from '../../ast/by-name.ts'
import { withSources } from '../../ast/diagnostics/diagnostic.ts'
import { startWork, type WorkOptions } from '../../ast/work.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import type { Instance } from '../../ir/formats/format.ts'
import { givenParams } from '../../run/bind/sizes/bound-sizes.ts'
import type { Device } from '../../runtime/device.ts'
import {
  conversionPlan as planOf,
  ResidentParts,
  type ResidentTensor,
  releaseConversions as release,
  uploadResident as uploadTo,
} from '../../storage/engines/device/index.ts'
import type { FormatOperands } from '../../storage/format-operands.ts'
import type { CoordTensor, StoredTensor, Tensor } from '../../storage/tensor.ts'
import { type Binding, createBinding } from '../built/binding.ts'
import { Built } from '../built/built.ts'
import {
  checkDevice,
  checkTensor,
  expectArgument,
  expectName,
  expectOptions,
  isRecord,
  refuseFill,
  refuseRepair,
} from '../inputs/argument-checks.ts'
import { expectRecord } from '../inputs/bound-inputs.ts'
import { type Inputs, namedInputs } from '../inputs/flat-inputs.ts'
import { boundResidents } from './resident-binding.ts'
import { checkedOperands, checkFormat, reformatOf } from './resident-check.ts'
import { checkResident } from './resident-structure.ts'

export { ResidentParts, type ResidentTensor } from '../../storage/engines/device/index.ts'

/** A conversion for repeated use: its kernels are compiled in the first run. */
export interface ConversionPlan {
  /** Converts a tensor. @throws SptError as `convert` */
  run(tensor: ResidentTensor, given: FormatOperands, options?: WorkOptions): Promise<ResidentParts>
}

/**
 * Validates and uploads a sparse tensor. A `stored` tensor needs its `axes`, whose extents are its shape.
 * @throws SptError `bind/coordinate-range`, `bind/coordinates`, `tensor/repair`, `device/out-of-memory`, and as `validateStored`
 */
export async function upload(
  device: Device,
  tensor: CoordTensor | StoredTensor,
  axes?: readonly StoredAxis[],
  options: WorkOptions = {},
): Promise<ResidentTensor> {
  checkDevice(device)
  const work = startWork('upload', options)
  const what = 'the tensor to upload'
  checkTensor(what, tensor, what)
  refuseFill(what, tensor)
  refuseRepair(what, tensor)
  const { kind } = tensor as Tensor
  expectArgument(kind !== 'dense', what, tensor, 'one that coords or stored makes')
  const isAxis = (a: unknown): boolean =>
    isRecord(a) && typeof a.name === 'string' && typeof a.kind === 'string'
  expectArgument(
    axes === undefined || (Array.isArray(axes) && axes.every(isAxis)),
    'the axes',
    axes,
    'a list of axes, as a format or the parts of a kernel have them',
  )
  work.begin('upload')
  return uploadTo(device, tensor, axes, work)
}

/** Conversion of tensors to a format or composition on a device, for repeated use. `fill`: value of slots without an entry. */
export function planConversion(device: Device, to: Instance, fill = 0): ConversionPlan {
  checkDevice(device)
  const isInstance =
    isRecord(to) && Array.isArray(to.parts) && Array.isArray(to.over) && to.tree !== undefined
  expectArgument(isInstance, 'the target format', to, 'the result of storageFormat(kernel, tensor)')
  expectArgument(typeof fill === 'number', 'the fill value', fill, 'a number')
  const plan = planOf(device, to, fill)
  return {
    run: async (tensor, given, options = {}) => {
      const work = startWork('run', options)
      checkResident(tensor)
      expectGiven(given, ['sizes', 'extents', 'lists', 'sets'])
      work.begin('convert', to.text)
      return plan.run(tensor, checkedOperands(to, tensor.shape, given), work)
    },
  }
}

/**
 * Converts a resident tensor to a format or composition on its device. The tensor is unchanged.
 * @throws SptError `format/overlap`, `format/leak`, `format/not-inverse`, `format/map-range`, `format/map-overflow`, `bind/width`,
 * `format/claim`, `bind/shape`, `bind/size-mismatch`, `convert/too-large`, `device/freed`, `device/out-of-memory`; `bind/…` where a list or set does
 * not fit
 */
export const convert = async (
  device: Device,
  tensor: ResidentTensor,
  to: Instance,
  given: FormatOperands,
  fill = 0,
  options?: WorkOptions,
): Promise<ResidentParts> => planConversion(device, to, fill).run(tensor, given, options)

/** Checks the maps of arguments. `all`: names that must be present. */
function expectGiven(given: Partial<FormatOperands>, all: readonly (keyof FormatOperands)[] = []): void {
  expectArgument(isRecord(given), 'sizes, lists and sets', given, '{ sizes, extents, lists, sets }')
  for (const [what, x] of Object.entries({ ...Object.fromEntries(all.map((k) => [k])), ...given }))
    expectArgument(
      x instanceof Map || (x === undefined && all.length === 0),
      `the ${what}`,
      x,
      'a Map by name',
      isRecord(x) ? 'new Map(Object.entries(…)) makes one of an object' : undefined,
    )
}

/** Frees kernels and spare memory that conversions keep on a device for reuse. */
export async function releaseConversions(device: Device): Promise<void> {
  checkDevice(device)
  await release(device)
}

function expectKernel(kernel: Built): asserts kernel is Built {
  expectArgument(kernel instanceof Built, 'the kernel', kernel, 'what kernel.build(device) gives')
}

/**
 * Format or composition in which a compiled kernel stores a tensor: the target `to` of a conversion.
 * @throws SptError `convert/no-format` if the tensor is stored as declared, `bind/unknown-name`
 */
export function storageFormat(kernel: Built, tensor: string): Instance {
  expectKernel(kernel)
  expectName('a tensor', tensor)
  return reformatOf(kernel.compilation.kernel, tensor).reformat.instance
}

/**
 * Converts a resident tensor to the format in which a compiled kernel stores it. Sizes that are extents of the tensor
 * follow from its shape; `given` has other sizes, and lists and sets, by name.
 * @throws SptError `convert/no-format`, `bind/unknown-name`, `bind/unknown-size`, `bind/size-range`, and as `convert`
 */
export async function convertForKernel(
  kernel: Built,
  name: string,
  tensor: ResidentTensor,
  given: Partial<Pick<FormatOperands, 'sizes' | 'lists' | 'sets'>> = {},
  options?: WorkOptions,
): Promise<ResidentParts> {
  expectOptions('convertForKernel', given, ['sizes', 'lists', 'sets'])
  expectGiven(given)
  const to = storageFormat(kernel, name)
  checkResident(tensor)
  // Formats may have sizes that the unscheduled kernel does not have.
  const { source, kernel: stored } = kernel.compilation
  const fill = source.buffers.find((b) => b.name === name)?.fill ?? 0
  return withSources(kernel, async () => {
    const sizes = givenParams(stored, given.sizes ?? [])
    const { lists = new Map(), sets = new Map() } = given
    return convert(kernel.device, tensor, to, { sizes, extents: new Map(), lists, sets }, fill, options)
  })
}

/**
 * Binds tensors that are resident in the kernel's formats, and other inputs from the host: `bindResident(kernel, { A: parts, B, d: 32 })`.
 * Resident tensors are used in place and must outlive the binding, which otherwise fails with `device/freed`. On devices with few
 * bindings (WebGPU), packed arrays (`lower/launches/buffer-packing.ts`) are copied through the host.
 * Calls that need coordinates of a resident tensor (`get` of an output with its structure, `verify`, `explain`) download it each time;
 * zeros in its blocks count as padding. `executable.values` reads values in storage order without a download of coordinates. `set` of a
 * resident tensor and `formats` are rejected (`run/resident`).
 * @throws SptError `convert/other-format`, `convert/dtype`, `convert/shared` (a tensor with the same structure has different coordinates,
 * or is on the host), `device/freed`, and as `Built.bind`
 */
export async function bindResident(
  compiled: Built,
  inputs: Readonly<Record<string, Inputs[string] | ResidentParts>>,
  options: WorkOptions = {},
): Promise<Binding> {
  expectKernel(compiled)
  const work = startWork('bindResident', options)
  expectRecord(inputs)
  const [resident, others] = [byName<ResidentParts>(), byName<Inputs[string]>()]
  for (const [name, value] of Object.entries(inputs)) {
    const isParts = value instanceof ResidentParts
    const expected = `the result of convertForKernel(kernel, '${name}', …)`
    expectArgument(
      isParts || !isRecord(value) || !('queue' in value),
      `resident tensor ${name}`,
      value,
      expected,
    )
    if (isParts) resident[name] = value
    else others[name] = value
  }
  if (Object.keys(resident).length === 0) return compiled.bind(others, options)
  const { kernel } = compiled.compilation
  for (const [name, tensor] of Object.entries(resident))
    checkFormat(kernel, compiled.compilation.source, name, tensor)
  const { code: variant } = await compiled.choose(others, { resident, ...options })
  return withSources(variant, async () => {
    const given = namedInputs('bindResident', others, {})
    work.begin('bind', variant.name)
    const { bound, ...there } = await work.wait(boundResidents(variant.compilation.kernel, resident, given))
    return createBinding(variant, bound, null, there, work)
  })
}
