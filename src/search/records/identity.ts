/** Names of studies, trials and devices: hashes of all that they depend on. */

import { createHash, type Hash } from 'node:crypto'
import { isDeclared } from '../../api/inputs/bound-inputs.ts'
import { randomInputs } from '../../api/inputs/random-inputs.ts'
import type { Kernel, TraceStep } from '../../api/kernels/kernel.ts'
import { expectArgument, isRecord } from '../../ast/diagnostics/expect-argument.ts'
import {
  expectFields,
  expectValue,
  INTEGER,
  NUMBER,
  oneOf,
  recordOf,
  TEXT,
} from '../../ast/diagnostics/value-kinds.ts'
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { BUILD } from '../../cache/build.ts'
import { cacheKey } from '../../cache/disk-cache.ts'
import { chipOf } from '../../io/package/calibrations.ts'
import { version } from '../../io/package/package.ts'
import type { Inputs } from '../../run/bind/types.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { KernelSpace, Point } from '../types.ts'
import type { DeviceIdentity, Study, StudyKey, TunedTensor } from './types.ts'

/** Characters of a hash: collisions of 10⁹ trials have a probability of 10⁻³⁰. */
const HASH_CHARS = 40

export const hashOf = (...parts: readonly string[]): string => cacheKey(parts).slice(0, HASH_CHARS)

/** Names in order: neither the order of decisions nor that of sizes makes another key. */
const sortedJson = (values: Readonly<Record<string, number | string>>): string =>
  JSON.stringify(Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1)))

/** This compiler: the package's version, and the build where there is one. */
export const compilerVersion = (): string =>
  BUILD === '' ? `${version()} from sources` : `${version()} ${BUILD.slice(0, 12)}`

export function deviceIdentity(device: Device): DeviceIdentity {
  const { name, driver } = chipOf(device)
  return { kind: device.kind, name, driver }
}

/** Identity of a space in studies: its name, and a hash of its source if it has one. */
export const spaceKey = ({ name, text }: Pick<KernelSpace<Kernel>, 'name' | 'text'>): string =>
  text !== undefined ? `${name} ${hashOf(text).slice(0, SPACE_HASH_CHARS)}` : name

/** Enough for spaces of one name. */
const SPACE_HASH_CHARS = 12

/** A kernel before any step, by its text at Stage I. */
export const kernelHash = (kernel: Kernel): string => hashOf(kernel.show(1))

export const studyId = (key: StudyKey): string =>
  hashOf(
    key.kernel,
    key.space,
    key.device.kind,
    key.device.name,
    key.device.driver,
    key.compiler,
    key.fingerprint,
    sortedJson(key.sizes),
  )

export const trialId = (study: string, point: Point): string => hashOf(study, sortedJson(point))

export const traceHash = (trace: readonly TraceStep[]): string => hashOf(JSON.stringify(trace))

/** Input tensors of a kernel, including those generated from a seed. @throws SptError as `bindInputs` */
const tensorsOf = (kernel: Kernel, inputs: Inputs): Readonly<Record<string, Tensor>> =>
  (inputs.seed === undefined ? inputs : randomInputs(kernel.source, inputs, kernel.allFormatInputs))
    .tensors ?? {}

/** Fingerprint of a kernel's data. @throws SptError as `bindInputs` */
export const dataFingerprint = (kernel: Kernel, inputs: Inputs): string =>
  fingerprintOfBound(kernel, tensorsOf(kernel, inputs))

/** Lists that formats take are hashed by value, because times depend on their values. */
const fingerprintOfBound = (kernel: Kernel, tensors: Readonly<Record<string, Tensor>>): string =>
  fingerprintTensors(
    Object.fromEntries(
      Object.entries(tensors).map(([name, t]) => {
        const isList =
          t.kind === 'dense' &&
          t.values instanceof Int32Array &&
          !isDeclared(kernel.source, name, kernel.allFormatInputs)
        return [name, isList ? { ...t, kind: 'coords', coords: [t.values as Int32Array] } : t]
      }),
    ),
  )

/** Shapes and types of tensors by name, for readers of records. */
export const tunedTensors = (tensors: Readonly<Record<string, Tensor>>): readonly TunedTensor[] =>
  Object.entries(tensors).map(([name, t]) => ({ name, shape: t.shape, dtype: t.dtype, stored: storedOf(t) }))

/** Elements that it stores; `null` of a dense one. */
export function storedOf(t: Tensor): number | null {
  if (t.kind === 'dense') return null
  return t.kind === 'coords' ? (t.coords[0]?.length ?? 0) : (t.values?.length ?? 0)
}

const isDevice = (d: unknown): boolean =>
  isRecord(d) &&
  oneOf(DEVICE_KINDS).holds(d.kind) &&
  typeof d.name === 'string' &&
  ('limits' in d || typeof d.driver === 'string')

export interface StudyOptions {
  readonly space?: string
  readonly strategy?: string
  readonly seed?: number
  /** Name of the data in lists of studies. */
  readonly data?: string
}

/** The study of a kernel (without steps) on data and on a device, by this compiler. */
export function createStudy(
  kernel: Kernel,
  inputs: Inputs,
  device: Device | DeviceIdentity,
  options: StudyOptions = {},
): Study {
  expectFields('createStudy', options, { space: TEXT, strategy: TEXT, seed: INTEGER, data: TEXT })
  expectArgument(isRecord(inputs), 'what is bound', inputs, '{ tensors, params, seed }')
  expectArgument(isDevice(device), 'the device', device, 'a device, or { kind, name, driver }')
  const tensors = tensorsOf(kernel, inputs)
  const key: StudyKey = {
    kernel: kernelHash(kernel),
    space: options.space ?? '',
    device: 'limits' in device ? deviceIdentity(device) : device,
    compiler: compilerVersion(),
    fingerprint: fingerprintOfBound(kernel, tensors),
    sizes: inputs.params ?? {},
  }
  expectValue('sizes', key.sizes, recordOf(NUMBER, 'numbers by name'))
  const { strategy, seed, data: name } = options
  const data = { ...(name !== undefined && { name }), tensors: tunedTensors(tensors) }
  return { ...key, id: studyId(key), kernelName: kernel.name, strategy, seed, data, created: Date.now() }
}

// Fingerprint of data by the properties that times depend on: shapes, types and coordinates, without values.

/** Bytes that are hashed at once: OpenSSL takes no more than 2³¹. */
const CHUNK = 2 ** 26

/** Tensors are not changed once they are bound, and large ones are hashed once. */
const fingerprints = new WeakMap<Tensor, string>()

/** Fingerprint of tensors by name, in any order: 32 hexadecimal digits. It depends on the order of coordinates. */
export function fingerprintTensors(tensors: Readonly<Record<string, Tensor>>): string {
  const hash = createHash('sha256')
  for (const name of Object.keys(tensors).sort())
    hash.update(`${JSON.stringify(name)} ${tensorFingerprint(tensors[name]!)}\n`)
  return hash.digest('hex').slice(0, 32)
}

function tensorFingerprint(tensor: Tensor): string {
  const cached = fingerprints.get(tensor)
  if (cached !== undefined) return cached
  const hash = createHash('sha256')
  hash.update(`${tensor.kind} ${tensor.dtype} ${JSON.stringify(tensor.shape)}\n`)
  if (tensor.kind === 'coords') for (const column of tensor.coords) update(hash, column)
  if (tensor.kind === 'stored')
    for (const axis of Object.keys(tensor.arrays).sort())
      for (const array of LEVEL_ARRAYS) {
        const data = tensor.arrays[axis]![array]
        if (!data) continue
        hash.update(`${JSON.stringify(axis)} ${array}\n`)
        update(hash, data)
      }
  const fingerprint = hash.digest('hex').slice(0, 32)
  fingerprints.set(tensor, fingerprint)
  return fingerprint
}

function update(hash: Hash, data: Int32Array): void {
  hash.update(`${data.length}\n`)
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  for (let start = 0; start < bytes.length; start += CHUNK) hash.update(bytes.subarray(start, start + CHUNK))
}
