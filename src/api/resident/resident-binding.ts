/** Binding of tensors that are resident in a kernel's formats, and of other inputs from the host. */
import { byName } from '../../ast/by-name.ts'
import { failAs, invariant, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { arraysOfLevel } from '../../columns/stored-level.ts'
import { arrayName } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { additionalArrays } from '../../ir/formats/format-tables.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { type Bound, bindInputs, type Inputs } from '../../run/bind/index.ts'
import type { Residents } from '../../run/execution/external-memory.ts'
import type { DeviceBuffer } from '../../runtime/device.ts'
import type { DevicePart, ResidentParts } from '../../storage/engines/device/index.ts'
import { checkNotFreed } from '../../storage/engines/device/index.ts'
import type { StoredPart } from '../../storage/entries/stored-parts.ts'
import { arraysOf, shapeOf } from '../../storage/storage.ts'
import type { CoordTensor, StoredTensor, Tensor, ValueArray } from '../../storage/tensor.ts'
import { listTensor, newValues } from '../../storage/tensor.ts'
import { type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import {
  agreedLevels,
  checkAgree,
  checkSameLists,
  checkShared,
  reformatOf,
  sizesWith,
} from './resident-check.ts'

/**
 * Returns the bound data and the device memory for an executable. `tensors`: resident tensors by name, in the kernel's formats. Throws
 * SptError `convert/shared`, `convert/other-format`, and like `bindInputs`.
 */
export async function boundResidents(
  kernel: Kernel1,
  tensors: Readonly<Record<string, ResidentParts>>,
  inputs: Pick<RunInputs, 'tensors' | 'params'>,
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
      for (const [array, memory] of devicePartArrays(part)) buffers.set(array, memory)
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
function devicePartArrays(part: DevicePart): [name: string, memory: DeviceBuffer][] {
  const out: [string, DeviceBuffer][] = []
  for (const [axis, level] of part.storage.levels) {
    for (const [array, column] of arraysOfLevel(level)) out.push([arrayName(axis, array), column.memory])
  }
  for (const [name, table] of part.tables) out.push([name, table.memory])
  return out
}

// Host data of a kernel with resident tensors, including their current entries: for `read`, `verify` and
// `explain`.

/** A part of a resident tensor, and the kernel's buffer that stores it. */
interface PlacedPart {
  readonly tensor: string
  readonly buffer: string
  readonly part: DevicePart
}

/**
 * Downloads the tensors, and binds their arrays as ready-made parts. They are not converted again, so positions are those on the device,
 * even if values have changed since.
 */
function residentsOf(
  kernel: Kernel1,
  tensors: Readonly<Record<string, ResidentParts>>,
  placed: readonly PlacedPart[],
  buffers: ReadonlyMap<string, DeviceBuffer>,
  inputs: Inputs,
): Residents {
  const names = Object.keys(tensors)
  const whole: Residents['whole'] = async (bound, values) => {
    const others = Object.entries(inputs.tensors ?? {}).filter(([name]) => !names.includes(name))
    const bindings = byName(others)
    for (const [name, tensor] of Object.entries(tensors)) {
      const mine = placed.filter((p) => p.tensor === name)
      const { parts } = await tensor.download()
      for (const [k, part] of parts.entries()) {
        const { buffer } = mine[k]!
        // Kernels update `inout` tensors in place, or in copies inside arenas.
        bindings[buffer] = storedOf(part, (await values(buffer)) ?? part.values, tensor.dtype)
        const { instance } = part.part
        for (const { name, isGiven } of additionalArrays(instance)) {
          const own = isGiven ? undefined : part.tables.get(name)
          if (own) bindings[name] = listTensor(own)
        }
      }
    }
    // Includes sizes measured on the device.
    const params = byName(kernel.params.map(({ name }) => [name, bound.params.get(name)!]))
    try {
      return withWritten(bindInputs(kernel, { tensors: bindings, params }), bound)
    } catch (error) {
      if (!(error instanceof SptError)) throw error
      return notKnown(names, error)
    }
  }
  /** Returns the host data with the values written since binding, for tensors from the host. */
  const withWritten = (all: Bound, now: Bound): Bound => {
    const own = (name: string) => now.sources.find((s) => s.name === name)
    return {
      ...all,
      arrays: new Map([...all.arrays, ...[...now.arrays].filter(([name]) => !buffers.has(name))]),
      dense: now.dense,
      sources: all.sources.map((s) => (names.includes(s.name) ? s : (own(s.name) ?? s))),
    }
  }
  const check = (): void => {
    for (const t of Object.values(tensors)) checkNotFreed(t)
  }
  return { tensors: names, buffers, whole, check }
}

const storedOf = ({ storage }: StoredPart, values: ValueArray, dtype: Dtype): StoredTensor => ({
  kind: 'stored',
  shape: shapeOf(storage),
  arrays: arraysOf(storage.levels),
  values,
  dtype,
})

/** Throws `run/resident`; typically for an output over axes of a resident tensor and others. */
function notKnown(names: readonly string[], { diagnostics: [why] }: SptError): never {
  return failAs('run/resident', {
    message: `coordinates need ${names.join(' and ')} as the device stores ${names.length > 1 ? 'them' : 'it'}, and binding failed: ${why?.message}`,
    expected: 'outputs over only the axes of a resident tensor, or over only dense axes',
    hint: 'read the values in storage order (executable.values), or bind the tensor from the host',
  })
}
