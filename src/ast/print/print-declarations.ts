/** Formats (with the items of descriptions in canonical order), memories and instructions as text. */
import type * as ast from '../nodes/nodes.ts'
import { bracketList, commaSeparated, type Doc, group, line, nest } from './layout-document.ts'
import type { Printer } from './print-blocks.ts'
import {
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
  p.block(f.trivia, true, head, () =>
    f.body.kind === 'composition' ? printRules(p, f.body.rules) : printDescription(p, f.body),
  )
}

function paramDoc(x: ast.FormatParam): Doc {
  const head = x.type === 'integer' ? x.name.name : `${x.name.name}: ${x.type}`
  return x.default ? [`${head} = `, exprDoc(x.default)] : head
}

function printDescription(p: Printer, d: ast.Description): void {
  const lines: (readonly [ast.Trivia | undefined, Doc])[] = []
  for (const s of d.sorts) {
    const within: Doc = s.within ? [' within ', exprDoc(s.within)] : ''
    const to = ` -> (${s.place.name}, ${s.at.name})`
    lines.push([s.trivia, [`sort ${elementText(s.dim)} by `, exprDoc(s.by), within, to]])
  }
  d.axes.forEach((a, k) => {
    lines.push([a.trivia, axisDoc(a, alignedPeers(d.axes, k))])
  })
  const map = (word: string, m: ast.CoordMap): Doc => [
    word,
    tuple(listNames(m.from)),
    ' -> ',
    tuple(exprs(m.to)),
  ]
  lines.push([d.map.trivia, map('map ', d.map)], [d.inverse.trivia, map('inverse ', d.inverse)])
  if (d.mask) lines.push([d.mask.trivia, `mask ${d.mask.name.name}`])
  if (d.where) lines.push([d.where.trivia, ['where (', exprDoc(d.where.cond), ')']])
  lines.forEach(([trivia, doc], k) => {
    p.item(trivia, k === 0, doc)
  })
}

function printRules(p: Printer, list: ast.Composition['rules']): void {
  list.forEach((r, k) => {
    if (r.kind === 'part') p.item(r.trivia, k === 0, ruleHead(r))
    else p.block(r.trivia, k === 0, ruleHead(r), () => printRules(p, r.rules), single(r.rules, partHead))
  })
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

const precisionDoc = ({ bits }: ast.Precision): Doc => ['precision ', exprDoc(bits), ' bits']

const constraintDoc = (x: ast.Limit | ast.Examples): Doc =>
  x.kind === 'limit'
    ? ['require ', exprDoc(x.cond)]
    : ['examples ', group(nest(commaSeparated(x.of.map((args) => tuple(exprs(args))))))]

const typedShape = (type: string, shape: readonly ast.Expr[]): Doc =>
  bracketList(`${type}[`, exprs(shape), ']')
const alignmentDoc = (bytes: ast.Expr | null): Doc => (bytes ? [' aligned ', exprDoc(bytes)] : '')

export function printMemory(p: Printer, m: ast.Memory): void {
  const threads: Doc = m.threads ? [' of ', exprDoc(m.threads), ' threads'] : ''
  const head: Doc = [
    [`memory ${m.name.name}`, optional(m.params.map(paramText)), ': '],
    typedShape(m.type.name, m.shape),
    ` in ${m.scope.name}`,
    threads,
    m.replicated ? ' replicated' : '',
    alignmentDoc(m.aligned),
  ]
  p.block(m.trivia, true, head, () => {
    m.items.forEach((x, k) => {
      p.item(x.trivia, k === 0, itemDoc(x))
    })
  })
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
export function printInstr(
  p: Printer,
  s: ast.Instr,
  iterate: (s: ast.Iterate, first: boolean) => void,
): void {
  const operands = s.operands.map(operandDoc)
  const threads: Doc = s.threads ? [' by ', exprDoc(s.threads), ' threads'] : ''
  const words = s.words.map((w) => ` ${w.name}`)
  const params = s.params.length > 0 ? `(${s.params.map(paramText).join(', ')})` : ''
  const head: Doc = [bracketList(`instr ${s.name.name}${params}(`, operands, ')'), threads, ...words]
  p.block(s.trivia, true, head, () => {
    s.items.forEach((x, k) => {
      if (x.kind === 'iterate') iterate(x, k === 0)
      else if (x.kind === 'precision') p.item(x.trivia, k === 0, precisionDoc(x))
      else p.item(x.trivia, k === 0, x.kind === 'text' ? textDoc(x) : constraintDoc(x))
    })
  })
}

const operandDoc = (o: ast.Operand): Doc => [
  `${o.name.name}: `,
  typedShape(o.type.name, o.shape),
  ' in ',
  ...o.memories.map((m, k): Doc => [k > 0 ? ' or ' : '', instanceDoc(m)]),
  o.packed ? [' packed ', exprDoc(o.packed)] : '',
  alignmentDoc(o.aligned),
  o.ascending ? [' ascending ', exprDoc(o.ascending)] : '',
  o.mapped ? ' mapped' : '',
  o.mapped?.swizzle ? [' swizzle ', exprDoc(o.mapped.swizzle)] : '',
  o.fenced ? ' fenced' : '',
]

function textDoc(t: ast.InstrText): Doc {
  const what = t.what === 'run' ? '' : `${t.what} `
  const from = t.from === null ? '' : ` from ${Number.isInteger(t.from) ? t.from.toFixed(1) : t.from}`
  return `${what}${t.target.name}${from}${needsText(t.needs)} \`${t.code.name}\``
}
