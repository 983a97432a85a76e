/** Fingerprint of data by the properties that times depend on: shapes, types and coordinates, without values. */

import { createHash, type Hash } from 'node:crypto'
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import type { Tensor } from '../../storage/tensor.ts'

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
