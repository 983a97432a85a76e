/** Binding of tensors that are on a device in a kernel's formats, and of the rest from the host. */
import { byName } from '../ast/by-name.ts'
import { fail, invariant } from '../ast/diagnostic.ts'
import { countOf, hasIndptr, indicesOf, indptrOf, maskOf } from '../ir/axis.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { type Bound, bindInputs } from '../run/bind/index.ts'
import type { Residents } from '../run/given-memory.ts'
import type { DeviceBuffer } from '../runtime/device.ts'
import type { DevicePart, ResidentParts } from '../storage/engines/device/index.ts'
import { type Level, makeStorage, type Storage } from '../storage/storage.ts'
import type { CoordTensor, Tensor } from '../storage/tensor.ts'
import { newValues } from '../storage/values.ts'
import { valuesIn } from './bound-inputs.ts'
import { checkAgree, checkSameLists, checkShared } from './resident-check.ts'
import { type PlacedPart, residentsOf } from './resident-entries.ts'
import type { Bindable } from './tensors.ts'

/** Tensors and sizes beside the resident ones; as for `CompiledKernel.prepare`. */
export interface ResidentInputs {
  readonly tensors?: Readonly<Record<string, Bindable>>
  readonly params?: Readonly<Record<string, number>>
}

/** The one `as` that a kernel stores a tensor by. @throws SptError `convert/no-format` */
export function reformatOf(kernel: Kernel1, tensor: string) {
  for (const reformat of kernel.reformats) {
    const buffer = reformat.buffers.find((b) => b.name === tensor)
    const there = buffer?.parts.every((p) => kernel.buffers.some((b) => b.name === p))
    if (buffer && there) return { reformat, parts: buffer.parts }
  }
  return fail({
    code: 'convert/no-format',
    message: `${kernel.name} stores ${tensor} as it is declared, or in one format after the other`,
    expected: 'a tensor with one `as` in the schedule',
    hint: `a schedule with \`${tensor} as csr\` takes it from the device; as declared it is bound from the host (prepare)`,
  })
}

/**
 * What is bound, and the residents that an executable is given: tensors by name, in the kernel's formats.
 * @throws SptError `convert/shared`, `convert/other-format`, and as `bindInputs`
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
  // Bare values have the shapes that the resident ones give.
  const { tensors: all, params } = valuesIn(kernel, { ...inputs, tensors: { ...inputs.tensors, ...empty } })
  const given = { tensors: all, params }
  const bound = bindInputs(kernel, given)
  checkSameLists(tensors, all)
  const within = withParts(
    bound,
    placed.map((p) => p.part),
  )
  checkShared(kernel, Object.keys(tensors), bound)
  await checkAgree(tensors, placed)
  return { bound: within, resident: residentsOf(kernel, tensors, placed, buffers, given) }
}

/** Its shape, so that sizes are known. */
const emptyTensor = (t: ResidentParts): CoordTensor => ({
  kind: 'coords',
  shape: t.shape,
  coords: t.shape.map(() => new Int32Array(0)),
  values: newValues(t.dtype, 0),
  dtype: t.dtype,
})

/** Index arrays and tables by the names of their buffers. */
function arraysOf(part: DevicePart): [name: string, memory: DeviceBuffer][] {
  const out: [string, DeviceBuffer][] = []
  for (const [axis, level] of part.levels) {
    if (level.indptr) out.push([indptrOf(axis), level.indptr.memory])
    if (level.indices) out.push([indicesOf(axis), level.indices.memory])
    if (level.mask) out.push([maskOf(axis), level.mask.memory])
  }
  for (const [name, table] of part.tables) out.push([name, table.memory])
  return out
}

/** What was bound without the parts' entries, with the sizes that they have. */
function withParts(bound: Bound, parts: readonly DevicePart[]): Bound {
  const params = new Map(bound.params)
  const levels = new Map<string, Level>()
  for (const part of parts) {
    for (const [name, value] of part.measured) params.set(name, value)
    for (const [name, level] of part.levels) {
      if (hasIndptr(level.axis)) params.set(countOf(name), level.positions)
      levels.set(name, { ...level, indptr: null, indices: null, mask: null })
    }
  }
  const storages = new Map<string, Storage>()
  for (const [name, s] of bound.storages)
    storages.set(
      name,
      s.axes.some((a) => levels.has(a.name))
        ? makeStorage(
            s.axes,
            s.trees.map((t) => t.map((a) => s.axes.find((x) => x.name === a)!)),
            new Map([...s.levels].map(([a, l]) => [a, levels.get(a) ?? l])),
            null,
          )
        : s,
    )
  // What is reported of formats is found on the host.
  return { ...bound, params, storages, report: [] }
}
