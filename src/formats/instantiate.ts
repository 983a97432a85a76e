/** A format with its arguments, over the axes of one kernel. */
import { fail, type Span } from '../ast/diagnostic.ts'
import type { StoredAxis } from '../ir/axis.ts'
import { type Expr, substitute, variable, walkExpr } from '../ir/expr.ts'
import type { Format, FormatInstance } from '../ir/format.ts'

export type { FormatInstance } from '../ir/format.ts'

/**
 * Replaces the format's parameters by arguments, its dimensions by `over`, and its axis names by `rename` of them
 * (so that a kernel can hold several instances). A parameter without an argument takes its default or is measured.
 *
 * @throws SptError `format/arguments`, `format/over`, `format/division-by-zero`
 */
export function instantiateFormat(
  format: Format,
  args: readonly Expr[],
  over: readonly StoredAxis[],
  rename: (name: string) => string = (name) => name,
): FormatInstance {
  if (over.length !== format.over.length)
    fail({
      code: 'format/over',
      message: `format ${format.name} replaces ${format.over.length} axes (${format.over.join(', ')}), not ${over.length}`,
      ...(format.span ? { span: format.span } : {}),
      expected: `a buffer with ${format.over.length} axes`,
      hint: 'choose a format over as many dimensions',
    })
  const { values, measured } = bindParams(format, args, rename)
  const coordinates = new Map(values)
  const extents = new Map(values)
  over.forEach((axis, k) => {
    coordinates.set(format.over[k]!, variable(axis.name))
    extents.set(format.over[k]!, axis.extent)
  })
  const positions = new Map(values)
  for (const name of format.order) positions.set(name, variable(rename(name)))
  const instance: FormatInstance = {
    text: args.length === 0 ? format.name : `${format.name}(${args.map(argText).join(', ')})`,
    axes: format.axes.map((a) => renameAxis(a, extents, rename)),
    order: format.order.map(rename),
    map: format.map.map((e) => substitute(e, coordinates)),
    inverse: format.inverse.map((e) => substitute(e, positions)),
    constants: new Map([...values].flatMap(([n, e]) => (e.kind === 'const' ? [[n, e.value] as const] : []))),
    names: new Map(format.order.map((n) => [n, rename(n)])),
    sorts: [],
    queries: [],
    where: null,
    tables: [],
    claims: [],
    measured,
  }
  for (const a of instance.axes) {
    checkDivisors(format, a.extent)
    if (a.kind === 'sparse_fixed') checkDivisors(format, a.width)
  }
  for (const e of [...instance.map, ...instance.inverse]) checkDivisors(format, e)
  return instance
}

function bindParams(format: Format, args: readonly Expr[], rename: (name: string) => string) {
  const least = format.params.filter((p) => p.default === null && !p.measured).length
  const enough = format.params.every((p, k) => k < args.length || p.default !== null || p.measured)
  if (args.length > format.params.length || !enough)
    fail({
      code: 'format/arguments',
      message: `format ${format.name} is given ${args.length} arguments`,
      ...(format.span ? { span: format.span } : {}),
      expected:
        least === format.params.length
          ? `${least}: ${signature(format)}`
          : `${least} to ${format.params.length}: ${signature(format)}`,
      hint: 'parameters with a default and measured ones (`w: size`) may be left out, from the end',
    })
  const values = new Map<string, Expr>()
  const measured: { name: string; span?: Span | undefined }[] = []
  format.params.forEach((p, k) => {
    const given = args[k] ?? (p.default === null ? null : substitute(p.default, values))
    if (given) values.set(p.name, given)
    else {
      const name = rename(p.name)
      measured.push({ name, span: p.span })
      values.set(p.name, variable(name))
    }
  })
  return { values, measured }
}

const signature = (format: Format): string => `${format.name}(${format.params.map((p) => p.name).join(', ')})`

const argText = (e: Expr): string => (e.kind === 'const' ? String(e.value) : e.kind === 'var' ? e.name : '…')

function renameAxis(
  axis: StoredAxis,
  extents: ReadonlyMap<string, Expr>,
  rename: (name: string) => string,
): StoredAxis {
  const name = rename(axis.name)
  const extent = substitute(axis.extent, extents)
  switch (axis.kind) {
    case 'dense_fixed':
      return { ...axis, name, extent, parent: axis.parent === null ? null : rename(axis.parent) }
    case 'dense_variable':
      return { ...axis, name, extent, parent: rename(axis.parent) }
    case 'sparse_fixed':
      return { ...axis, name, extent, parent: rename(axis.parent), width: substitute(axis.width, extents) }
    case 'bitmap':
      return { ...axis, name, extent, parent: rename(axis.parent) }
    case 'sparse_variable':
      return { ...axis, name, extent, parent: axis.parent === null ? null : rename(axis.parent) }
  }
}

const DIVIDES: ReadonlySet<string> = new Set(['div', 'mod', 'quo', 'rem'])

function checkDivisors(format: Format, e: Expr): void {
  walkExpr(e, (x) => {
    if (x.kind !== 'binary' || !DIVIDES.has(x.op) || x.b.kind !== 'const' || x.b.value > 0) return
    fail({
      code: 'format/division-by-zero',
      message: `format ${format.name} divides by ${x.b.value}`,
      ...(x.span ? { span: x.span } : format.span ? { span: format.span } : {}),
      expected: 'a positive divisor',
      hint: `pass positive arguments: ${signature(format)}`,
    })
  })
}
