/** Resident tensors: their check as arguments, and their structures on the host. */
import type { LevelArray } from '../../ast/nodes/axis-kinds.ts'
import { arraysOfLevel } from '../../columns/stored-level.ts'
import { getOrAddPromise } from '../../ir/memoize.ts'
import type { Column, ResidentParts, ResidentTensor } from '../../storage/engines/device/index.ts'
import { checkNotFreed } from '../../storage/engines/device/resident-tensors.ts'
import { partsToCoords } from '../../storage/entries/stored-parts.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { expectArgument, isRecord } from '../inputs/argument-checks.ts'

/** Throws SptError `api/argument` unless the argument is a resident tensor, and `device/freed` if it has been freed. */
export function checkResident(tensor: ResidentTensor, what = 'a resident tensor'): void {
  const holds = isRecord(tensor) && Array.isArray(tensor.shape) && isRecord(tensor.queue)
  expectArgument(holds, what, tensor, 'the result of resident or of a conversion')
  checkNotFreed(tensor)
}

/** Downloaded structures, once per tensor. */
const known = new WeakMap<ResidentTensor, Promise<Tensor>>()

/** Coordinates or index arrays without values; for a tensor in a format, the coordinates of its parts. */
export function residentStructure(t: ResidentTensor): Promise<Tensor> {
  return getOrAddPromise(known, t, () =>
    t.kind === 'coords' ? coordinates(t) : t.kind === 'stored' ? arrays(t) : held(t),
  )
}

const download = async (t: ResidentTensor, c: Column): Promise<Int32Array> =>
  (await t.queue.download(c)) as Int32Array

async function coordinates(t: Extract<ResidentTensor, { kind: 'coords' }>): Promise<Tensor> {
  const { shape, dtype } = t
  const coords: Int32Array[] = []
  for (const c of t.coords) coords.push(await download(t, c))
  return { kind: 'coords', shape, coords, values: null, dtype }
}

async function arrays(t: Extract<ResidentTensor, { kind: 'stored' }>): Promise<Tensor> {
  const { shape, dtype } = t
  const out: Record<string, { [A in LevelArray]?: Int32Array }> = {}
  for (const [axis, level] of t.levels) {
    out[axis] = {}
    for (const [array, column] of arraysOfLevel(level)) out[axis][array] = await download(t, column)
  }
  return { kind: 'stored', shape, arrays: out, values: null, dtype }
}

async function held(t: ResidentParts): Promise<Tensor> {
  return { ...partsToCoords(await t.download()), values: null }
}
