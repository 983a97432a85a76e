/** Formats (with the items of descriptions in canonical order), memories and instructions as text. */
import type * as ast from '../nodes/nodes.ts'
import { bracketList, commaSeparated, type Doc, group, line, nest, separated } from './layout-document.ts'
import type { Printer } from './print-blocks.ts'
import {
  after,
  alignedPeers,
  axisDoc,
  elementText,
  exprDoc,
  exprs,
  listNames,
  names,
  optional,
  single,
  tuple,
  useDoc,
  whereDoc,
  widthDoc,
} from './print-expr.ts'

export function printFormat(p: Printer, f: ast.Format): void {
  const head = [`format ${f.name.name}`, optional(f.params.map(paramDoc)), ' over ', tuple(listNames(f.over))]
  p.block(f.trivia, head, () =>
    f.body.kind === 'composition' ? printRules(p, f.body.rules) : printDescription(p, f.body),
  )
}

function paramDoc(x: ast.FormatParam): Doc {
  const head = x.type === 'integer' ? x.name.name : `${x.name.name}: ${x.type}`
  return [head, after(' = ', x.default)]
}

function printDescription(p: Printer, d: ast.Description): void {
  p.items(d.sorts, (s) => [
    [`sort ${elementText(s.dim)} by `, exprDoc(s.by)],
    [after(' within ', s.within), ` -> (${s.place.name}, ${s.at.name})`],
  ])
  for (const [k, a] of d.axes.entries()) p.item(a.trivia, axisDoc(a, alignedPeers(d.axes, k)))
  const map = (word: string, m: ast.CoordMap): Doc => [
    word,
    tuple(listNames(m.from)),
    ' -> ',
    tuple(exprs(m.to)),
  ]
  p.item(d.map.trivia, map('map ', d.map))
  p.item(d.inverse.trivia, map('inverse ', d.inverse))
  if (d.mask) p.item(d.mask.trivia, `mask ${d.mask.name.name}`)
  if (d.where) p.item(d.where.trivia, ['where (', exprDoc(d.where.cond), ')'])
}

function printRules(p: Printer, list: ast.Composition['rules']): void {
  for (const r of list)
    if (r.kind === 'part') p.item(r.trivia, ruleHead(r))
    else p.block(r.trivia, ruleHead(r), () => printRules(p, r.rules), single(r.rules, partHead))
}

const partHead = (r: ast.Rule): Doc | undefined => (r.kind === 'part' ? ruleHead(r) : undefined)

function ruleHead(r: ast.Rule): Doc {
  switch (r.kind) {
    case 'part':
      return ['part ', r.name ? `${r.name.name} = ` : '', useDoc(r.use), whereDoc(r.where)]
    case 'partition':
      return [`partition ${elementText(r.dim)} into `, exprDoc(r.into), r.as ? ` as ${r.as.name}` : '']
    case 'bucket': {
      const [firstDim, ...otherDims] = r.dims.map(elementText)
      const dims: Doc =
        otherDims.length > 0 || firstDim === undefined ? tuple([firstDim ?? '', ...otherDims]) : firstDim
      return group(
        ['bucket ', dims, ' by length into ', nest(widthsDoc(r.widths))],
        ` as ${r.as.name}${r.split ? ' split' : ''}`,
      )
    }
  }
}

/** `1, 2 .. 2^k` */
export const widthsDoc = (widths: readonly ast.Width[]): Doc =>
  widths.map((w, k): Doc => {
    const width = widthDoc(w.value, w.power)
    return k === 0 ? width : [w.doubling ? [line, '.. '] : [',', line], width]
  })

// Memories and instructions as text. Code of targets is printed unchanged.

export const paramText = ({ name, types }: ast.TileParam): string =>
  types ? `${name.name}: ${types.map((t) => t.name).join(' or ')}` : name.name

/** `tile(f16, 64)`. */
export const instanceDoc = ({ name, args }: ast.Instance): Doc => [name.name, optional(exprs(args))]

const constraintDoc = (x: ast.Limit | ast.Examples): Doc =>
  x.kind === 'limit'
    ? ['require ', exprDoc(x.cond)]
    : ['examples ', group(nest(commaSeparated(x.of.map((args) => tuple(exprs(args))))))]

const typedShape = (type: string, shape: readonly ast.Expr[]): Doc =>
  bracketList(`${type}[`, exprs(shape), ']')
const threadsDoc = (word: string, count: ast.Expr | null): Doc =>
  count ? [word, exprDoc(count), ' threads'] : ''

export function printMemory(p: Printer, m: ast.Memory): void {
  const head: Doc = [
    [`memory ${m.name.name}`, optional(m.params.map(paramText)), ': '],
    typedShape(m.type.name, m.shape),
    ` in ${m.scope.name}`,
    threadsDoc(' of ', m.threads),
    m.replicated ? ' replicated' : '',
    after(' aligned ', m.aligned),
  ]
  p.block(m.trivia, head, () => p.items(m.items, itemDoc))
}

function itemDoc(m: ast.MemoryItem): Doc {
  if (m.kind === 'limit' || m.kind === 'examples') return constraintDoc(m)
  if (m.kind === 'text')
    return `${m.what === 'fill' ? 'fill ' : ''}${m.target.name}${needsText(m.needs)} \`${m.code.name}\``
  return m.kind === 'element'
    ? [`element (${m.lane.name}, ${m.slot.name}) -> `, tuple(exprs(m.to))]
    : ['address ', tuple(names(m.from)), ' -> ', exprDoc(m.to)]
}

function needsText(needs: readonly ast.Need[]): string {
  const needText = (n: ast.Need): string => n.name.name + (n.args.length > 0 ? `(${n.args.join(', ')})` : '')
  return needs.length > 0 ? ` needs ${needs.map(needText).join(', ')}` : ''
}

/** Prints an instruction; the caller's `iterate` prints its iteration. */
export function printInstr(p: Printer, s: ast.Instr, iterate: (s: ast.Iterate) => void): void {
  const params = s.params.length > 0 ? `(${s.params.map(paramText).join(', ')})` : ''
  const operands = bracketList(`instr ${s.name.name}${params}(`, s.operands.map(operandDoc), ')')
  const words = s.words.map((w) => ` ${w.name}`)
  p.block(s.trivia, [operands, threadsDoc(' by ', s.threads), ...words], () => {
    for (const x of s.items)
      if (x.kind === 'iterate') iterate(x)
      else if (x.kind === 'precision') p.item(x.trivia, ['precision ', exprDoc(x.bits), ' bits'])
      else p.item(x.trivia, x.kind === 'text' ? textDoc(x) : constraintDoc(x))
  })
}

const operandDoc = (o: ast.Operand): Doc => [
  `${o.name.name}: `,
  typedShape(o.type.name, o.shape),
  ' in ',
  separated(o.memories, ' or ', instanceDoc),
  after(' packed ', o.packed),
  after(' aligned ', o.aligned),
  after(' ascending ', o.ascending),
  o.mapped ? ' mapped' : '',
  after(' swizzle ', o.mapped?.swizzle),
  o.fenced ? ' fenced' : '',
]

function textDoc(t: ast.InstrText): Doc {
  const what = t.what === 'run' ? '' : `${t.what} `
  const from = t.from === null ? '' : ` from ${Number.isInteger(t.from) ? t.from.toFixed(1) : t.from}`
  return `${what}${t.target.name}${from}${needsText(t.needs)} \`${t.code.name}\``
}
