/** A format with its arguments, over the axes of one kernel. */

import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { countText } from '../../ast/print/message-text.ts'
import type { PaddedAxis, StoredAxis } from '../../ir/coordinates/axis.ts'
import {
  FIELD_WIDTHS,
  hasIndices,
  hasWidth,
  isInvalidExtent,
  isInvalidPacking,
  mapAxis,
  maxExtentOf,
} from '../../ir/coordinates/axis.ts'
import { add, type Expr, int, variable } from '../../ir/expressions/expr.ts'
import { freeVars, readsMemory } from '../../ir/expressions/expr-tree.ts'
import type { Format, FormatInstance, Sort, Table } from '../../ir/formats/format.ts'
import { listExtentInPart } from '../../ir/formats/list-extents.ts'
import type { Query } from '../../ir/formats/queries.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { checkFields } from '../../ir/values/packed-fields.ts'
import { type Arguments, type SpanOption, segments, spanOf } from './format-arguments.ts'
import type { ArrayNames, Scope } from './translate-names.ts'
import {
  declaredWithValue,
  extentScope,
  scopeOf,
  translate,
  translateCoordinate,
  translateQueries,
  withVariables,
} from './translate-names.ts'

/** Names of axes, of tables, and of queries, which do not occur in kernels. */
export interface NamesInKernel {
  readonly axis: (name: string) => string
  readonly arrayNames: ArrayNames
  readonly query: (name: string) => string
}

export function formatInstance(
  format: Format,
  args: Arguments,
  over: readonly StoredAxis[],
  names: NamesInKernel,
  site: SpanOption = {},
): FormatInstance {
  const { arrayNames, query: renameQuery } = names
  checkOver(format, over, site)
  const axisNames = new Map(format.order.map((n) => [n, names.axis(n)]))
  const axisName = (axis: string): string => axisNames.get(axis) ?? axis
  const tables = tablesOf(format, args, over, arrayNames.kernelName, axisName)
  const mask = format.mask === undefined ? undefined : arrayNames.kernelName(format.mask)
  const tableOrAxisName = (axis: string): string => tables.get(axis)?.name ?? axisName(axis)
  const mapScope: Scope = {
    ...scopeOf(format, args, over),
    tables: new Map([...tables].map(([text, t]) => [text, t.name])),
  }
  const extents = extentScope(mapScope, over)
  const queryUsers = [...format.map, ...format.lists.map((l) => l.coordinate)]
  const { queries, scope } = translateQueries(format.queries, queryUsers, mapScope, renameQuery)
  const sorts = format.sorts.map((s) => {
    const dim = dimensionName(s, format, over, axisName)
    const sortScope = withVariables(mapScope, [[s.dim, variable(dim)]])
    return {
      ...translateSort(s, sortScope, tables, over, renameQuery),
      dim,
      of: translate(s.of, scope),
      extent: translate(s.extent, extents),
    }
  })
  const positions: Scope = {
    ...mapScope,
    variables: new Map([
      ...mapScope.variables,
      ...format.order.map((n) => [n, variable(axisName(n))] as const),
    ]),
  }
  const where =
    format.where && usesNoQueries(format.where, format.queries) ? translate(format.where, mapScope) : null
  return {
    text: args.text,
    constants: new Map(
      [...args.values].flatMap(([n, e]) => (e.kind === 'const' ? [[n, e.value] as const] : [])),
    ),
    axes: format.axes.map((a) => checkAxis(translateAxis(a, extents, axisName), a, args, site)),
    lists: format.lists.map(({ axis, under, coordinate, position }) => ({
      axis: checkAxis(translateAxis(axis, extents, tableOrAxisName), axis, args, site) as PaddedAxis,
      under: under.map(axisName),
      coordinate: translate(coordinate, scope),
      position: position === null ? null : nameInScope(scope, position),
    })),
    order: format.order.map(axisName),
    names: axisNames,
    arrayNames: new Map([
      ...[...tables].flatMap(([text, t]) =>
        t.kind === 'list' ? [] : [[arrayNames.bindingName(text), t.name] as const],
      ),
      ...(mask === undefined ? [] : [[arrayNames.bindingName(format.mask!), mask] as const]),
    ]),
    sorts,
    queries,
    map: format.map.map((e) => translateCoordinate(e, scope)),
    inverse: format.inverse.map((e) => translateCoordinate(e, positions)),
    where,
    tables: [...tables.values()].map((t) =>
      t.kind === 'list' ? { ...t, fill: listExtentInPart(t.source, { queries, sorts }, over) } : t,
    ),
    ...(mask !== undefined && { mask }),
    claims: format.claims.map((c) => ({ ...c, axis: axisName(c.axis) })),
    measured: args.measured,
  }
}

export function checkOver(
  format: { readonly name: string; readonly over: readonly string[]; readonly span?: Format['span'] },
  over: readonly StoredAxis[],
  site: SpanOption,
): void {
  if (over.length === format.over.length) return
  failWith(
    'format/over',
    `format ${format.name} replaces ${format.over.length} axes (${format.over.join(', ')}), not ${over.length}`,
    {
      ...spanOf(site.span, format.span),
      expected: `a buffer with ${format.over.length} axes`,
      hint: 'choose a format over as many dimensions',
    },
  )
}

function dimensionName(
  { dim }: Sort,
  format: Format,
  over: readonly StoredAxis[],
  axisName: (axis: string) => string,
): string {
  const k = format.over.indexOf(dim)
  return k < 0 ? axisName(dim) : over[k]!.name
}

/** The name of a query in a kernel; `null` if it is not used there. */
function nameInScope(scope: Scope, query: string): string | null {
  const bound = scope.variables.get(query)
  return bound?.kind === 'var' ? bound.name : null
}

const usesNoQueries = (e: Expr, queries: readonly Query[]): boolean =>
  queries.every((q) => !freeVars(e).has(q.name))

/** Tables by their names in the format: the order of each sort, each list, and each list parameter. */
function tablesOf(
  format: Format,
  args: Arguments,
  over: readonly StoredAxis[],
  rename: ArrayNames['kernelName'],
  axisName: (axis: string) => string,
): ReadonlyMap<string, Table> {
  const out = new Map<string, Table>()
  for (const s of format.sorts) {
    const name = rename(s.at)
    const length = translate(s.extent, extentScope(scopeOf(format, args, over), over))
    out.set(s.at, { name, kind: 'sort', source: name, under: [], length, fill: length })
  }
  for (const { axis, under } of format.lists) {
    const translateSize = (e: Expr): Expr => translate(e, extentScope(scopeOf(format, args, over), over))
    const name = rename(axis.name)
    const sizes = { length: translateSize(axis.width), fill: translateSize(axis.extent) }
    out.set(axis.name, { name, kind: 'positions', source: name, under: under.map(axisName), ...sizes })
  }
  for (const [param, { name, kind }] of args.given) {
    if (kind !== 'list') continue
    out.set(param, {
      name: rename(param, name),
      kind: 'list',
      source: name,
      under: [],
      length: add(segments(name), int(1)),
      // A placeholder: the extent is set when the queries of the list are known.
      fill: over[0]!.extent,
    })
  }
  return out
}

function translateSort(
  s: Sort,
  scope: Scope,
  tables: ReadonlyMap<string, Table>,
  over: readonly StoredAxis[],
  rename: (name: string) => string,
): Sort {
  const keyQueries = translateQueries(s.queries, [s.key], scope, rename)
  const within = s.within && translate(s.within, extentScope(scope, over))
  if (within?.kind === 'const' && within.value < 1)
    failWith(
      'format/sort-window',
      `format ${scope.format.name} sorts ${s.dim} within windows of ${declaredWithValue(s.within!, within.value)}`,
      {
        ...spanOf(within.span, s.span, scope.format.span),
        expected: 'a positive number of coordinates',
        hint: 'omit `within` to sort the whole axis',
      },
    )
  return {
    ...s,
    at: tables.get(s.at)!.name,
    key: translate(s.key, keyQueries.scope),
    queries: keyQueries.queries,
    within,
  }
}

const translateAxis = (axis: StoredAxis, scope: Scope, axisName: (axis: string) => string): StoredAxis =>
  mapAxis(axis, axisName, (e) => translate(e, scope))

/** The value of a constant extent as text, which may exceed the IR's constants; `null` if it depends on sizes. */
const constantText = (extent: Expr): string | null =>
  freeVars(extent).size > 0 || readsMemory(extent) ? null : countText(evaluate(extent, new Map()))

/** Checks the sizes of a translated axis. `declared`: the axis in the format's declaration. */
function checkAxis(axis: StoredAxis, declared: StoredAxis, args: Arguments, site: SpanOption): StoredAxis {
  const reject = (problem: string, expected: string): never =>
    failWith('format/extent', `axis ${axis.name} of ${args.text} has ${problem}`, {
      ...spanOf(site.span, axis.span),
      expected,
      hint: 'correct the arguments or the extents',
    })
  const constantOf = (e: Expr): number | undefined => (e.kind === 'const' ? e.value : undefined)
  const extent = constantOf(axis.extent)
  if (extent !== undefined && extent < 0)
    reject(`the extent ${declaredWithValue(declared.extent, extent)}`, '0 or more coordinates')
  if (isInvalidExtent(axis)) {
    const bits = constantText(axis.extent)
    if (bits === null) reject('an extent that is not a constant', 'a constant: masks are of one size')
    else reject(`masks of ${bits} bits`, `at most ${maxExtentOf(axis)}`)
  }
  const packed = hasIndices(axis) ? axis.packed : undefined
  if (hasIndices(axis) && isInvalidPacking(axis))
    failWith(
      'format/packed',
      `axis ${axis.name} of ${args.text} packs coordinates into ${packed?.kind === 'const' ? `${packed.value} bits` : 'fields of no constant size'}`,
      { ...spanOf(site.span, packed?.span, axis.span), expected: FIELD_WIDTHS },
    )
  if (extent !== undefined) checkFields(axis, extent)
  const width = hasWidth(axis) ? constantOf(axis.width) : undefined
  if (width !== undefined && width < 1)
    reject(
      `the width ${hasWidth(declared) ? declaredWithValue(declared.width, width) : width}`,
      'a positive width',
    )
  return axis
}
