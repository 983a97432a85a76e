/** Lists and sets: what formats take from the data. */
import { fail } from '../ast/diagnostic.ts'
import { coordsOfDense, toCoords } from '../formats/coords.ts'
import type { Tensor } from '../formats/tensor.ts'
import { storedValues, validateStored } from '../formats/validate.ts'
import { evaluate } from '../ir/evaluate.ts'
import type { Kernel1, Reformat } from '../ir/stage1.ts'
import { givenOf, segmentsOf, storedAxis } from './axes.ts'
import { Random, randomCoords, seedFor } from './random.ts'

export interface GivenData {
  readonly lists: ReadonlyMap<string, Int32Array>
  readonly sets: ReadonlyMap<string, readonly Int32Array[]>
}

/**
 * Lists and sets by name. With a seed, those that are not bound are random; `params` then learns their lengths.
 * @throws SptError `bind/missing-list`, `bind/missing-set`, `bind/list`, `bind/coordinate-range`
 */
export function bindGiven(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  params: Map<string, number>,
  extents: ReadonlyMap<string, number>,
  seed: number | undefined,
): GivenData {
  const lists = new Map<string, Int32Array>()
  const sets = new Map<string, readonly Int32Array[]>()
  for (const [name, { kind, of }] of givenOf(kernel)) {
    const tensor = tensors.get(name)
    if (kind === 'set') sets.set(name, setOf(name, of, tensor, extents, seed))
    else {
      const list = listOf(name, of, tensor, params, seed)
      params.set(segmentsOf(name), list.length - 1)
      lists.set(name, list)
    }
  }
  return { lists, sets }
}

/** Boundaries of segments: ascending from 0 to the extent of what they cut; equal ones enclose nothing. */
function listOf(
  name: string,
  of: Reformat,
  tensor: Tensor | undefined,
  params: ReadonlyMap<string, number>,
  seed: number | undefined,
): Int32Array {
  const table = of.instance.parts.flatMap((p) => p.instance.tables).find((t) => t.source === name)
  const end = table ? evaluate(table.fill, params) : undefined
  const expected = `ascending integers from 0 to ${end ?? 'the extent of what they cut'}`
  if (!tensor) {
    if (seed === undefined)
      return fail({
        code: 'bind/missing-list',
        message: `${of.format} needs the list ${name}, which is not bound`,
        expected,
        hint: `bind ${name} to a one-dimensional i32 tensor: the boundaries of the segments`,
      })
    return randomList(end ?? 0, new Random(seedFor(seed, name)))
  }
  const { values } = tensor
  if (tensor.kind !== 'dense' || tensor.dtype !== 'i32' || !(values instanceof Int32Array))
    return fail({
      code: 'bind/list',
      message: `the list ${name} is bound to a ${tensor.kind} tensor of type ${tensor.dtype}`,
      expected: `a dense i32 tensor: ${expected}`,
      hint: `bind dense([n], Int32Array.of(…), 'i32')`,
    })
  const bad = (at: number): never =>
    fail({
      code: 'bind/list',
      message: `position ${at} of the list ${name} is ${values[at]}${at > 0 ? `, after ${values[at - 1]}` : ''}`,
      expected,
      hint: 'give the boundaries of all segments, the first 0 and the last the extent',
    })
  if (values.length === 0)
    fail({
      code: 'bind/list',
      message: `the list ${name} is empty`,
      expected,
      hint: 'a list of n segments has n + 1 boundaries',
    })
  if (values[0] !== 0) bad(0)
  for (let k = 1; k < values.length; k++) if (values[k]! < values[k - 1]!) bad(k)
  if (end !== undefined && values[values.length - 1] !== end) bad(values.length - 1)
  return values
}

function setOf(
  name: string,
  of: Reformat,
  tensor: Tensor | undefined,
  extents: ReadonlyMap<string, number>,
  seed: number | undefined,
): readonly Int32Array[] {
  const axes = of.from.map((a) => a.name)
  const shape = axes.map((a) => extents.get(a) ?? 0)
  if (!tensor) {
    if (seed === undefined)
      return fail({
        code: 'bind/missing-set',
        message: `${of.format} needs the set ${name}, which is not bound`,
        expected: `coordinates over [${axes.join(', ')}]`,
        hint: `bind ${name} to coords([${shape.join(', ')}], …)`,
      })
    return randomCoords(
      shape,
      axes.map(() => 'sparse' as const),
      new Random(seedFor(seed, name)),
    )
  }
  const columns = setColumns(of, tensor, extents)
  columns.forEach((c, d) => {
    const at = c.findIndex((x) => x < 0 || x >= shape[d]!)
    if (at >= 0)
      fail({
        code: 'bind/coordinate-range',
        message: `entry ${at} of the set ${name} is at (${columns.map((x) => x[at]).join(', ')})`,
        expected: `coordinates within [${shape.join(', ')}]`,
        hint: 'check the order of its columns',
      })
  })
  return columns
}

function setColumns(
  of: Reformat,
  tensor: Tensor,
  extents: ReadonlyMap<string, number>,
): readonly Int32Array[] {
  if (tensor.kind === 'coords') return tensor.coords
  if (tensor.kind === 'dense') return coordsOfDense(tensor).coords
  const axes = new Map(of.from.map((a) => [a.name, a]))
  const storage = validateStored(
    of.from.map((a) => storedAxis(axes, a.name)),
    extents,
    tensor,
  )
  return toCoords(storage, storedValues(storage, tensor, 0), tensor.dtype).coords
}

/** Segments of one to eight. */
function randomList(end: number, random: Random): Int32Array {
  const out = [0]
  for (let at = 0; at < end; ) {
    at = Math.min(end, at + 1 + random.below(8))
    out.push(at)
  }
  return Int32Array.from(out)
}
