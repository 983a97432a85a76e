/** Inputs of a workspace that are brought into formats on its device: what is large is made there many times sooner. */

import { byName } from '../ast/by-name.ts'
import { SptError } from '../ast/diagnostic.ts'
import { isNonunique } from '../ir/axis.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { bindParams } from '../run/bind/bound-sizes.ts'
import { callerTensor, givenOf } from '../run/bind/caller-tensors.ts'
import { isAlone } from '../run/bind/gather-results.ts'
import type { Bound, Inputs } from '../run/bind/index.ts'
import type { Residents } from '../run/external-memory.ts'
import type { Device } from '../runtime/device.ts'
import {
  conversionPlan,
  type ResidentParts,
  type ResidentTensor,
  releaseSpare,
  residentStorage,
} from '../storage/engines/device/index.ts'
import { isExact } from '../storage/entry-enumeration.ts'
import { shapeOf } from '../storage/storage.ts'
import { boundResidents } from './resident-binding.ts'
import { reformatOf } from './resident-check.ts'

/** What a kernel is bound to where its formats are made on the device. */
export interface MadeThere {
  readonly bound: Bound
  readonly resident: Residents
  /** It is not used any more. */
  readonly release: () => void
}

/** Tensors in the formats of some kernels, and how many prepared kernels use them. */
interface Converted {
  readonly tensors: Readonly<Record<string, ResidentParts>>
  /** Once it was asked for: the same for all that store tensors alike. */
  bound?: Pick<MadeThere, 'bound' | 'resident'>
  users: number
}

/** A kernel of the workspace, and what is bound to it. */
interface Asked {
  /** As it was declared, with the inputs that are bound to it, none of them random any more. */
  readonly whole: { readonly bound: Bound; readonly inputs: Inputs }
  readonly kernel: Kernel1
  /** What is the same for kernels that store tensors alike. */
  readonly key: string
}

export class WorkspaceResidents {
  readonly #device: Device
  /** Entries of a tensor from which on it is brought into formats on the device. */
  readonly #least: number
  readonly #uploaded = new Map<string, ResidentTensor>()
  /** By format; `null`: made on the host. */
  readonly #converted = new Map<string, Converted | null>()

  constructor(device: Device, least: number) {
    this.#device = device
    this.#least = least
  }

  /** `null` where that is for the host, as it is where the device has no room. @throws SptError as `convert`, `bindInputs` */
  async of(asked: Asked): Promise<MadeThere | null> {
    if (asked.key === '' || this.#converted.get(asked.key) === null) return null
    try {
      const converted = await this.#convertedOf(asked)
      if (converted === null) return this.#refused(asked.key)
      return await this.#bound(asked, converted)
    } catch (e) {
      if (!(e instanceof SptError) || !isForHost(e)) throw e
      this.free()
      return this.#refused(asked.key)
    }
  }

  #refused(key: string): null {
    this.#converted.set(key, null)
    return null
  }

  async #bound({ kernel, whole: { inputs } }: Asked, converted: Converted): Promise<MadeThere> {
    const { tensors } = converted
    converted.users++
    let open = true
    const release = (): void => {
      if (open) converted.users--
      open = false
    }
    try {
      const others = Object.entries(inputs.tensors ?? {}).filter(([name]) => !Object.hasOwn(tensors, name))
      const own = { tensors: byName(others), ...(inputs.params && { params: inputs.params }) }
      converted.bound ??= await boundResidents(kernel, tensors, own)
      return { ...converted.bound, release }
    } catch (e) {
      release()
      throw e
    }
  }

  async #convertedOf({ kernel, whole, key }: Asked): Promise<Converted | null> {
    const known = this.#converted.get(key)
    if (known) return known
    const names = namesOf(kernel)
    if (!names?.every((name) => isFit(kernel, whole.bound, name, this.#least))) return null
    // Memory is for what is used now: making it again takes little.
    this.#drop()
    const { inputs } = whole
    const given = new Map(Object.entries(inputs.tensors ?? {}))
    const sizes = bindParams(kernel, given, new Map(Object.entries(inputs.params ?? {})))
    const made: [string, ResidentParts][] = []
    try {
      for (const name of names) made.push([name, await this.#convert(kernel, whole.bound, name, sizes)])
    } catch (e) {
      for (const [, parts] of made) parts.free()
      throw e
    } finally {
      releaseSpare(this.#device)
    }
    const converted = { tensors: byName(made), users: 0 }
    this.#converted.set(key, converted)
    return converted
  }

  async #convert(
    kernel: Kernel1,
    whole: Bound,
    name: string,
    sizes: ReadonlyMap<string, number>,
  ): Promise<ResidentParts> {
    const from = this.#uploaded.get(name) ?? (await uploaded(this.#device, whole, name))
    this.#uploaded.set(name, from)
    const { instance } = reformatOf(kernel, name).reformat
    const extents = new Map(instance.over.map((axis, k) => [axis.name, from.shape[k]!]))
    const fill = whole.kernel.buffers.find((b) => b.name === name)!.fill
    const given = { sizes, extents, lists: new Map(), sets: new Map() }
    return conversionPlan(this.#device, instance, fill).run(from, given)
  }

  /** Frees formats that nobody uses. */
  #drop(): void {
    for (const [key, converted] of this.#converted) {
      if (converted === null || converted.users > 0) continue
      for (const parts of Object.values(converted.tensors)) parts.free()
      this.#converted.delete(key)
    }
  }

  /** Frees what no prepared kernel uses. */
  free(): void {
    this.#drop()
    for (const t of this.#uploaded.values()) t.free()
    this.#uploaded.clear()
    releaseSpare(this.#device)
  }
}

/** What there is no room for on the device, or no way. */
const NO_ROOM = ['device/out-of-memory', 'device/buffer-too-large']
const isForHost = ({ diagnostics: [d] }: SptError): boolean =>
  NO_ROOM.includes(d!.code) || d!.code.startsWith('convert/')

/** The tensors that a kernel stores in formats; `null` where one of these takes more than the tensor and sizes. */
function namesOf(kernel: Kernel1): readonly string[] | null {
  if (givenOf(kernel).size > 0) return null
  return [...new Set(kernel.reformats.flatMap((r) => r.buffers.map((b) => b.name)))]
}

/**
 * Whether the device can make of a tensor what the host would: it is stored by one `as`, of arrays that hold nothing but
 * its entries, and results are read without it.
 */
function isFit(kernel: Kernel1, whole: Bound, name: string, least: number): boolean {
  const { kernel: source, storages, arrays } = whole
  const storage = storages.get(name)
  const tensor = callerTensor(source, name)
  const outputs = source.buffers.filter((b) => b.role === 'out' || b.role === 'inout')
  if (!storage || !tensor || tensor.first.role !== 'in' || (arrays.get(name)?.length ?? 0) < least)
    return false
  const trees = storage.trees.map((tree) => tree.map((a) => storage.levels.get(a)!))
  return (
    kernel.reformats.filter((r) => r.buffers.some((b) => b.name === name)).length === 1 &&
    isExact(trees) &&
    !storage.axes.some(isNonunique) &&
    outputs.every((b) => isAlone(kernel, b.name))
  )
}

function uploaded(
  device: Device,
  { kernel, storages, arrays }: Bound,
  name: string,
): Promise<ResidentTensor> {
  const storage = storages.get(name)!
  const shape = shapeOf(storage)
  const { dtype } = kernel.buffers.find((b) => b.name === name)!
  return residentStorage(device, storage, { shape, dtype, values: arrays.get(name)! })
}
