/** Structure of device-resident tensors, downloaded for predictions before a schedule is selected. */

import type { LevelArray } from '../../ast/nodes/axis-kinds.ts'
import { arraysOfLevel } from '../../columns/stored-level.ts'
import type { Column, ResidentParts, ResidentTensor } from '../../storage/engines/device/index.ts'
import { partsToCoords } from '../../storage/entries/stored-parts.ts'
import type { Tensor } from '../../storage/tensor.ts'

const known = new WeakMap<ResidentTensor, Promise<Tensor>>()

/** Coordinates or index arrays without values; for a tensor in a format, the coordinates of its parts. */
export function residentStructure(t: ResidentTensor): Promise<Tensor> {
  const before = known.get(t)
  if (before) return before
  const made = t.kind === 'coords' ? coordinates(t) : t.kind === 'stored' ? arrays(t) : held(t)
  known.set(t, made)
  // Failures are not cached, because a later download may succeed.
  made.catch(() => known.delete(t))
  return made
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
