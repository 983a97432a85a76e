/**
 * Restriction of a kernel to some coordinates of one axis. It is sound if coordinates are independent: every top-level
 * iteration runs over the axis with an S iterator, and every written element is written and read at that bare iterator,
 * on the same dimension.
 */
import { byName } from '../ast/by-name.ts'
import { type Axis, chainTo, isDenseChain, isFused, isStored, parentOf } from '../ir/coordinates/axis.ts'
import type { Iter, Kernel1 } from '../ir/coordinates/stage1.ts'
import {
  type Body1,
  iterationsOf,
  readsIn,
  someStmt1,
  writersIn,
  writtenBuffers1,
} from '../ir/coordinates/stage1-tree.ts'
import type { Expr, Load } from '../ir/expressions/expr.ts'
import type {
  RefCoords,
  RefInputs,
  RefOptions,
  RefStructure,
  RefTensor,
} from './tensors/inputs-and-results.ts'
import { isCoords, structuresOf } from './tensors/inputs-and-results.ts'

export interface Sampling {
  readonly axis: string
  readonly iters: ReadonlySet<Iter>
  /** For each written buffer, the dimension indexed by the axis. */
  readonly dims: ReadonlyMap<string, number>
}

/** The first root axis to which the kernel can be restricted; `null` if there is none. */
function samplingOf(kernel: Kernel1): Sampling | null {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  for (const a of kernel.axes) {
    const root = isStored(a) && parentOf(a) === null
    const sampling = root ? samplingOnAxis(kernel, a.name, axes) : null
    if (sampling) return sampling
  }
  return null
}

function samplingOnAxis(kernel: Kernel1, root: string, axes: ReadonlyMap<string, Axis>): Sampling | null {
  const iters = new Set<Iter>()
  const dims = new Map<string, number>()
  const written = writtenBuffers1(kernel.body)
  for (const s of kernel.body) {
    if (s.kind !== 'iterate') return null
    const iterator = s.iters.find((it) => it.kind === 'S' && rootOf(axes.get(it.axis)) === root)
    if (!iterator) return null
    iters.add(iterator)
    const name = iterator.axis === root ? iterator.name : root
    if (rebinds(s.body, name)) return null
    const accesses = [...targetsIn([s]), ...readsIn([s]).filter((l) => written.has(l.buffer))]
    for (const access of accesses) {
      const dim = dims.get(access.buffer) ?? access.index.findIndex((e) => isBare(e, name))
      const index = access.index[dim]
      if (!index || !isBare(index, name)) return null
      dims.set(access.buffer, dim)
    }
  }
  return iters.size > 0 ? { axis: root, iters, dims } : null
}

const isBare = (e: Expr, name: string): boolean => e.kind === 'var' && e.name === name

const rootOf = (a: Axis | undefined): string | undefined => (isFused(a) ? a.members[0] : a?.name)

/** True if an inner iteration or `let` rebinds the name. */
const rebinds = (body: Body1, name: string): boolean =>
  someStmt1(body, (s) =>
    s.kind === 'let'
      ? s.name === name
      : s.kind === 'iterate' && s.iters.some((it) => it.name === name || it.axis === name),
  )

const targetsIn = (body: Body1): readonly Load[] => writersIn(body).flatMap((s) => s.targets)

/** The coordinates of an axis that a kernel is restricted to. */
export interface Sample {
  readonly sampling: Sampling
  /** Ascending. */
  readonly coordinates: Int32Array
  /** 1 at the selected coordinates. */
  readonly mask: Uint8Array
}

/** The number of coordinates, or the coordinates themselves. */
export type SampleRequest = NonNullable<RefOptions['sample']> | Int32Array

/** The sample of a kernel; `null`: everything is computed. */
export function sampleOf(
  kernel: Kernel1,
  request: SampleRequest | null,
  extentOf: (axis: Axis) => number,
): Sample | null {
  const sampling = request ? samplingOf(kernel) : null
  if (!sampling || !request) return null
  const extent = extentOf(kernel.axes.find((a) => a.name === sampling.axis)!)
  const coordinates = request instanceof Int32Array ? request : pick(extent, request)
  const mask = new Uint8Array(extent)
  for (const c of coordinates) mask[c] = 1
  return { sampling, coordinates, mask }
}

/**
 * True if only the visited coordinates of the axis' tree affect the results, so that the others need not be placed:
 * nothing else iterates over the tree or loads from it, and results have other structure.
 */
export function isIndependentTree(
  { axes, body, buffers }: Kernel1,
  { axis: root, iters }: Sampling,
): boolean {
  const axesByName = new Map(axes.map((a) => [a.name, a]))
  const isInTree = (name: string): boolean => {
    const a = axesByName.get(name)
    return a !== undefined && isStored(a) && chainTo(axesByName, name)[0] === root
  }
  const treeBuffers = new Set(buffers.filter((b) => b.axes.some(isInTree)).map((b) => b.name))
  const hasDense = buffers.every(
    (b) => (b.role !== 'out' && b.role !== 'inout') || b.axes.every((a) => isDenseChain(axesByName, a)),
  )
  if (!hasDense || !axes.every((a) => isStored(a) || isFused(a))) return false
  return body.every((s) => {
    if (s.kind !== 'iterate') return false
    const iterator = s.iters.find((it) => iters.has(it))!
    const name = iterator.axis === root ? iterator.name : root
    const roots = iterationsOf([s])
      .flatMap((it) => it.iters)
      .filter((it) => rootOf(axesByName.get(it.axis)) === root)
    if (roots.some((it) => it !== iterator)) return false
    return [...targetsIn([s]), ...readsIn([s])].every(({ buffer, index }) => {
      const dim = treeBuffers.has(buffer) ? buffers.find((b) => b.name === buffer)!.axes.indexOf(root) : -1
      return dim < 0 ? !treeBuffers.has(buffer) : isBare(index[dim]!, name)
    })
  })
}

/** The inputs restricted to the coordinates of a sample. */
export function sampledInputs({ axes, buffers }: Kernel1, inputs: RefInputs, sample: Sample): RefInputs {
  const { axis } = sample.sampling
  const axesByName = new Map(axes.map((a) => [a.name, a]))
  const sampledBuffers = Object.entries(inputs.buffers).map(([name, t]): [string, RefTensor] => {
    const bufferAxes = buffers.find((b) => b.name === name)?.axes ?? []
    return [name, isCoords(t) ? sampledCoords(t, bufferAxes.indexOf(axis), sample) : t]
  })
  const structure: Record<string, RefStructure[]> = byName()
  for (const [name, s] of structuresOf(inputs)) {
    const dim = axesByName.has(name) ? chainTo(axesByName, name).indexOf(axis) : -1
    structure[name] = [...(structure[name] ?? []), sampledCoords({ ...s, values: null }, dim, sample)]
  }
  return { ...inputs, buffers: byName(sampledBuffers), structure }
}

function sampledCoords(t: RefCoords, dim: number, { mask }: Sample): RefCoords {
  const column = t.coords[dim]
  if (!column) return t
  let n = 0
  for (let e = 0; e < column.length; e++) if (mask[column[e]!]) n++
  const entries = new Int32Array(n)
  n = 0
  for (let e = 0; e < column.length; e++) if (mask[column[e]!]) entries[n++] = e
  const { values } = t
  return {
    ...t,
    coords: t.coords.map((c) => entries.map((e) => c[e]!)),
    values: values && Float64Array.from(entries, (e) => values[e]!),
  }
}

/**
 * A random subset of 0 … extent-1, ascending, with at least one element unless the extent is 0; deterministic for a
 * seed.
 */
function pick(extent: number, options: NonNullable<RefOptions['sample']>): Int32Array {
  const requested = options.count ?? Math.ceil(extent * (options.fraction ?? 1))
  const count = Math.min(extent, Math.max(1, requested))
  let state = (options.seed ?? 0) >>> 0
  // mulberry32
  const random = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  // Knuth's selection sampling: the probabilities make every subset equally likely.
  const out: number[] = []
  for (let c = 0; c < extent && out.length < count; c++)
    if (random() * (extent - c) < count - out.length) out.push(c)
  return Int32Array.from(out)
}
