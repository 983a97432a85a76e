/** Formats: AST → `Format`. */
import type * as Ast from '../../ast/nodes.ts'
import { isStored, type StoredAxis } from '../axis.ts'
import { type Expr, substitute, variable } from '../expr.ts'
import type { Format, FormatParam } from '../format.ts'
import { declareAxes, sizeNames } from './axes.ts'
import { type Declared, declare } from './declared.ts'
import { type Names, settled } from './expressions.ts'
import type { Report } from './report.ts'
import { plain } from './types.ts'

export function elaborateFormat(f: Ast.Format, report: Report): Format | null {
  const before = report.count
  if (f.body.kind === 'composition') return null
  const { body } = f
  const d: Declared = {
    report,
    params: new Map(),
    axes: new Map(),
    buffers: new Map(),
    broken: new Set(),
    places: new Map(),
    monoid: () => null,
  }
  const params: FormatParam[] = []
  for (const p of f.params) {
    declare(d, p.name, 'parameter')
    const known = new Set(params.map((q) => q.name))
    const fallback =
      p.default && integer(p.default, coordinates(known, 'parameters before it', report), report)
    params.push({
      name: p.name.name,
      kind: 'integer',
      default: fallback,
      measured: p.type === 'size',
      span: p.span,
    })
  }
  for (const o of f.over) declare(d, o, 'dimension')
  const over = f.over.map((o) => o.name)
  const names = params.map((p) => p.name)
  declareAxes(d, body.axes, sizeNames(new Set([...names, ...over]), 'its parameters and dimensions', report))
  for (const a of body.axes)
    if (a.def.kind === 'fused' || a.def.kind === 'attached' || a.def.kind === 'gathered')
      report.error({
        code: 'check/format-view',
        message: `axis ${a.name.name} of format ${f.name.name} is ${a.def.kind}: a view that stores nothing`,
        span: a.span,
        expected: 'dense and sparse axes',
      })
  const order = body.axes.map((a) => a.name.name)
  const map = coordMap(f, body.map, 'map', over, order, names, report)
  const inverse = coordMap(f, body.inverse, 'inverse', order, over, names, report)
  if (report.count > before || !map || !inverse) return null
  const axes = [...d.axes.values()].filter((a): a is StoredAxis => isStored(a))
  return {
    kind: 'format',
    name: f.name.name,
    params,
    over,
    sorts: [],
    queries: [],
    axes,
    order,
    map,
    inverse,
    where: null,
    claims: [],
    span: f.name.span,
  }
}

/** The operands of a coordinate map may be renamed; the value has the names that the format declares. */
function coordMap(
  f: Ast.Format,
  m: Ast.CoordMap,
  what: 'map' | 'inverse',
  from: readonly string[],
  to: readonly string[],
  params: readonly string[],
  report: Report,
): readonly Expr[] | null {
  if (m.from.length !== from.length)
    return report.error({
      code: 'check/map-arity',
      message: `${what} of format ${f.name.name} takes ${m.from.length} coordinates`,
      span: m.from[0]?.span ?? m.span,
      expected: `${from.length}: (${from.join(', ')})`,
    })
  if (m.to.length !== to.length)
    return report.error({
      code: 'check/map-arity',
      message: `${what} of format ${f.name.name} gives ${m.to.length} coordinates`,
      span: m.to[0]?.span ?? m.span,
      expected: `${to.length}, one for each of (${to.join(', ')})`,
    })
  const own = m.from.map((i) => i.name)
  const twice = m.from.find(
    (i, k) => own.indexOf(i.name) !== k || (params.includes(i.name) && !from.includes(i.name)),
  )
  if (twice)
    return report.error({
      code: 'check/duplicate',
      message: `${what} has two meanings for ${twice.name}`,
      span: twice.span,
    })
  const names = coordinates(new Set([...own, ...params]), `${own.join(', ')} and the parameters`, report)
  const rename = new Map(own.map((name, k) => [name, variable(from[k]!)]))
  const exprs = m.to.map((e) => integer(e, names, report))
  return exprs.some((e) => e === null) ? null : (exprs as Expr[]).map((e) => substitute(e, rename))
}

function integer(e: Ast.Expr, names: Names, report: Report): Expr | null {
  const x = settled(e, names, report)
  if (!x || x.dtype === 'i32') return x
  return report.error({
    code: 'check/coordinate-type',
    message: `a coordinate is i32, and this is ${x.dtype}`,
    span: e.span,
  })
}

/** i32 names, and nothing else. */
export function coordinates(known: ReadonlySet<string>, what: string, report: Report): Names {
  const refuse = (e: Ast.Expr): null =>
    report.error({ code: 'check/unknown-name', message: `only ${what} can be used here`, span: e.span })
  return {
    name: (e) =>
      known.has(e.name)
        ? plain(variable(e.name, 'i32', e.span))
        : report.error({
            code: 'check/unknown-name',
            message: `there is no ${e.name} here`,
            span: e.span,
            expected: what,
            lookup: { name: e.name, candidates: [...known] },
          }),
    access: refuse,
    field: refuse,
  }
}
