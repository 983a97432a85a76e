/**
 * From any format to any format or composition, by what their descriptions say: nothing here knows a format.
 *
 *     tensor ──entries──▶ frame of entries ──split──▶ frames of parts ──place, levels──▶ arrays of each part
 *
 * Coordinates are the common ground. Everything is a data-parallel operation over columns (`Engine`): maps of
 * expressions, scans, sorts, gathers, scatters and reductions, on the host or on a device.
 */
import { fail } from '../ast/diagnostic.ts'
import type { Proved } from '../formats/proof/proved.ts'
import { isNonunique, type StoredAxis } from '../ir/axis.ts'
import type { Dtype } from '../ir/dtype.ts'
import { variable } from '../ir/expr.ts'
import type { Instance, PartTree } from '../ir/format.ts'
import { declarationOf, type Query } from '../ir/queries.ts'
import { type Column, type Engine, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import { entriesOf, isExact } from './entry-enumeration.ts'
import type { FormatOperands } from './format-operands.ts'
import { withSegments } from './format-operands.ts'
import { type Inverse, inverseTables } from './inverse-remapping.ts'
import { assemblePart, type Context, type Part } from './part-assembly.ts'
import { partitionByPart } from './partition-by-part.ts'
import { type Level, treesOf } from './storage.ts'

/** What a conversion starts from. */
export type Source<C> = Shaped & (CoordSource<C> | LevelSource<C> | PartsSource<C>)

interface Shaped {
  readonly shape: readonly number[]
  readonly dtype: Dtype
}

/** Element e is at `(coords[0][e], coords[1][e], …)`; without values a pattern. */
export interface CoordSource<C> {
  readonly kind: 'coords'
  readonly coords: readonly C[]
  readonly values: C | null
}

/** Arrays over the tensor's own axes. */
export interface LevelSource<C> {
  readonly kind: 'stored'
  readonly axes: readonly StoredAxis[]
  readonly levels: ReadonlyMap<string, Level<C>>
  readonly size: number
  readonly values: C | null
}

/** A tensor in a format or composition. */
export interface PartsSource<C> {
  readonly kind: 'parts'
  readonly parts: readonly Part<C>[]
  readonly fill: number
  readonly given: FormatOperands
}

/** Entries of a tensor. */
interface Entries<C extends Column> {
  readonly frame: Frame<C>
  readonly values: C | null
  /** Whether `values` were made for this conversion. */
  readonly owned: boolean
  /** Whether no two entries have the same coordinates. */
  readonly distinct: boolean
}

/** What comes with the data, and what is known before. */
export interface Options {
  readonly given: FormatOperands
  /** What positions without an entry hold. */
  readonly fill: number
  /** Of each part. */
  readonly proved: readonly Proved[]
  /** Each set as a tree over the dimensions: of those with indices, their arrays. */
  readonly sets: SetTrees
}

export type SetTrees = ReadonlyMap<
  string,
  readonly { readonly indptr: Int32Array; readonly indices: Int32Array }[]
>

/**
 * @throws SptError `format/overlap`, `format/leak`, `bind/shape`, and as `storePart`
 */
export function* convert<C extends Column>(
  engine: Engine<C>,
  tensor: Source<C>,
  to: Instance,
  { given, fill, proved, sets }: Options,
): Coroutine<Part<C>[]> {
  checkOrder(tensor.shape, to)
  const dims = to.over.map((a, k) => ({ name: a.name, extent: tensor.shape[k]! }))
  const known = withSegments(given)
  const lists = yield* listColumns(engine, given)
  const source = yield* entriesOfSource(engine, tensor, dims, known.sizes)
  const { frame } = source
  bindLists(frame, lists, given)
  const asked =
    source.values && asksForValues(to)
      ? yield* engine.sumsOfEqual(frame, source.values, tensor.dtype, dims, source.distinct)
      : { sums: source.values, distinct: source.distinct }
  const context: Context<C> = {
    given: known,
    dims,
    stored: source.values,
    values: asked.sums,
    distinct: asked.distinct,
    lists,
    sets: yield* setColumns(engine, sets),
    dtype: tensor.dtype,
    fill,
  }
  const parts: Part<C>[] = []
  yield* partitionByPart(frame, to, context, function* (k, f) {
    parts[k] = yield* assemblePart(f, to.parts[k]!, context, proved[k]!)
  })
  yield* engine.flush()
  if (source.owned) engine.release(source.values)
  if (asked.sums !== source.values) engine.release(asked.sums)
  for (const levels of context.sets.values()) for (const l of levels) engine.unload(l.indptr, l.indices)
  const used = new Set(parts.flatMap((p) => [...p.tables.values()]))
  engine.unload(...[...lists.values()].filter((l) => !used.has(l)))
  return parts
}

/** @throws SptError `bind/shape` */
export function checkOrder(shape: readonly number[], to: Instance): void {
  if (shape.length === to.over.length) return
  fail({
    code: 'bind/shape',
    message: `a tensor of ${shape.length} dimensions is brought into ${to.text}, which is over ${to.over.length}`,
    expected: `a tensor over ${to.over.map((a) => a.name).join(', ')}`,
    hint: 'choose a format over as many dimensions',
  })
}

/** Whether it matters to the format which values there are. */
export function asksForValues({ tree, parts }: Instance): boolean {
  const asks = (queries: readonly Query[]): boolean => queries.some((q) => declarationOf(q).ofValues)
  const inTree = (t: PartTree): boolean =>
    t.kind !== 'leaf' &&
    (asks(t.queries) || (t.kind === 'index' ? t.children : t.cases.map((c) => c.child)).some(inTree))
  return inTree(tree) || parts.some((p) => asks(p.instance.queries))
}

/** Lists that come with the data, by name. */
export function* listColumns<C extends Column>(
  engine: Engine<C>,
  { lists }: FormatOperands,
): Coroutine<ReadonlyMap<string, C>> {
  const out = new Map<string, C>()
  for (const [name, list] of lists) out.set(name, yield* engine.upload(list, name))
  return out
}

/** Lists where maps load them; beyond their ends they have the last element. */
export function bindLists<C extends Column>(
  frame: Frame<C>,
  lists: ReadonlyMap<string, C>,
  given: FormatOperands,
): void {
  for (const [name, list] of lists) {
    frame.tables.set(name, list)
    frame.fills.set(name, given.lists.get(name)?.at(-1) ?? 0)
  }
}

function* entriesOfSource<C extends Column>(
  engine: Engine<C>,
  tensor: Source<C>,
  dims: Context<C>['dims'],
  sizes: ReadonlyMap<string, number>,
): Coroutine<Entries<C>> {
  if (tensor.kind === 'coords') {
    const frame = new Frame(engine, tensor.coords[0]?.length ?? 0, sizes)
    for (const [k, d] of dims.entries()) {
      frame.set(d.name, tensor.coords[k]!, false)
      frame.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
    }
    const distinct = engine.ascends(frame, dims)
    return { frame, values: tensor.values, owned: false, distinct }
  }
  if (tensor.kind === 'stored') {
    const { axes, levels, size, dtype, values } = tensor
    const trees = chains(axes, levels)
    const stored = { trees, size, values, dtype, drop: isExact(trees) ? null : 0 }
    const exprs = axes.map((a) => variable(a.name))
    const frame = yield* entriesOf(engine, stored, { dims, exprs, sizes, tables: new Map() })
    return { frame, values, owned: false, distinct: !axes.some(isNonunique) }
  }
  const found: Entries<C>[] = []
  const all = tensor.parts.map(function* (p, k): Coroutine<void> {
    const frame = yield* entriesOfPart(engine, p, tensor, dims, sizes)
    // Every coordinate is in one part, once.
    found[k] = { frame, values: p.values, owned: false, distinct: true }
  })
  yield* engine.together(all)
  const [only, ...others] = found
  return only && others.length === 0 ? only : joined(engine, found, dims, sizes, tensor.dtype)
}

const chains = <C>(axes: readonly StoredAxis[], levels: ReadonlyMap<string, Level<C>>) =>
  treesOf(axes).map((tree) => tree.map((a) => levels.get(a.name)!))

/** The entries of one part of a tensor, in a frame that knows `sizes`. */
export function* entriesOfPart<C extends Column>(
  engine: Engine<C>,
  { part, levels, size, values, tables, measured }: Part<C>,
  of: Shaped & Pick<PartsSource<C>, 'fill' | 'given'>,
  dims: Context<C>['dims'],
  sizes: ReadonlyMap<string, number>,
): Coroutine<Frame<C>> {
  const { instance } = part
  const own = new Map([...withSegments(of.given).sizes, ...measured])
  const inverse: Inverse<C> = {
    dims,
    exprs: instance.inverse,
    sizes: own,
    tables: inverseTables(instance, tables, own),
  }
  const trees = chains(instance.axes, levels)
  const stored = { trees, size, values, dtype: of.dtype, drop: isExact(trees) ? null : of.fill }
  return yield* entriesOf(engine, stored, inverse, sizes)
}

/** The entries of all parts, one part after the other. */
function joined<C extends Column>(
  engine: Engine<C>,
  parts: readonly Entries<C>[],
  dims: Context<C>['dims'],
  sizes: ReadonlyMap<string, number>,
  dtype: Dtype,
): Entries<C> {
  const n = parts.reduce((sum, p) => sum + p.frame.n, 0)
  const frame = new Frame(engine, n, sizes)
  for (const d of dims) {
    const columns = parts.map((p) => ({ column: p.frame.column(d.name)!, entry: null, n: p.frame.n }))
    frame.set(d.name, engine.concatenated(columns, 'i32'))
    frame.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
  }
  const values = engine.concatenated(
    parts.map((p) => ({ column: p.values!, entry: p.frame.entry, n: p.frame.n })),
    dtype,
  )
  for (const p of parts) p.frame.release()
  return { frame, values, owned: true, distinct: true }
}

export function* setColumns<C extends Column>(
  engine: Engine<C>,
  sets: SetTrees,
): Coroutine<Context<C>['sets']> {
  const out = new Map<string, { readonly indptr: C; readonly indices: C }[]>()
  for (const [name, levels] of sets) {
    const own: { readonly indptr: C; readonly indices: C }[] = []
    for (const { indptr, indices } of levels)
      own.push({ indptr: yield* engine.upload(indptr, name), indices: yield* engine.upload(indices, name) })
    out.set(name, own)
  }
  return out
}
