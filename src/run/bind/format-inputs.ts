/** Lists and sets: data-dependent arguments of formats. */
import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { quantity } from '../../ast/print/quantity.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Instance } from '../../ir/formats/format.ts'
import { segmentsOf } from '../../ir/formats/format-tables.ts'
import { listExtents } from '../../ir/formats/list-extents.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { coordsOfDense, toCoords } from '../../storage/entries/stored-coords.ts'
import type { FormatOperands } from '../../storage/format-operands.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { RareInputs } from './rare-inputs.ts'

type GivenData = Pick<FormatOperands, 'lists' | 'sets'>

/**
 * Lists and sets by name; with a seed, missing ones are random, and their lengths are added to `params`. Throws SptError
 * `bind/missing-list`, `bind/missing-set`, `bind/list`, `bind/rank`, `bind/shape`, `bind/coordinate-range`.
 */
export function bindGiven(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  params: Map<string, number>,
  extents: ReadonlyMap<string, number>,
  rare: RareInputs | null,
  seed: number | undefined,
): GivenData {
  const given = { lists: new Map<string, Int32Array>(), sets: new Map<string, readonly Int32Array[]>() }
  for (const { instance } of kernel.reformats) {
    givenOperands({ instance, sizes: params, extents, rare, seed }, (name) => tensors.get(name), given)
    for (const [name, list] of given.lists) params.set(segmentsOf(name), list.length - 1)
  }
  return given
}

/** Returns the arguments of a format instance by name, after those of `given`. Throws SptError like `bindGiven`. */
export function givenOperands(
  taking: Omit<Wanted, 'name'>,
  tensorOf: (name: string, kind: 'list' | 'set') => Tensor | undefined,
  given = { lists: new Map<string, Int32Array>(), sets: new Map<string, readonly Int32Array[]>() },
): GivenData {
  const { lists, sets } = given
  for (const { name, kind } of taking.instance.given) {
    const tensor = tensorOf(name, kind)
    // A random argument of one format is reused by the others.
    if (!tensor && (lists.has(name) || sets.has(name))) continue
    const wanted = { ...taking, name }
    if (kind === 'list') lists.set(name, listOf(wanted, tensor))
    else sets.set(name, setOf(wanted, tensor))
  }
  return given
}

interface Wanted {
  readonly name: string
  readonly instance: Instance
  readonly sizes: ReadonlyMap<string, number>
  /** By replaced axis, in coordinates. */
  readonly extents: ReadonlyMap<string, number>
  readonly rare: RareInputs | null
  /** Seed of random data for missing arguments; undefined if they are errors. */
  readonly seed?: number | undefined
}

/** Boundaries of segments, ascending from 0 to the extent of the divided axis, if known; equal ones are allowed. */
function listOf(wanted: Wanted, tensor: Tensor | undefined): Int32Array {
  const { name, instance, sizes, rare, seed } = wanted
  const ends = [...new Set(listExtents(name, instance).map((e) => evaluate(e, sizes)))]
  const expected =
    ends.length === 0 ? 'ascending integers from 0' : `ascending integers from 0 to ${ends.join(', and to ')}`
  if (!tensor) {
    if (seed === undefined)
      return failWith('bind/missing-list', `${instance.text} needs the list ${name}, which is not bound`, {
        expected,
        hint: `bind ${name} to a one-dimensional i32 tensor: the boundaries of the segments`,
      })
    // The extent is unknown: an upper bound on sums of coordinates and on their number.
    const all = instance.over.reduce((n, a) => n + evaluate(a.extent, sizes), 1)
    return rare!.randomList(ends[0] ?? all, rare!.randomFor(seed, name))
  }
  const { values } = tensor
  if (tensor.kind !== 'dense' || tensor.dtype !== 'i32' || !(values instanceof Int32Array))
    return failWith(
      'bind/list',
      `the list ${name} is bound to a ${tensor.kind} tensor of type ${tensor.dtype}`,
      { expected: `a dense i32 tensor: ${expected}`, hint: `bind dense([n], Int32Array.of(…), 'i32')` },
    )
  if (tensor.shape.length !== 1)
    failWith(
      'bind/rank',
      `the list ${name} is bound to a tensor of ${quantity(tensor.shape.length, 'dimension')}`,
      { expected: 'one dimension', hint: 'bind a one-dimensional tensor: the boundaries of the segments' },
    )
  const bad = (at: number): never =>
    failWith(
      'bind/list',
      `position ${at} of the list ${name} is ${values[at]}${at > 0 ? `, after ${values[at - 1]}` : ''}`,
      { expected, hint: 'give the boundaries of the segments, the first 0 and the last the extent' },
    )
  if (values.length === 0)
    failWith('bind/list', `the list ${name} is empty`, {
      expected,
      hint: 'a list of n segments has n + 1 boundaries',
    })
  if (values[0] !== 0) bad(0)
  for (let k = 1; k < values.length; k++) if (values[k]! < values[k - 1]!) bad(k)
  const last = values[values.length - 1]
  if (ends.some((end) => last !== end))
    failWith('bind/list', `the list ${name} ends with ${last}`, {
      expected,
      hint:
        ends.length > 1
          ? 'coordinates of several dimensions are looked up in it, whose extents differ: take a list for each'
          : 'the last boundary is the extent of the segmented dimension',
    })
  return values
}

/** Returns the coordinate columns of a set. Throws SptError `bind/missing-set`, `bind/rank`, `bind/shape`, `bind/coordinate-range`. */
function setOf(wanted: Wanted, tensor: Tensor | undefined): readonly Int32Array[] {
  const { name, instance, extents, rare, seed } = wanted
  const axes = instance.over.map((a) => a.name)
  const shape = axes.map((a) => extents.get(a) ?? 0)
  if (!tensor) {
    if (seed === undefined)
      return failWith('bind/missing-set', `${instance.text} needs the set ${name}, which is not bound`, {
        expected: `coordinates over [${axes.join(', ')}]`,
        hint: `bind ${name} to coords([${shape.join(', ')}], …)`,
      })
    return rare!.randomCoords(
      shape,
      axes.map(() => 'elements' as const),
      rare!.randomFor(seed, name),
    )
  }
  if (tensor.shape.length !== axes.length)
    failWith(
      'bind/rank',
      `the set ${name} is bound to a tensor of ${quantity(tensor.shape.length, 'dimension')}`,
      { expected: `coordinates over [${axes.join(', ')}]` },
    )
  if (tensor.shape.some((n, d) => extents.has(axes[d]!) && n !== shape[d]))
    failWith(
      'bind/shape',
      `the set ${name} has the shape [${tensor.shape.join(', ')}], and is over [${axes.join(', ')}]`,
      { expected: `the shape [${shape.join(', ')}]`, hint: 'give the set the shape of the divided axes' },
    )
  const columns = setColumns(wanted, tensor)
  columns.forEach((c, d) => {
    const at = c.findIndex((x) => x < 0 || x >= shape[d]!)
    if (at >= 0)
      failWith(
        'bind/coordinate-range',
        `entry ${at} of the set ${name} is at (${columns.map((x) => x[at]).join(', ')})`,
        { expected: `coordinates within [${shape.join(', ')}]`, hint: 'check the order of the columns' },
      )
  })
  return columns
}

function setColumns({ instance, extents, rare }: Wanted, tensor: Tensor): readonly Int32Array[] {
  if (tensor.kind === 'coords') return tensor.coords
  if (tensor.kind === 'dense') return coordsOfDense(tensor).coords
  const storage = rare!.validateStored(instance.over, { extents }, tensor)
  return toCoords(storage, rare!.storedValues(storage, tensor, 0), tensor.dtype).coords
}

// Format arguments in error messages: the width of an axis may not suffice because a format has other
// arguments than intended.

/** Runs `work`, and appends the format with its arguments to `bind/width` errors. */
export function withArguments<T>(kernel: Kernel1, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    const diagnostics = error.diagnostics.map((d) => {
      const format = d.code === 'bind/width' && d.span ? argumentsAt(kernel, d.span) : undefined
      return format === undefined ? d : { ...d, message: `${d.message} (${format})` }
    })
    throw Object.assign(new SptError(diagnostics), { sources: error.sources })
  }
}

/** The format of the axis at `span` with its arguments, such as `tile_wise(g = 128, s = 64)`; undefined without arguments. */
function argumentsAt({ reformats }: Kernel1, span: object): string | undefined {
  const parts = reformats.flatMap((r) => r.instance.parts.map((p) => p.instance))
  const found = parts.find((p) => p.constants.size > 0 && p.axes.some((a) => a.span === span))
  if (!found) return undefined
  const given = [...found.constants].map(([name, value]) => `${name} = ${value}`)
  return `${found.text.split('(')[0]}(${given.join(', ')})`
}
