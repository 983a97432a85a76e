/** Codecs of the nodes by which tensors are bound: axes, buffers, formats with their partition trees, maps, queries and sorts. */
import { AXES, type AxisWord } from '../ast/nodes/axis-kinds.ts'
import { type Axis, padsWithLast } from '../ir/coordinates/axis.ts'
import type { CoordinateList } from '../ir/coordinates/derived-names.ts'
import type { RuntimeLists, RuntimePart } from '../ir/coordinates/runtime-lists.ts'
import type {
  Buffer1,
  FillFactor,
  Kernel1,
  Param,
  Reformat,
  SkippedProduct,
} from '../ir/coordinates/stage1.ts'
import { bodyVisiting } from '../ir/coordinates/stage1-tree.ts'
import type { FormatInstance, Instance, PartInstance, Proved, Sort, Table } from '../ir/formats/format.ts'
import type { PartTree } from '../ir/formats/part-tree.ts'
import { QUERIES, type Query } from '../ir/formats/queries.ts'
import { DTYPES } from '../ir/values/dtype.ts'
import {
  type Codec,
  count,
  type Fields,
  flag,
  integer,
  later,
  list,
  map,
  nullable,
  number,
  oneOf,
  optional,
  record,
  tagged,
  text,
  within,
} from './codec.ts'
import { expr } from './expressions.ts'
import type { Plan } from './schema.ts'

export const dtype = oneOf(DTYPES)
const exprs = list(expr)
const names = list(text)

const param: Codec<Param> = record<Param>({
  name: text,
  kind: oneOf(['size', 'scalar']),
  dtype,
  measured: optional(flag),
})

const OPERAND_CODECS: Readonly<Record<string, Codec<unknown>>> = {
  parent: text,
  'root?': optional(nullable(text)),
  size: expr,
  axis: text,
  axes: names,
  buffer: text,
}

/** Fields of axes in addition to the operands of their kinds. `padding` is `"last"` in the field `pads`. */
const AXIS_FIELDS = {
  kind: oneOf(Object.keys(AXES) as AxisWord[]),
  name: text,
  copyOf: optional(text),
  ordered: optional(flag),
  unique: optional(flag),
  width: optional(expr),
  padding: optional(expr),
  pads: optional(oneOf(['last'])),
  compact: optional(flag),
  count: optional(expr),
  offsets: optional(text),
  capacity: optional(expr),
  perChild: optional(flag),
  packed: optional(expr),
}
const axisOfKind = (kind: AxisWord): Codec<never> =>
  record({
    ...AXIS_FIELDS,
    ...Object.fromEntries(
      Object.entries(AXES[kind].takes).map(([field, of]) => [field, OPERAND_CODECS[of]!]),
    ),
  } as unknown as Fields<never>)
const plainAxis = tagged<{ kind: AxisWord }>(
  'kind',
  Object.fromEntries((Object.keys(AXES) as AxisWord[]).map((kind) => [kind, axisOfKind(kind)])),
)
const axis: Codec<Axis> = {
  write(a) {
    const { padding, ...own } = a as Axis & { readonly padding?: unknown }
    const node = padsWithLast(a)
      ? { ...own, pads: 'last' }
      : padding === undefined
        ? own
        : { ...own, padding }
    return plainAxis.write(node)
  },
  read(json, path) {
    const { pads, ...own } = plainAxis.read(json, path) as Axis & { readonly pads?: 'last' }
    return (pads ? { ...own, padding: pads } : own) as Axis
  },
}

const buffer: Codec<Buffer1> = record<Buffer1>({
  name: text,
  dtype,
  axes: names,
  role: oneOf(['in', 'out', 'inout', 'local']),
  fill: number,
  accumulate: dtype,
  table: optional(flag),
  copyOf: optional(text),
  filledAtRunTime: optional(flag) as Codec<true | undefined>,
  mask: optional(text),
  distinct: optional(flag),
  listDims: optional(count),
  placed: optional(flag) as Codec<true | undefined>,
  below: optional(expr),
  positions: optional(expr),
  ascending: optional(count),
})

const OPERANDS_OF_QUERIES: Readonly<Record<string, Codec<unknown>>> = {
  tuple: exprs,
  expr,
  list: text,
  set: text,
  sort: text,
}
const query = tagged<Query>(
  'kind',
  Object.fromEntries(
    Object.entries(QUERIES).map(([kind, { takes }]) => [
      kind,
      record({
        kind: text,
        name: text,
        ...Object.fromEntries(Object.entries(takes).map(([field, of]) => [field, OPERANDS_OF_QUERIES[of]!])),
      } as unknown as Fields<never>),
    ]),
  ),
)
const queries = list(query)

const sort = record<Sort>({
  place: text,
  at: text,
  dim: text,
  of: expr,
  extent: expr,
  key: expr,
  queries,
  within: nullable(expr),
})
const table = record<Table>({
  name: text,
  kind: oneOf(['sort', 'list', 'positions']),
  source: text,
  under: names,
  length: expr,
  fill: expr,
})
const coordinateList = record<CoordinateList>({
  axis: axis as Codec<CoordinateList['axis']>,
  under: names,
  coordinate: expr,
  position: nullable(text),
})
const axes = list(axis) as Codec<FormatInstance['axes']>

const formatInstance = record<FormatInstance>({
  text,
  constants: map(number),
  axes,
  lists: list(coordinateList),
  order: names,
  names: map(text),
  arrayNames: map(text),
  sorts: list(sort),
  queries,
  map: exprs,
  inverse: exprs,
  where: nullable(expr),
  tables: list(table),
  mask: optional(text),
  claims: list(
    record<FormatInstance['claims'][number]>({
      axis: text,
      claim: oneOf(['full', 'compact']),
      follows: optional(flag) as Codec<boolean>,
    }),
  ),
  measured: list(record<FormatInstance['measured'][number]>({ name: text })),
})
const part = record<PartInstance>({ label: text, instance: formatInstance })

type IndexNode = Extract<PartTree, { kind: 'index' }>
type CasesNode = Extract<PartTree, { kind: 'cases' }>
const tree: Codec<PartTree> = tagged<PartTree>('kind', {
  leaf: record<Extract<PartTree, { kind: 'leaf' }>>({ kind: oneOf(['leaf']), part: count }) as Codec<never>,
  index: record<IndexNode>({
    kind: oneOf(['index']),
    text,
    queries,
    index: expr,
    total: flag,
    implied: exprs,
    children: list(later(() => tree)),
  }) as Codec<never>,
  cases: record<CasesNode>({
    kind: oneOf(['cases']),
    queries,
    cases: list(
      record<CasesNode['cases'][number]>({ text, where: nullable(expr), child: later(() => tree) }),
    ),
  }) as Codec<never>,
})

export const instance = record<Instance>({
  text,
  over: axes,
  tree,
  parts: list(part),
  given: list(record<Instance['given'][number]>({ name: text, kind: oneOf(['list', 'set']) })),
})
const factor = record<FillFactor>({
  text,
  element: flag,
  loads: list(record<FillFactor['loads'][number]>({ tensor: text, by: list(nullable(integer)) })),
})
const reformat = record<Reformat>({
  format: text,
  from: list(axis),
  instance,
  proved: list(record<Proved>({ inverse: flag, range: flag })),
  source: optional(text),
  buffers: list(record<Reformat['buffers'][number]>({ name: text, axes: names, parts: names })),
  factors: optional(list(factor)),
})
const skipped = record<SkippedProduct>({ by: text, tensor: text, factors: list(factor) })

export const runtimeLists = record<RuntimeLists, 'format' | 'defaults'>({
  tensor: text,
  args: list({
    write: (x) => x,
    read: (json, path) => (typeof json === 'string' ? json : number.read(json, path)),
  }),
  parts: list(
    record<RuntimePart>({
      label: text,
      instance: formatInstance,
      buffer: text,
      axis: text,
      counts: text,
      lists: expr,
      width: count,
      extent: expr,
      slots: expr,
      capacity: optional(
        record<NonNullable<RuntimePart['capacity']>>({ counts: text, width: count, capacity: expr }),
      ),
    }),
  ),
})

/** A kernel over coordinates without statements, with the axes that its iterations visit. */
export interface StoredKernel extends Pick<Kernel1, 'name' | 'params' | 'axes' | 'buffers' | 'reformats'> {
  readonly skippedProducts?: readonly SkippedProduct[] | undefined
  readonly visited: readonly string[]
}

export const storedKernel = record<StoredKernel>({
  name: text,
  params: list(param),
  axes: list(axis),
  buffers: list(buffer),
  reformats: list(reformat),
  skippedProducts: optional(list(skipped)),
  visited: names,
})

/**
 * Returns the kernel over coordinates, without statements, by which tensors are bound to a plan. `at`: path of the plan. Throws SptError
 * `plan/malformed`.
 */
export function readKernel(
  { binding, runtimeFormats }: Pick<Plan, 'binding' | 'runtimeFormats'>,
  at = '',
): Kernel1 {
  const { visited, skippedProducts, ...kernel } = storedKernel.read(binding, within(at, 'binding'))
  return {
    stage: 1,
    ...kernel,
    body: bodyVisiting(visited),
    ...(runtimeFormats && {
      runtimeLists: list(runtimeLists).read(runtimeFormats, within(at, 'runtimeFormats')),
    }),
    ...(skippedProducts && { skippedProducts }),
  }
}
