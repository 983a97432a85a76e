/** Layout documents shared by several declarations: names, tuples, axes. */
import { operandsOf } from '../nodes/axis-kinds.ts'
import type * as ast from '../nodes/nodes.ts'
import { bracketList, type Doc, layout } from './layout-document.ts'
import { exprDoc, forDoc } from './print-expr.ts'

export const names = (list: readonly ast.Ident[]): string[] => list.map((n) => n.name)
export const tuple = (list: readonly Doc[]): Doc => bracketList('(', list, ')')
/** `(…)`, or nothing for an empty list. */
export const optional = (list: readonly Doc[]): Doc => (list.length === 0 ? '' : tuple(list))
export const exprs = (list: readonly ast.Expr[]): Doc[] => list.map(exprDoc)

/** One value bare, several as a tuple. */
export const values = (list: readonly ast.Expr[]): Doc =>
  list.length === 1 ? exprDoc(list[0]!) : tuple(exprs(list))

/** The neighbours of `list[k]` of the same kind, without a blank line or comment line between them. */
export function alignedPeers<
  T extends { readonly kind: string; readonly trivia?: ast.Trivia | undefined },
  M extends T,
>(list: readonly T[], k: number): M[] {
  const isSeparated = (n: T): boolean => Boolean(n.trivia?.blank || n.trivia?.before)
  const kind = list[k]!.kind
  let start = k
  while (start > 0 && !isSeparated(list[start]!) && list[start - 1]!.kind === kind) start--
  let end = k + 1
  while (end < list.length && list[end]!.kind === kind && !isSeparated(list[end]!)) end++
  return list.slice(start, end) as M[]
}

/** The text of the only item of a body, unless it has comments. */
export function single<T extends { readonly trivia?: ast.Trivia | undefined }>(
  body: readonly T[],
  doc: (item: T) => Doc | undefined,
): Doc | undefined {
  const [only, second] = body
  return only && !second && !only.trivia?.before && !only.trivia?.after ? doc(only) : undefined
}

export const maxLength = (texts: readonly string[]): number => Math.max(...texts.map((t) => t.length))

/** `o`, or `o[k]`. */
export const elementText = ({ name, index }: ast.Element): string =>
  index ? `${name}[${layout(exprDoc(index), 0, Number.POSITIVE_INFINITY)}]` : name

export const listNames = (list: readonly ast.ListName[]): string[] =>
  list.map((n) => (n.all ? `${n.name}...` : n.name))

/** `<f16, bf16>`, or nothing for an empty list. */
export const typeList = (types: readonly string[]): string =>
  types.length === 0 ? '' : `<${types.join(', ')}>`

/** `kernel<f16 or bf16>` */
export const kernelText = (kernel: ast.Ident, types: ast.KernelSchedule['types']): string =>
  kernel.name + typeList(types.map((t) => names(t).join(' or ')))

/** `schedule kernel<types>.name(params)` */
export function scheduleHead({ kernel, types, name, params }: ast.KernelSchedule): Doc {
  return [`schedule ${kernelText(kernel, types)}.${name.name}`, optional(params.map(paramDoc))]
}

/** `schedule name(params) -> (results)` */
export const functionHead = ({ name, params, results }: ast.ScheduleFunction): Doc => [
  `schedule ${name.name}`,
  tuple(params.map(paramDoc)),
  resultsDoc(results),
]

const paramDoc = ({ name, kind, default: value }: ast.ScheduleParam): Doc => [
  kind === 'size' ? name.name : `${name.name}: ${kind}`,
  value ? [' = ', exprDoc(value)] : '',
]
const resultsDoc = (results: readonly ast.Ident[]): Doc =>
  results.length === 0 ? '' : [' -> ', tuple(names(results))]

/** `name(args) -> (results)`, after `use` */
export const callDoc = ({
  schedule,
  args,
  results,
}: Pick<ast.UseStep, 'schedule' | 'args' | 'results'>): Doc => [
  schedule.name,
  optional(args.map((a) => (a.kind === 'group' ? useGroupDoc(a.items) : exprDoc(a)))),
  resultsDoc(results),
]

/** `(a, b).i`, or `(a.i, b.j)` */
function useGroupDoc(items: readonly ast.Expr[]): Doc {
  const fields = items.flatMap((e) => (e.kind === 'field' ? [e] : []))
  const name = fields[0]?.field.name
  const inNests = fields.length === items.length && fields.every((f) => f.field.name === name)
  return inNests ? [tuple(fields.map((f) => f.object.name)), `.${name}`] : tuple(exprs(items))
}

export function axisDoc(a: ast.AxisDecl, peers: readonly ast.AxisDecl[]): Doc {
  const name = elementText(a.name).padEnd(maxLength(peers.map((x) => elementText(x.name))))
  const claims = a.claims.map((c) => ` ${c.name}`)
  const padding: Doc = a.padding ? [' padded with ', exprDoc(a.padding)] : ''
  const packed: Doc = a.packed ? [' packed ', exprDoc(a.packed)] : ''
  const head = `${a.list ? 'list' : 'axis'} ${name} = `
  return [head, axisDefDoc(a.def), ...claims, padding, packed, a.each ? forDoc(a.each) : '']
}

function axisDefDoc(d: ast.AxisDef): Doc {
  const operands = operandsOf(d).flatMap((o): Doc[] => {
    if (o.kind === 'axes') return names(o.value)
    if (o.kind === 'size') return [exprDoc(o.value)]
    return o.value ? [elementText(o.value)] : []
  })
  const doc = bracketList(`${d.kind}(`, operands, ')')
  return 'ordered' in d ? [doc, modifiers(d)] : doc
}

const modifiers = (d: { readonly ordered: boolean; readonly unique: boolean }): string =>
  (d.ordered ? '' : ' unordered') + (d.unique ? '' : ' nonunique')
