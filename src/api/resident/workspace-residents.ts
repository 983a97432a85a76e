/** Inputs of a workspace that are converted on its device, which is much faster for large tensors. */
import { byName } from '../../ast/by-name.ts'
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { expectFields, FLAG } from '../../ast/diagnostics/value-kinds.ts'
import { isNonunique } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { bindPlan, callerTensor } from '../../run/bind/bind-plan.ts'
import type { Bound, Inputs } from '../../run/bind/index.ts'
import { isAlone } from '../../run/bind/results/gather-results.ts'
import { bindParams } from '../../run/bind/sizes/bound-sizes.ts'
import type { Residents } from '../../run/execution/external-memory.ts'
import type { Device } from '../../runtime/device.ts'
import type { ResidentParts, ResidentTensor } from '../../storage/engines/device/index.ts'
import { conversionPlan, releaseSpare, residentStorage } from '../../storage/engines/device/index.ts'
import { isExact } from '../../storage/entries/entry-enumeration.ts'
import { shapeOf } from '../../storage/storage.ts'
import { boundResidents } from './resident-binding.ts'
import { reformatOf } from './resident-check.ts'

/** The bound data of a kernel whose formats were built on the device. */
export interface MadeThere {
  readonly bound: Bound
  readonly resident: Residents
  /** Marks the data as no longer used. */
  readonly release: () => void
}

/** Tensors in the formats of some kernels, and the number of bindings that use them. */
interface Converted {
  readonly tensors: Readonly<Record<string, ResidentParts>>
  /** Bound data, computed on demand; shared by all kernels with the same formats. */
  bound?: Pick<MadeThere, 'bound' | 'resident'>
  users: number
}

/** A kernel of the workspace with its inputs. */
interface ConversionRequest {
  /** The unscheduled kernel with its inputs, including generated random ones. */
  readonly whole: { readonly bound: Bound; readonly inputs: Inputs }
  readonly kernel: Kernel1
  /** Key that is equal for kernels with the same formats. */
  readonly key: string
}

export class WorkspaceResidents {
  readonly #device: Device
  /** Minimum number of entries for conversion on the device. */
  readonly #least: number
  readonly #uploaded = new Map<string, ResidentTensor>()
  /** Converted tensors by format; `null` if they are converted on the host. */
  readonly #converted = new Map<string, Converted | null>()

  constructor(device: Device, least: number) {
    this.#device = device
    this.#least = least
  }

  /**
   * Returns data converted on the device; `null` if the host must convert, for example for lack of device memory. Throws SptError as
   * `convert`, `bindInputs`.
   */
  async of(request: ConversionRequest): Promise<MadeThere | null> {
    if (request.key === '' || this.#converted.get(request.key) === null) return null
    try {
      const converted = await this.#convertedOf(request)
      if (converted === null) return this.#markForHost(request.key)
      return await this.#bound(request, converted)
    } catch (e) {
      if (!(e instanceof SptError) || !isForHost(e)) throw e
      this.free()
      return this.#markForHost(request.key)
    }
  }

  #markForHost(key: string): null {
    this.#converted.set(key, null)
    return null
  }

  async #bound({ kernel, whole: { inputs } }: ConversionRequest, converted: Converted): Promise<MadeThere> {
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

  async #convertedOf({ kernel, whole, key }: ConversionRequest): Promise<Converted | null> {
    const known = this.#converted.get(key)
    if (known) return known
    const names = namesOf(kernel)
    if (!names?.every((name) => isFit(kernel, whole.bound, name, this.#least))) return null
    // Frees formats that are not in use, because rebuilding them is cheap.
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

  /** Frees formats that no binding uses. */
  #drop(): void {
    for (const [key, converted] of this.#converted) {
      if (converted === null || converted.users > 0) continue
      for (const parts of Object.values(converted.tensors)) parts.free()
      this.#converted.delete(key)
    }
  }

  /** Frees all memory that no binding uses. */
  free(): void {
    this.#drop()
    for (const t of this.#uploaded.values()) t.free()
    this.#uploaded.clear()
    releaseSpare(this.#device)
  }
}

/** Errors of devices with too little memory; `convert/…` errors also lead to conversion on the host. */
const NO_ROOM = ['device/out-of-memory', 'device/buffer-too-large']
const isForHost = ({ diagnostics: [d] }: SptError): boolean =>
  NO_ROOM.includes(d!.code) || d!.code.startsWith('convert/')

/** Names of the tensors that a kernel stores in formats; `null` if a format takes lists or sets. */
function namesOf(kernel: Kernel1): readonly string[] | null {
  if (bindPlan(kernel).operands.size > 0) return null
  return [...new Set(kernel.reformats.flatMap((r) => r.buffers.map((b) => b.name)))]
}

/**
 * Returns true if the device can convert a tensor like the host: one `as`, an input whose arrays contain only its entries, at least
 * `least` of them, and outputs that do not depend on its structure.
 */
function isFit(kernel: Kernel1, whole: Bound, name: string, least: number): boolean {
  const { kernel: source, storages, arrays } = whole
  const storage = storages.get(name)
  const tensor = callerTensor(source, name)
  const outputs = source.buffers.filter((b) => b.role === 'out' || b.role === 'inout')
  if (!storage || !tensor || tensor.first.role !== 'in' || (arrays.get(name)?.length ?? 0) < least)
    return false
  return (
    kernel.reformats.filter((r) => r.buffers.some((b) => b.name === name)).length === 1 &&
    isExact(storage.trees) &&
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

export interface WorkspaceOptions {
  /** Seed of random values for inputs that are not bound. */
  readonly seed?: number | undefined
  /**
   * Outputs and temporaries of equal size share memory, so a run overwrites the results of another kernel. For measurements.
   * Default false.
   */
  readonly shareOutputs?: boolean
  /** Bytes of converted tensors that stay on the host, least recently used first out; default 1 GiB. */
  readonly hostCacheBytes?: number
  /** Rejects formats that store far more than the tensor (`bind/too-many-elements`), for searches; default false. */
  readonly limitExpansion?: boolean
  /**
   * Number of elements from which a tensor is converted on the device; default 2²², on the CPU never. Smaller tensors
   * convert faster on the host than the conversion kernels compile.
   */
  readonly deviceConversionThreshold?: number
}

const CONVERSION_THRESHOLD = 2 ** 22

const isSize = (x: unknown): boolean => typeof x === 'number' && x >= 0

/** Returns the options with defaults. Throws SptError `api/argument`, `api/unknown-option`. */
export function checkedOptions(device: Device, options: WorkspaceOptions) {
  expectFields('Workspace', options, {
    seed: { holds: Number.isSafeInteger, expected: 'an integer' },
    shareOutputs: FLAG,
    hostCacheBytes: { holds: isSize, expected: 'bytes, 0 or more' },
    limitExpansion: FLAG,
    deviceConversionThreshold: { holds: isSize, expected: 'a number of elements, 0 or more' },
  })
  const elements = device.kind === 'cpu' ? Number.POSITIVE_INFINITY : CONVERSION_THRESHOLD
  const {
    shareOutputs = false,
    hostCacheBytes = 2 ** 30,
    limitExpansion = false,
    deviceConversionThreshold = elements,
  } = options
  return { shareOutputs, hostCacheBytes, limitExpansion, deviceConversionThreshold }
}
