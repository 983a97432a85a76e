/** Binding of tensors that are resident in a kernel's formats, and of other inputs from the host. */
import { byName } from '../../ast/by-name.ts'
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { arraysOfLevel } from '../../columns/stored-level.ts'
import { arrayName } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Bound, bindInputs } from '../../run/bind/index.ts'
import type { Residents } from '../../run/execution/external-memory.ts'
import type { DeviceBuffer } from '../../runtime/device.ts'
import type { DevicePart, ResidentParts } from '../../storage/engines/device/index.ts'
import type { CoordTensor, Tensor } from '../../storage/tensor.ts'
import { newValues } from '../../storage/values.ts'
import { valuesIn } from '../inputs/bound-inputs.ts'
import type { Bindable } from '../inputs/tensors.ts'
import {
  agreedLevels,
  checkAgree,
  checkSameLists,
  checkShared,
  reformatOf,
  sizesWith,
} from './resident-check.ts'
import { type PlacedPart, residentsOf } from './resident-entries.ts'

/** Tensors and sizes in addition to the resident ones, as for `CompiledKernel.prepare`. */
export interface ResidentInputs {
  readonly tensors?: Readonly<Record<string, Bindable>>
  readonly params?: Readonly<Record<string, number>>
}

/**
 * Returns the bound data and the device memory for an executable. `tensors`: resident tensors by name, in the kernel's formats. Throws
 * SptError `convert/shared`, `convert/other-format`, and like `bindInputs`.
 */
export async function boundResidents(
  kernel: Kernel1,
  tensors: Readonly<Record<string, ResidentParts>>,
  inputs: ResidentInputs,
): Promise<{ readonly bound: Bound; readonly resident: Residents }> {
  const buffers = new Map<string, DeviceBuffer>()
  const placed: PlacedPart[] = []
  const empty = byName<Tensor>()
  for (const [name, tensor] of Object.entries(tensors)) {
    empty[name] = emptyTensor(tensor)
    reformatOf(kernel, name).parts.forEach((buffer, k) => {
      const part = tensor.parts[k]
      invariant(part, `${name} has no part ${k}`)
      placed.push({ tensor: name, buffer, part })
      buffers.set(buffer, part.values.memory)
      for (const [array, memory] of arraysOf(part)) buffers.set(array, memory)
    })
  }
  const levels = agreedLevels(placed)
  // Arrays without a shape get sizes from the shapes of resident tensors.
  const { tensors: all, params } = valuesIn(kernel, {
    params: sizesWith(kernel, tensors, inputs.params ?? {}),
    tensors: { ...inputs.tensors, ...empty },
  })
  const given = { tensors: all, params }
  checkShared(kernel, Object.keys(tensors), all)
  const bound = bindInputs(kernel, given, { elsewhere: { tensors: new Set(Object.keys(tensors)), levels } })
  checkSameLists(tensors, all)
  await checkAgree(tensors, placed)
  return { bound, resident: residentsOf(kernel, tensors, placed, buffers, given) }
}

/** A placeholder with the shape and type of the resident tensor. */
const emptyTensor = (t: ResidentParts): CoordTensor => ({
  kind: 'coords',
  shape: t.shape,
  coords: t.shape.map(() => new Int32Array(0)),
  values: newValues(t.dtype, 0),
  dtype: t.dtype,
})

/** Device memory of index arrays and tables, by buffer name. */
function arraysOf(part: DevicePart): [name: string, memory: DeviceBuffer][] {
  const out: [string, DeviceBuffer][] = []
  for (const [axis, level] of part.levels) {
    for (const [array, column] of arraysOfLevel(level)) out.push([arrayName(axis, array), column.memory])
  }
  for (const [name, table] of part.tables) out.push([name, table.memory])
  return out
}
