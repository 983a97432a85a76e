/**
 * Conversion from any format to any format or composition, driven by their descriptions: no format is built in.
 *
 * tensor ──entries──▶ frame of entries ──split──▶ frames of parts ──place, levels──▶ arrays of each part
 *
 * Coordinates are the common representation. Every step is a data-parallel operation over columns (`Engine`): maps of
 * expressions, scans, sorts, gathers, scatters and reductions, on the host or on a device.
 */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../ast/work.ts'
import { type Column, type Engine, Frame } from '../columns/column-engine.ts'
import { isNonunique, sourceName } from '../ir/coordinates/axis.ts'
import { variable } from '../ir/expressions/expr.ts'
import type { Instance, PartInstance, Proved } from '../ir/formats/format.ts'
import { childrenOf, type PartTree } from '../ir/formats/part-tree.ts'
import { declarationOf, type Query } from '../ir/formats/queries.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import { assemblePart } from './assembly/part-arrays.ts'
import { entriesOf, entriesOfPart, isExact } from './entries/entry-enumeration.ts'
import { type FormatOperands, givenList, operandsUsedBy, withSegments } from './format-operands.ts'
import type { Context, Part } from './remapping/part-assembly.ts'
import { partitionByPart } from './remapping/partition-by-part.ts'
import type { Storage } from './storage.ts'

export type Source<C> = Shaped & (CoordSource<C> | LevelSource<C> | PartsSource<C>)

interface Shaped {
  readonly shape: readonly number[]
  readonly dtype: Dtype
}

/** Element e is at `(coords[0][e], coords[1][e], …)`; without values, a pattern. */
export interface CoordSource<C> {
  readonly kind: 'coords'
  readonly coords: readonly C[]
  readonly values: C | null
  /** Entries are known to be strictly ascending, so that no two are equal. */
  readonly ascending?: boolean
}

/** Arrays over the tensor's own axes. */
export interface LevelSource<C> extends Storage<C> {
  readonly kind: 'stored'
  readonly values: C | null
}

interface PartsSource<C> {
  readonly kind: 'parts'
  readonly parts: readonly Part<C>[]
  readonly fill: number
  readonly given: FormatOperands
}

interface Entries<C extends Column> {
  readonly frame: Frame<C>
  readonly values: C | null
  /** `values` were allocated for this conversion. */
  readonly owned: boolean
  readonly distinct: boolean
}

export interface Options {
  readonly given: FormatOperands
  readonly fill: number
  /** Each set as a tree over the dimensions: the arrays of its compressed levels. */
  readonly sets: SetTrees
}

export type SetTrees = ReadonlyMap<
  string,
  readonly { readonly indptr: Int32Array; readonly indices: Int32Array }[]
>

/** The arrays of each part. @throws SptError `format/overlap`, `format/leak`, `bind/shape`, and as `assemblePart` */
export const convert = <C extends Column>(
  engine: Engine<C>,
  tensor: Source<C>,
  to: Instance,
  options: Options & { readonly proved: readonly Proved[] },
): Coroutine<Part<C>[]> =>
  forEachPart(engine, tensor, to, options, (part, k, frame, context) =>
    assemblePart(frame, part, context, options.proved[k]!),
  )

/**
 * The results of `leaf` for each part, concurrently; `leaf` owns the frame of the part's entries. @throws SptError
 * `format/overlap`, `format/leak`, `bind/shape`, and as `leaf`
 */
export function* forEachPart<C extends Column, T extends { readonly tables: ReadonlyMap<string, C> }>(
  engine: Engine<C>,
  tensor: Source<C>,
  to: Instance,
  options: Options,
  leaf: (part: PartInstance, k: number, frame: Frame<C>, context: Context<C>) => Coroutine<T>,
): Coroutine<T[]> {
  checkOrder(tensor.shape, to)
  const dims = to.over.map((a, k) => ({ name: a.name, extent: tensor.shape[k]! }))
  const { fill, sets } = options
  const partOptions = { given: operandsUsedBy(to, options.given), fill, sets }
  const { frame, context, allocated } = yield* loadEntries(
    engine,
    tensor,
    dims,
    dependsOnValues(to),
    partOptions,
  )
  const parts: T[] = []
  yield
  yield* partitionByPart(frame, to, context, function* (k, partFrame) {
    yield
    parts[k] = yield* leaf(to.parts[k]!, k, partFrame, context)
  })
  yield* engine.flush()
  engine.release(...allocated)
  for (const levels of context.sets.values()) for (const l of levels) engine.unload(l.indptr, l.indices)
  const used = new Set(parts.flatMap((p) => [...p.tables.values()]))
  engine.unload(...[...context.lists.values()].filter((l) => !used.has(l)))
  return parts
}

interface LoadedEntries<C extends Column> {
  readonly frame: Frame<C>
  readonly context: Context<C>
  /** Columns of values that were allocated for this conversion. */
  readonly allocated: readonly C[]
}

export function* loadEntries<C extends Column>(
  engine: Engine<C>,
  tensor: Source<C>,
  dims: Context<C>['dims'],
  readsValues: boolean,
  { given, fill, sets }: Options,
): Coroutine<LoadedEntries<C>> {
  const operands = withSegments(given)
  const lists = new Map<string, C>()
  for (const [name, list] of given.lists) lists.set(name, yield* engine.upload(list, name))
  const {
    frame,
    values: storedValues,
    owned,
    distinct,
  } = yield* entriesOfSource(engine, tensor, dims, operands.sizes)
  bindLists(frame, lists, given)
  const { dtype } = tensor
  const sums =
    storedValues && readsValues
      ? yield* engine.sumsOfEqual(frame, storedValues, dtype, dims, distinct)
      : { sums: storedValues, distinct }
  const { sums: values } = sums
  yield
  const trees = yield* uploadSets(engine, sets)
  return {
    frame,
    context: {
      given: operands,
      dims,
      stored: storedValues,
      values,
      distinct: sums.distinct,
      lists,
      sets: trees,
      dtype,
      fill,
    },
    allocated: [
      ...(storedValues && owned ? [storedValues] : []),
      ...(values && values !== storedValues ? [values] : []),
    ],
  }
}

/** Checks the number of dimensions. @throws SptError `bind/shape` */
export function checkOrder(shape: readonly number[], to: Instance): void {
  if (shape.length === to.over.length) return
  failWith(
    'bind/shape',
    `a tensor of ${shape.length} ${shape.length === 1 ? 'dimension' : 'dimensions'} cannot be converted to ${to.text}, which is over ${to.over.length}`,
    {
      expected: `a tensor over ${to.over.map(sourceName).join(', ')}`,
      hint: 'choose a format over as many dimensions',
    },
  )
}

export function dependsOnValues({ tree, parts }: Instance): boolean {
  const anyReadsValues = (queries: readonly Query[]): boolean =>
    queries.some((q) => declarationOf(q).readsValues)
  const treeReadsValues = (t: PartTree): boolean =>
    t.kind !== 'leaf' && (anyReadsValues(t.queries) || childrenOf(t).some(treeReadsValues))
  return treeReadsValues(tree) || parts.some((p) => anyReadsValues(p.instance.queries))
}

export function bindLists<C extends Column>(
  frame: Frame<C>,
  lists: ReadonlyMap<string, C>,
  given: Pick<FormatOperands, 'lists'>,
): void {
  for (const [name, list] of lists) {
    frame.tables.set(name, list)
    frame.lists.set(name, givenList(given, name))
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
    if (tensor.ascending) frame.sortedBy = dims.map((d) => variable(d.name))
    const distinct = tensor.ascending || engine.isAscending(frame, dims)
    return { frame, values: tensor.values, owned: false, distinct }
  }
  if (tensor.kind === 'stored') {
    const { axes, trees, size, dtype, values } = tensor
    const stored = { trees, size, values, dtype, drop: isExact(trees) ? null : 0 }
    const exprs = axes.map((a) => variable(a.name))
    const frame = yield* entriesOf(engine, stored, { dims, exprs, sizes, tables: new Map() })
    return { frame, values, owned: false, distinct: !axes.some(isNonunique) }
  }
  const parts: Entries<C>[] = []
  const tasks = tensor.parts.map(function* (p, k): Coroutine<void> {
    const frame = yield* entriesOfPart(engine, p, tensor, dims, sizes)
    // Each coordinate is stored in exactly one part.
    parts[k] = { frame, values: p.values, owned: false, distinct: true }
  })
  yield* engine.runConcurrently(tasks)
  const [only, ...otherParts] = parts
  if (only && otherParts.length === 0) return only
  const n = parts.reduce((sum, p) => sum + p.frame.n, 0)
  const frame = new Frame(engine, n, sizes)
  for (const d of dims) {
    const columns = parts.map((p) => ({ column: p.frame.column(d.name)!, entry: null, n: p.frame.n }))
    frame.set(d.name, engine.concatenate(columns, 'i32'))
    frame.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
  }
  const values = engine.concatenate(
    parts.map((p) => ({ column: p.values!, entry: p.frame.entry, n: p.frame.n })),
    tensor.dtype,
  )
  for (const p of parts) p.frame.release()
  return { frame, values, owned: true, distinct: true }
}

function* uploadSets<C extends Column>(engine: Engine<C>, sets: SetTrees): Coroutine<Context<C>['sets']> {
  const out = new Map<string, { readonly indptr: C; readonly indices: C }[]>()
  for (const [name, levels] of sets) {
    const columns: { readonly indptr: C; readonly indices: C }[] = []
    for (const { indptr, indices } of levels)
      columns.push({
        indptr: yield* engine.upload(indptr, name),
        indices: yield* engine.upload(indices, name),
      })
    out.set(name, columns)
  }
  return out
}
